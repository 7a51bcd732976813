import { drain, startDrain } from 'drainable'
import { f5Bigip } from 'drainable/f5-bigip'
import { describe, expect, test } from 'vitest'
import { connect, ctx, lines, present, rig, until, WEB1 } from './rig.js'

const FAST = { settle: '50ms', timeout: '50s' } as const
const PAIR = { pair: true } as const
const hold = { kind: 'hold', ref: WEB1, to: 'drain' } as const

/** Asked at once, then 2 s, 4 s, ... later: so often at most, on a machine of any speed. */
const mostSince = (begun: number): number => 1 + (performance.now() - begun) / 2_000

describe.concurrent('a standby whose management hangs', () => {
  test('does not delay a drain, and is named with its age', async () => {
    await using it = await rig(PAIR, { callTimeout: '5m' })
    it.fake.fail({ how: 'silent', unit: it.fake.units[1]! })
    const begun = performance.now()
    const report = await drain(it.lb, WEB1, FAST)
    expect(report.members).toMatchObject([{ verifiedIdle: true }])
    const asked = it.fake.requests.filter(({ unit }) => unit === it.fake.units[1])
    expect(asked.length).toBeLessThanOrEqual(mostSince(begun))
    const [, second] = it.fake.urls.map((url) => new URL(url).host)
    const hints = (await present(it.lb, WEB1)).hints?.join('\n')
    expect(hints).toMatch(new RegExp(`${second} is standby, .* has not answered for \\d`))
  })

  test('is asked less and less often', async () => {
    await using it = await rig(PAIR, { callTimeout: '5m' })
    it.fake.fail({ how: 'silent', unit: it.fake.units[1]! })
    const begun = performance.now()
    for (let i = 0; i < 20; i += 1) await present(it.lb, WEB1)
    const asked = it.fake.requests.filter(({ unit }) => unit === it.fake.units[1])
    expect(asked.length).toBeLessThanOrEqual(mostSince(begun))
  })

  test('leaves no request behind after a look', async () => {
    await using it = await rig(PAIR, { callTimeout: '5m' })
    const recovers = it.fake.fail({ how: 'silent', unit: it.fake.units[1]! })
    await present(it.lb, WEB1)
    await recovers()
    await it.lb.close()
    expect(it.fake.tokens).toBe(0)
  })

  test('is waited for once the other unit is not active any more', async () => {
    await using it = await rig({ pair: { autoSync: true } }, { callTimeout: '5m' })
    const recovers = it.fake.fail({ how: 'silent', unit: it.fake.units[1]! })
    await present(it.lb, WEB1)
    await it.fake.failover()
    await recovers()
    const [, second] = it.fake.urls.map((url) => new URL(url).host)
    const { scopes } = await present(it.lb, WEB1)
    expect(scopes.map(({ scope }) => scope)).toContain(second)
  })

  test('is a scope to wait for if its role is not told', async () => {
    await using it = await rig(PAIR)
    it.fake.fail({ match: /cm\/device/, how: 'status', status: 403 })
    it.fake.fail({ how: 'refuse', unit: it.fake.units[1]! })
    const { scopes } = await present(it.lb, WEB1)
    expect(scopes.map(({ state }) => state).sort()).toEqual(['read', 'unread'])
  })

  test('is no standby if the other calls it offline: it may be unheard', async () => {
    await using it = await rig(PAIR)
    const names = it.fake.units
    const item = (name: string, failoverState: string, selfDevice: string) => ({
      ...{ name, fullPath: `/Common/${name}`, failoverState, selfDevice },
    })
    const body = {
      kind: 'tm:cm:device:devicecollectionstate',
      items: [item(names[0]!, 'active', 'true'), item(names[1]!, 'offline', 'false')],
    }
    it.fake.fail({ match: /cm\/device/, how: 'status', status: 200, body })
    it.fake.fail({ how: 'refuse', unit: names[1]! })
    const { scopes } = await present(it.lb, WEB1)
    expect(scopes.map(({ state }) => state).sort()).toEqual(['read', 'unread'])
  })

  test('does not delay a change', async () => {
    await using it = await rig(PAIR, { callTimeout: '5m' })
    it.fake.fail({ how: 'silent', unit: it.fake.units[1]! })
    const [result] = await it.lb.apply([hold], ctx())
    expect(result).toMatchObject({ status: 'applied' })
  })
})

test.concurrent('a formerly active unit that hangs is waited for', async () => {
  await using it = await rig({ pair: { autoSync: true } }, { callTimeout: '2s' })
  await it.fake.occupy(WEB1)
  await present(it.lb, WEB1)
  await it.fake.failover()
  const recovers = it.fake.fail({ how: 'silent', unit: it.fake.units[0]! })
  const run = startDrain(it.lb, WEB1, FAST)
  await until('it is disabled', () => it.fake.state(WEB1) === 'drain')
  await until('that is why', () => run.why().some(({ code }) => code === 'unreadable'))
  await recovers()
  expect((await run.done).outcome).toBe('idle')
  await run.close()
})

describe.concurrent('units that do not know each other', () => {
  const called = (name: string) => ({
    kind: 'x',
    items: [{ name, selfDevice: 'true', failoverState: 'active' }],
  })

  test.each(['edge9', undefined])('are two balancers, called %s', async (name) => {
    await using one = await rig()
    await using two = await rig({ pair: true })
    const { username, password } = one.fake
    const url = [one.fake.url, two.fake.url]
    await using lb = f5Bigip({ url, username, password })
    // Without another name both fakes call their first unit alike.
    const body = name === undefined ? undefined : called(name)
    if (body !== undefined) one.fake.fail({ match: /cm\/device/, how: 'status', status: 200, body })
    await expect(lb.observe([WEB1], ctx())).rejects.toMatchObject({
      code: 'INVALID_OPTIONS',
      message: expect.stringContaining('combineProviders()') as string,
    })
    const all = [...lines(one.fake), ...lines(two.fake)]
    expect(all.filter((line) => line.startsWith('PATCH'))).toEqual([])
  })
})

test.concurrent('a pair is asked once whether its units know each other', async () => {
  await using it = await rig(PAIR)
  for (let i = 0; i < 3; i += 1) await present(it.lb, WEB1)
  const asked = lines(it.fake).filter((line) => line.endsWith('/cm/device'))
  expect(asked).toHaveLength(2)
  await using other = connect(it.fake, { url: it.fake.url })
  await present(other, WEB1)
  expect(lines(it.fake).filter((line) => line.endsWith('/cm/device'))).toHaveLength(2)
})

test.concurrent('the version is that of the first unit that answers', async () => {
  await using it = await rig(PAIR, { callTimeout: '5m' })
  it.fake.fail({ how: 'silent', unit: it.fake.units[0]! })
  expect((await it.lb.describe(ctx())).version).toBe('15.1.10')
})
