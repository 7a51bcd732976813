import { randomUUID } from 'node:crypto'
import { drain, startDrain } from 'drainable'
import { fakeClock, type FakeClock, type FakeProvider, fakeProvider } from 'drainable/testing'
import { describe, expect, test } from 'vitest'
import { flush } from '../settled.js'

const WEB1 = { pool: 'web', member: 'web1' }

interface Busy {
  readonly lb: FakeProvider
  readonly end: () => void
  readonly run: ReturnType<typeof startDrain>
}

/** A drain on a balancer of its own, with a request in flight that does not end by itself. */
function busyDrain(clock: FakeClock): Busy {
  const lb = fakeProvider({
    instance: randomUUID(),
    clock,
    pools: { web: ['web1', 'web2'] },
  })
  const end = lb.occupy(WEB1)
  return { lb, end, run: startDrain(lb, WEB1, { timeout: Infinity, clock }) }
}

type Looking = Pick<Busy, 'lb'>

const looksOf = (drains: readonly Looking[]): number =>
  drains.reduce(
    (sum, { lb }) => sum + lb.requests.filter(({ verb }) => verb === 'observe').length,
    0,
  )

async function looksIn(drains: readonly Looking[], clock: FakeClock, ms: number): Promise<number> {
  const before = looksOf(drains)
  for (let spent = 0; spent < ms; spent += 100) await clock.advance(100)
  return looksOf(drains) - before
}

async function letGo(drains: readonly Busy[]): Promise<void> {
  await Promise.all(drains.map(({ run }) => run.release()))
}

describe('drains on many balancers of one process', () => {
  test('look at most 250 times a second together', async () => {
    const clock = fakeClock()
    const drains = Array.from({ length: 50 }, () => busyDrain(clock))
    await clock.advance(2_000)
    const looks = await looksIn(drains, clock, 4_000)
    expect(looks).toBeGreaterThan(900)
    expect(looks).toBeLessThanOrEqual(1_050)
    for (const { end } of drains) end()
    await clock.advance(5_000)
    for (const { run } of drains) expect((await run.done).outcome).toBe('idle')
    expect(await looksIn(drains, clock, 4_000)).toBeLessThanOrEqual(1_050)
    await letGo(drains)
  })

  test('leave an idle one its own pace', async () => {
    const clock = fakeClock()
    const drains = Array.from({ length: 20 }, () => busyDrain(clock))
    await clock.advance(2_000)
    const [kept, ...others] = drains
    expect(await looksIn([kept!], clock, 1_000)).toBeLessThan(20)
    await letGo(others)
    await flush()
    await clock.advance(200)
    expect(await looksIn([kept!], clock, 1_000)).toBeGreaterThan(80)
    await letGo([kept!])
  })

  test('look at most 1,000 times a second together while actions run', async () => {
    const clock = fakeClock()
    const over = Promise.withResolvers<undefined>()
    const drains = Array.from({ length: 40 }, () => {
      const lb = fakeProvider({ instance: randomUUID(), clock, pools: { web: ['web1', 'web2'] } })
      const policy = { timeout: '1m', settle: '0ms', clock } as const
      return { lb, acted: drain(lb, WEB1, policy, () => over.promise) }
    })
    await clock.advance(2_000)
    const looks = await looksIn(drains, clock, 2_000)
    expect(looks).toBeGreaterThan(1_800)
    expect(looks).toBeLessThanOrEqual(2_080)
    over.resolve(undefined)
    await Promise.all(drains.map(({ acted }) => acted))
  })

  test('do not slow down those of another clock', async () => {
    const clock = fakeClock()
    const drains = Array.from({ length: 20 }, () => busyDrain(clock))
    const elsewhere = fakeClock()
    const other = busyDrain(elsewhere)
    await clock.advance(1_000)
    await elsewhere.advance(1_000)
    expect(await looksIn([other], elsewhere, 1_000)).toBeGreaterThan(80)
    await letGo([...drains, other])
  })
})
