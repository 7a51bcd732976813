import { drain, isDrainableError, type DrainReport } from 'drainable'
import type { FakeOptions } from 'drainable/testing/citrix-adc'
import { describe, expect, test } from 'vitest'
import { ioClock, type IoClock } from '../../../support/io-clock.js'
import { rig, WEB1, WEB2, type Rig } from '../rig.js'

const MEMBERS = [WEB1.member, WEB2.member]
const TCP = { members: MEMBERS, servicetype: 'TCP' } as const
const UNCOUNTED = 'clients with an entry can come until OUT OF SERVICE'

/** An appliance at its own pace, and a provider with its own defaults. */
async function appliance(clock: IoClock, options: FakeOptions): Promise<Rig> {
  const own = { tls: false, tick: 1_000, statInterval: 7_000, clock }
  return rig({ ...own, ...options }, { freshness: '8s' })
}

/** The same, and a client with a persistence entry that comes back `every` ms for 200 ms, as far as it is let in. */
async function visited(
  clock: IoClock,
  every: number,
  options: FakeOptions,
): Promise<Rig & { readonly forget: () => Promise<void> }> {
  const at = await appliance(clock, options)
  const { fake } = at
  const forget = await fake.occupy(WEB1, { persistent: 1 })
  let cancel: () => void
  const wait = (): void => {
    cancel = clock.setTimeout(() => void visit(), every)
  }
  const visit = async (): Promise<void> => {
    wait()
    if (!fake.arrive(WEB1, { persistent: true })) return
    const leave = await fake.occupy(WEB1, { active: 1 })
    clock.setTimeout(() => void leave(), 200)
  }
  wait()
  return {
    ...at,
    forget,
    async [Symbol.asyncDispose]() {
      cancel()
      await at[Symbol.asyncDispose]()
    },
  }
}

/** The drain's report, also of one that failed. */
async function reportOf(drained: Promise<DrainReport>): Promise<DrainReport> {
  try {
    return await drained
  } catch (error) {
    if (isDrainableError(error) && error.report !== undefined) return error.report
    throw error
  }
}

describe('a member that a persistent client comes back to', () => {
  test.each(['both', 'single'] as const)(
    'is not idle while its requests are counted (%s)',
    async (memberTotals) => {
      using clock = ioClock()
      await using at = await visited(clock, 3_300, { memberTotals })
      const drained = drain(at.adc, WEB1, { timeout: '1m', clock })
      const { outcome, members } = await clock.run(reportOf(drained))
      expect(outcome).toBe('timeout')
      const said = members[0]!.why.filter(({ code }) => code === 'persistence')
      expect(said[0]?.text).toContain('more arrived after the drain took effect')
    },
  )

  test.each<[string, FakeOptions]>([
    ['HTTP without totals', { memberTotals: 'nowhere' }],
    ['TCP', { pools: { web: TCP } }],
    ['SSL_BRIDGE', { pools: { web: { ...TCP, servicetype: 'SSL_BRIDGE' } } }],
    ['UDP', { pools: { web: { ...TCP, servicetype: 'UDP' } } }],
  ])('is idle at the deadline only, and not verified: %s', async (_, options) => {
    using clock = ioClock()
    await using at = await visited(clock, 6_700, options)
    const drained = drain(at.adc, WEB1, { timeout: '1m', clock })
    const { elapsed, members } = await clock.run(drained)
    expect(elapsed).toBeGreaterThanOrEqual(60_000)
    expect(members).toMatchObject([{ outcome: 'idle', verifiedIdle: false, sealed: false }])
    expect(members[0]!.why.map(({ text }) => text)).toEqual([UNCOUNTED])
  })

  test('is verified idle once its entry has run out', async () => {
    using clock = ioClock()
    await using at = await visited(clock, 6_700, { pools: { web: TCP } })
    clock.setTimeout(() => void at.forget(), 30_000)
    const { elapsed, members } = await clock.run(drain(at.adc, WEB1, { timeout: '1m', clock }))
    expect(elapsed).toBeGreaterThanOrEqual(30_000)
    expect(members).toMatchObject([{ verifiedIdle: true, sealed: true, why: [] }])
    expect(at.fake.look(WEB1)).toMatchObject({ svrstate: 'OUT OF SERVICE', active: 0 })
  })

  test('is verified in seconds with trofsPersistence off', async () => {
    using clock = ioClock()
    const front = { members: [], groups: ['web'], trofspersistence: 'DISABLED' } as const
    await using at = await visited(clock, 2_000, { pools: { web: TCP }, vservers: { front } })
    const { elapsed, members } = await clock.run(drain(at.adc, WEB1, { timeout: '1m', clock }))
    expect(elapsed).toBeLessThan(15_000)
    expect(members).toMatchObject([{ verifiedIdle: true, sealed: true }])
  })
})

test('a TCP member that nobody comes back to is verified in seconds', async () => {
  using clock = ioClock()
  await using at = await appliance(clock, { pools: { web: TCP } })
  const { elapsed, members } = await clock.run(drain(at.adc, WEB1, { timeout: '1m', clock }))
  expect(elapsed).toBeLessThan(15_000)
  expect(members).toMatchObject([{ verifiedIdle: true, sealed: true, why: [] }])
})

describe('with downStateFlush off', () => {
  const pools = { web: { ...TCP, downstateflush: 'DISABLED' } } as const

  test('OUT OF SERVICE is no proof', async () => {
    using clock = ioClock()
    await using at = await appliance(clock, { pools })
    const { fake, adc } = at
    const end = await fake.occupy(WEB1)
    clock.setTimeout(() => void fake.setBehind(WEB1, 'maint'), 10_000)
    clock.setTimeout(() => void end(), 40_000)
    const { elapsed, members } = await clock.run(drain(adc, WEB1, { timeout: '2m', clock }))
    expect(elapsed).toBeGreaterThanOrEqual(48_000)
    expect(members).toMatchObject([{ verifiedIdle: true, sealed: true }])
    expect(fake.look(WEB1)).toMatchObject({ svrstate: 'OUT OF SERVICE', cut: 0 })
  })

  test('zeros from before OUT OF SERVICE prove nothing', async () => {
    using clock = ioClock()
    await using at = await visited(clock, 6_700, { pools })
    clock.setTimeout(() => void at.forget(), 30_000)
    const { elapsed, members } = await clock.run(drain(at.adc, WEB1, { timeout: '2m', clock }))
    expect(elapsed).toBeGreaterThanOrEqual(38_000)
    expect(members).toMatchObject([{ verifiedIdle: true, sealed: true, why: [] }])
  })
})
