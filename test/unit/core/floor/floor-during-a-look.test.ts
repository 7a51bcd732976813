import { startDrain, type Drain } from 'drainable'
import type { DrainableProvider, MemberRef } from 'drainable/provider'
import { fakeClock, type FakeClock } from 'drainable/testing'
import { describe, expect, test } from 'vitest'
import { anotherObject, rig } from '../rig.js'

const web = (n: number): MemberRef => ({ pool: 'web', member: `web${n}` })
const FOUR = [1, 2, 3, 4].map(web)

/** Another provider object: in each of its looks, before the balancer is read, another member is drained. */
function meddled(size: number, others: readonly MemberRef[]) {
  const pool = Array.from({ length: size }, (_, i) => `web${i + 1}`)
  const { clock, lb } = rig({ pools: { web: pool } })
  const runs: Drain[] = []
  const slow: DrainableProvider = {
    ...anotherObject(lb),
    observe: async (refs, ctx) => {
      const ref = others[runs.length]
      if (ref === undefined) return lb.observe(refs, ctx)
      runs.push(startDrain(lb, ref, { clock, timeout: '10m' }))
      while (lb.state(ref) === 'ready') {
        await new Promise<void>((resolve) => clock.setTimeout(resolve, 1))
      }
      return lb.observe(refs, ctx)
    },
  }
  return { clock, lb, slow, runs }
}

// A member with a wish newer than another drain's look may be down in that look already, and be counted twice.
describe('places that were taken while a look was under way', () => {
  test('are counted once, however many looks that takes', async () => {
    const { clock, slow, runs } = meddled(6, FOUR)
    await using last = startDrain(slow, web(5), { clock, timeout: '10m' })
    expect((await clock.runUntil(last.done)).outcome).toBe('idle')
    for (const run of runs) await run.release()
  })

  test('leave no place for a drain that would take the last member', async () => {
    const { clock, lb, slow, runs } = meddled(5, FOUR)
    await using last = startDrain(slow, web(5), { clock, timeout: '10m' })
    const { outcome, error } = await clock.runUntil(last.done)
    expect([outcome, error?.code]).toEqual(['refused', 'POOL_AT_MINIMUM'])
    expect(lb.state(web(5))).toBe('ready')
    for (const run of runs) await run.release()
  })
})

/** A clock that never shows one moment twice, like a machine's. */
function running(clock: FakeClock): FakeClock {
  const now = clock.now.bind(clock)
  let read = 0
  clock.now = () => now() + (read += 1) / 1e6
  return clock
}

/** Six members, four of them in maint: drains take these over during one look of another provider object. */
function takenOver(during: number) {
  const pool = [1, 2, 3, 4, 5, 6].map((n) => `web${n}`)
  const clock = running(fakeClock(1_000))
  const { lb } = rig({ pools: { web: pool }, clock })
  for (const ref of FOUR) lb.setBehind(ref, 'maint')
  const runs: Drain[] = []
  let looks = 0
  const slow: DrainableProvider = {
    ...anotherObject(lb),
    observe: async (refs, ctx) => {
      const snapshot = await lb.observe(refs, ctx)
      if (++looks !== during) return snapshot
      runs.push(...FOUR.map((ref) => startDrain(lb, ref, { clock, timeout: '10m' })))
      await Promise.all(runs.map((run) => run.ticket))
      return snapshot
    },
  }
  return { clock, lb, slow, runs }
}

// Such members are down in every look: the next one shows it.
describe.each([1, 2, 3])('members in maint that are taken over during look %i', (during) => {
  test.each(['fail', 'wait'] as const)(
    'take no place of another, onMinimum %s',
    async (onMinimum) => {
      const { clock, lb, slow, runs } = takenOver(during)
      await using other = startDrain(slow, web(5), { clock, timeout: '10m', onMinimum })
      expect((await clock.runUntil(other.done)).outcome).toBe('idle')
      expect(lb.state(web(6))).toBe('ready')
      expect(runs).toHaveLength(4)
      for (const run of runs) await run.release()
    },
  )

  test('leave no place for the drain of the last one', async () => {
    const { clock, lb, slow, runs } = takenOver(during)
    lb.setBehind(web(6), 'maint')
    await using other = startDrain(slow, web(5), { clock, timeout: '10s', onMinimum: 'wait' })
    const { outcome, members } = await clock.runUntil(other.done)
    expect([outcome, members[0]?.error?.code]).toEqual(['refused', 'POOL_AT_MINIMUM'])
    expect(lb.state(web(5))).toBe('ready')
    for (const run of runs) await run.release()
  })
})
