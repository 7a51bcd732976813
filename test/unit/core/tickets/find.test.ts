import { combineProviders, drain, select } from 'drainable'
import type { DrainableProvider, MemberRef } from 'drainable/provider'
import { fakeProvider } from 'drainable/testing'
import { expect, test } from 'vitest'

const WEB1 = { pool: 'web', member: 'web1' }

/** A provider that finds by address, and what it was asked. */
function finder(found: (fake: ReturnType<typeof fakeProvider>) => unknown) {
  const fake = fakeProvider({ pools: { web: ['web1', 'web2'], api: ['web1'] } })
  const asked: unknown[] = []
  const find: DrainableProvider['find'] = (wanted) => {
    asked.push(wanted)
    return Promise.resolve(found(fake) as readonly MemberRef[])
  }
  return { fake, asked, lb: Object.assign(fake, { find }) }
}

async function addressOf(lb: DrainableProvider): Promise<string> {
  const [reading] = await select(lb, WEB1)
  return reading?.present === true ? (reading.address ?? '') : ''
}

test('an address is found by the provider, not by a look at all members', async () => {
  const { fake, asked, lb } = finder(() => [WEB1, WEB1])
  const address = await addressOf(lb)
  const report = await drain(lb, { address }, { timeout: '10s', settle: '20ms' })
  expect(report.members.map(({ ref }) => ref)).toEqual([WEB1])
  expect(asked).toEqual([{ address }])
  const looks = fake.requests.flatMap((call) => (call.verb === 'observe' ? [call.refs] : []))
  expect(looks).not.toContain('all')
})

test('a member found at another address is left out', async () => {
  const { lb } = finder(() => [WEB1, { pool: 'web', member: 'web2' }])
  const readings = await select(lb, { address: await addressOf(lb) })
  expect(readings.map(({ ref }) => ref)).toEqual([WEB1])
})

test.each([
  ['no list', {}, 'MALFORMED_REPLY'],
  ['a list of no members', [{ pool: 'web' }], 'MALFORMED_REPLY'],
])('a provider that finds %s makes select() fail', async (_what, found, code) => {
  const { lb } = finder(() => found)
  await expect(select(lb, { address: '10.0.0.1' })).rejects.toMatchObject({ code })
})

test('all members can be listed, on one balancer or several', async () => {
  const a = fakeProvider({ pools: { web: ['web1'], api: ['api1'] } })
  const b = fakeProvider({ pools: { web: ['web1'] } })
  const refs = async (lb: DrainableProvider): Promise<readonly MemberRef[]> =>
    (await select(lb, 'all')).map(({ ref }) => ref)
  expect(await refs(a)).toEqual([WEB1, { pool: 'api', member: 'api1' }])
  expect(await refs(combineProviders({ a, b }))).toEqual([
    { ...WEB1, balancer: 'a' },
    { pool: 'api', member: 'api1', balancer: 'a' },
    { ...WEB1, balancer: 'b' },
  ])
  expect(await refs(fakeProvider({ pools: {} }))).toEqual([])
  b.disconnect()
  await expect(select(combineProviders({ a, b }), 'all')).rejects.toMatchObject({
    code: 'UNREACHABLE',
    message: expect.stringMatching(/^b: /) as string,
  })
})

test.each([
  ['10.0.0.1:80', "{ address: '10.0.0.1', port: 80 }"],
  ['[2001:db8::1]:8443', "{ address: '[2001:db8::1]', port: 8443 }"],
  ['web1.example:80', "{ address: 'web1.example', port: 80 }"],
])('an address that holds a port is refused: %s', async (address, words) => {
  const lb = fakeProvider({ pools: { web: ['web1'] } })
  const asked = select(lb, { address })
  await expect(asked).rejects.toMatchObject({ code: 'INVALID_OPTIONS' })
  await expect(asked).rejects.toThrow(`holds a port; give it apart: ${words}`)
  expect(lb.requests).toEqual([])
})

test.each(['2001:db8::1', '[2001:db8::1]', '10.0.0.1%1', '/run/app.sock', 'unix@/run/app:80'])(
  'an address without a port is looked for: %s',
  async (address) => {
    const lb = fakeProvider({ pools: { web: ['web1'] } })
    expect(await select(lb, { address })).toEqual([])
    await expect(drain(lb, { address })).rejects.toMatchObject({ code: 'NOT_FOUND' })
  },
)

test('an address that nothing has gives an empty list, a name an error', async () => {
  const a = fakeProvider({ pools: { web: ['web1'] } })
  const b = fakeProvider({ pools: { web: ['web1'] } })
  for (const onMissing of ['skip', 'fail'] as const) {
    const lb = combineProviders({ a, b }, { onMissing })
    expect(await select(lb, { address: '10.9.9.9' })).toEqual([])
    await expect(select(lb, { pool: 'wbe' })).rejects.toMatchObject({ code: 'NOT_FOUND' })
    await expect(drain(lb, { address: '10.9.9.9' })).rejects.toMatchObject({ code: 'NOT_FOUND' })
  }
  expect(await select(finder(() => []).lb, { address: '10.0.0.1' })).toEqual([])
  await expect(select(a, { pool: 'web', member: 'web9' })).rejects.toMatchObject({
    code: 'NOT_FOUND',
  })
})
