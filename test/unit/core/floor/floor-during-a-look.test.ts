import { startDrain, type Drain } from 'drainable'
import type { DrainableProvider, MemberRef } from 'drainable/provider'
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
