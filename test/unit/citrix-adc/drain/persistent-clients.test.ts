import { drain, isDrainableError, type DrainReport } from 'drainable'
import type { CitrixFake, FakeOptions } from 'drainable/testing/citrix-adc'
import { describe, expect, test } from 'vitest'
import { ioClock, type IoClock } from '../../../support/io-clock.js'
import { rig, WEB1, WEB2, type Rig } from '../rig.js'

const MEMBERS = [WEB1.member, WEB2.member]
const UNCOUNTED = 'clients with an entry can come until OUT OF SERVICE'

/** An appliance at its own pace, and a provider with its own defaults. */
async function appliance(clock: IoClock, options: FakeOptions): Promise<Rig> {
  const own = { tls: false, tick: 1_000, statInterval: 7_000, clock }
  return rig({ ...own, ...options }, { freshness: '8s' })
}

/** A client with a persistence entry that comes back `every` ms and stays 200 ms, where it is let in. */
async function comesBack(
  fake: CitrixFake,
  clock: IoClock,
  every: number,
): Promise<{ readonly forget: () => Promise<void>; readonly [Symbol.dispose]: () => void }> {
  const forget = await fake.occupy(WEB1, { persistent: 1 })
  let next: () => void = () => undefined
  const wait = (): void => {
    next = clock.setTimeout(() => void visit(), every)
  }
  const visit = async (): Promise<void> => {
    wait()
    if (!fake.arrive(WEB1, { persistent: true })) return
    const leave = await fake.occupy(WEB1, { active: 1 })
    clock.setTimeout(() => void leave(), 200)
  }
  wait()
  return { forget, [Symbol.dispose]: () => next() }
}

/** The drain's report, also of one that failed. */
async function reportOf(drained: Promise<DrainReport>): Promise<DrainReport> {
  try {
    return await drained
  } catch (error) {
    if (isDrainableError(error) && error.report !== undefined) return error.report as DrainReport
    throw error
  }
}

describe('a member that a persistent client comes back to', () => {
  test.each(['both', 'single'] as const)(
    'is not idle while its requests are counted (%s)',
    async (memberTotals) => {
      using clock = ioClock()
      await using at = await appliance(clock, { memberTotals })
      using _client = await comesBack(at.fake, clock, 3_300)
      const drained = drain(at.adc, WEB1, { timeout: '1m', clock })
      const { outcome, members } = await clock.run(reportOf(drained))
      expect(outcome).toBe('timeout')
      expect(members[0]!.why).toContainEqual(
        expect.objectContaining({ code: 'persistence', text: expect.stringContaining('arrived') }),
      )
    },
  )

  test.each<[string, FakeOptions]>([
    ['HTTP without totals', { memberTotals: 'nowhere' }],
    ['TCP', { pools: { web: { members: MEMBERS, servicetype: 'TCP' } } }],
    ['SSL_BRIDGE', { pools: { web: { members: MEMBERS, servicetype: 'SSL_BRIDGE' } } }],
    ['UDP', { pools: { web: { members: MEMBERS, servicetype: 'UDP' } } }],
  ])('is idle at the deadline only, and not verified: %s', async (_, options) => {
    using clock = ioClock()
    await using at = await appliance(clock, options)
    using _client = await comesBack(at.fake, clock, 6_700)
    const drained = drain(at.adc, WEB1, { timeout: '1m', clock })
    const { elapsed, members } = await clock.run(drained)
    expect(elapsed).toBeGreaterThanOrEqual(60_000)
    expect(members).toMatchObject([{ outcome: 'idle', verifiedIdle: false, sealed: false }])
    expect(members[0]!.why.map(({ text }) => text)).toEqual([UNCOUNTED])
  })

  test('is verified idle once its entry has run out', async () => {
    using clock = ioClock()
    await using at = await appliance(clock, {
      pools: { web: { members: MEMBERS, servicetype: 'TCP' } },
    })
    using client = await comesBack(at.fake, clock, 6_700)
    clock.setTimeout(() => void client.forget(), 30_000)
    const { elapsed, members } = await clock.run(drain(at.adc, WEB1, { timeout: '1m', clock }))
    expect(elapsed).toBeGreaterThanOrEqual(30_000)
    expect(members).toMatchObject([{ verifiedIdle: true, sealed: true, why: [] }])
    expect(at.fake.look(WEB1)).toMatchObject({ svrstate: 'OUT OF SERVICE', active: 0 })
  })
})

test('a TCP member that nobody comes back to is verified in seconds', async () => {
  using clock = ioClock()
  await using at = await appliance(clock, {
    pools: { web: { members: MEMBERS, servicetype: 'TCP' } },
  })
  const { elapsed, members } = await clock.run(drain(at.adc, WEB1, { timeout: '1m', clock }))
  expect(elapsed).toBeLessThan(15_000)
  expect(members).toMatchObject([{ verifiedIdle: true, sealed: true, why: [] }])
})

test('with trofsPersistence off a persistence entry keeps no member', async () => {
  using clock = ioClock()
  const front = { members: [], groups: ['web'], trofspersistence: 'DISABLED' } as const
  await using at = await appliance(clock, {
    pools: { web: { members: MEMBERS, servicetype: 'TCP' } },
    vservers: { front },
  })
  using _client = await comesBack(at.fake, clock, 2_000)
  const { members } = await clock.run(drain(at.adc, WEB1, { timeout: '1m', clock }))
  expect(members).toMatchObject([{ verifiedIdle: true, sealed: true }])
})

test('OUT OF SERVICE is no proof where downStateFlush is off', async () => {
  using clock = ioClock()
  await using at = await appliance(clock, {
    pools: { web: { members: MEMBERS, servicetype: 'TCP', downstateflush: 'DISABLED' } },
  })
  const { fake, adc } = at
  const end = await fake.occupy(WEB1)
  clock.setTimeout(() => void fake.setBehind(WEB1, 'maint'), 10_000)
  clock.setTimeout(() => void end(), 40_000)
  const { elapsed, members } = await clock.run(drain(adc, WEB1, { timeout: '2m', clock }))
  expect(elapsed).toBeGreaterThanOrEqual(48_000)
  expect(members).toMatchObject([{ verifiedIdle: true, sealed: true }])
  expect(fake.look(WEB1)).toMatchObject({ svrstate: 'OUT OF SERVICE', cut: 0 })
})

test('zeros from before OUT OF SERVICE prove nothing where downStateFlush is off', async () => {
  using clock = ioClock()
  await using at = await appliance(clock, {
    pools: { web: { members: MEMBERS, servicetype: 'TCP', downstateflush: 'DISABLED' } },
  })
  using client = await comesBack(at.fake, clock, 6_700)
  clock.setTimeout(() => void client.forget(), 30_000)
  const { elapsed, members } = await clock.run(drain(at.adc, WEB1, { timeout: '2m', clock }))
  expect(elapsed).toBeGreaterThanOrEqual(38_000)
  expect(members).toMatchObject([{ verifiedIdle: true, sealed: true, why: [] }])
})
