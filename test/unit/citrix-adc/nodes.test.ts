import { drain } from 'drainable'
import { citrixAdc } from 'drainable/citrix-adc'
import { startFake } from 'drainable/testing/citrix-adc'
import { describe, expect, test } from 'vitest'
import { context, rig, WEB1, WEB2 } from './rig.js'

const LOGIN = { username: 'admin', password: 'secret' } as const
const NSIPS = ['192.0.2.240', '192.0.2.241'] as const
const POOLS = { web: [WEB1.member, WEB2.member] }

describe('a node that hangs', { concurrent: true }, () => {
  test('as the secondary delays no call', async () => {
    await using at = await rig({ ha: true }, { callTimeout: '5m' })
    const { fake, adc } = at
    await fake.failover() // the first address is the secondary now
    fake.fail({ how: 'silent', node: NSIPS[0] })
    // Its limit for one call is longer than this test may take: nothing of the drain waits for that.
    const report = await drain(adc, WEB1, { timeout: '50s' })
    expect(report).toMatchObject({ outcome: 'idle', members: [{ verifiedIdle: true }] })
  }, 60_000)

  test('as the former primary is left once the other is primary', async () => {
    await using at = await rig({ ha: true }, { callTimeout: '6s' })
    const { fake, adc } = at
    await adc.observe([WEB1], context())
    fake.fail({ how: 'silent', node: NSIPS[0] })
    await fake.failover()
    const { readings } = await adc.observe([WEB1], context())
    expect(readings).toMatchObject([{ present: true, scopes: [{ scope: NSIPS[1] }] }])
  })
})

describe('addresses of different pairs', { concurrent: true }, () => {
  test('are refused before anything is changed', async () => {
    await using pair = await startFake({ tls: false, ha: true, pools: POOLS })
    await using stranger = await startFake({ tls: false, pools: POOLS, address: '203.0.113.9' })
    await using adc = citrixAdc({ ...LOGIN, url: [...pair.urls, stranger.url] })
    await expect(drain(adc, WEB1, { timeout: '50s' })).rejects.toMatchObject({
      code: 'INVALID_OPTIONS',
      message: expect.stringMatching(/203\.0\.113\.9 and no node of the pair/) as unknown,
    })
    expect([pair, stranger].map((fake) => fake.look(WEB1).enabled)).toEqual([true, true])
    await using same = citrixAdc({ ...LOGIN, url: [...pair.urls, pair.snip] })
    expect((await same.describe(context())).product).toBe('citrix-adc')
  })

  test('are refused even if the second one answers late', async () => {
    await using first = await startFake({ tls: false, pools: POOLS })
    await using second = await startFake({ tls: false, pools: POOLS, address: '203.0.113.9' })
    const lift = second.fail({ how: 'silent' })
    const url = [first.url, second.url]
    await using adc = citrixAdc({ ...LOGIN, url, callTimeout: '10s' })
    await adc.describe(context())
    await lift()
    first.fail({ how: 'refuse' })
    await expect(adc.observe([WEB1], context())).rejects.toMatchObject({ code: 'INVALID_OPTIONS' })
  })
})

test('a refused password is not sent again and again', async () => {
  await using at = await rig({}, { password: 'wrong' })
  const ctx = context()
  for (let i = 0; i < 12; i++) {
    await expect(at.adc.observe([WEB1], ctx)).rejects.toMatchObject({ code: 'UNAUTHENTICATED' })
  }
  expect(at.fake.requests).toHaveLength(1)
})

test('a refused password in headers is not sent again and again', async () => {
  await using at = await rig({}, { password: 'wrong', auth: 'headers' })
  const ctx = context()
  for (let i = 0; i < 12; i++) {
    await expect(at.adc.observe([WEB1], ctx)).rejects.toMatchObject({ code: 'UNAUTHENTICATED' })
  }
  expect(at.fake.requests).toHaveLength(1)
})
