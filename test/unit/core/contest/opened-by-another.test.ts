import { describe, expect, test } from 'vitest'
import { startDrain, type Drain } from 'drainable'
import { only, web1 } from '../set-up.js'
import { loseAnswer, rig, type Rig } from '../rig.js'

const LATE_BOUND = 10_000
/** How long after the call the balancer carries the undo out. */
const LATE = 8_000

/**
 * web1 was drained by an operator, raised to maint by one drain, and is waited for by another one. The first is undone,
 * and the answer of that is lost.
 */
async function undone(undo: (first: Drain, controller: AbortController) => void): Promise<{
  readonly both: Rig
  readonly second: Drain
  readonly end: () => void
}> {
  const both = rig({ capabilities: { lateBound: LATE_BOUND } })
  const { clock, lb } = both
  lb.setBehind(web1, 'drain')
  const end = lb.occupy(web1)
  const controller = new AbortController()
  const policy = { timeout: '10m', hold: 'maint', onAbort: 'restore' } as const
  const first = startDrain(lb, web1, { clock, ...policy, signal: controller.signal })
  await clock.runUntil(first.inForce)
  const second = startDrain(lb, web1, { clock, timeout: '10m' })
  await clock.runUntil(second.inForce)
  loseAnswer(lb, clock, ({ kind }) => kind === 'restore', LATE)
  undo(first, controller)
  return { both, second, end }
}

describe('a drain of a member that another run of this process is opening', () => {
  test.each([
    ['restore() of its handle', (first: Drain) => void first.restore().catch(() => undefined)],
    [
      'an abort, which waits no longer than 5 s',
      (_: Drain, controller: AbortController) => controller.abort(new Error('enough')),
    ],
  ])('is not idle before the lost undo has come: %s', async (_, undo) => {
    const { both, second, end } = await undone(undo)
    const { clock, lb } = both
    await clock.advance(200)
    end()
    await clock.advance(6_500)
    // The undo was repeated and came; the first one would still open the member, which is sealed now.
    expect([lb.state(web1), second.report().members[0]?.verifiedIdle]).toEqual(['drain', false])
    const report = await clock.runUntil(second.done, 60_000)
    expect(only(report)).toMatchObject({ outcome: 'idle', verifiedIdle: true })
    expect(lb.state(web1)).toBe('maint') // sealed again by the second drain
    await clock.runUntil(second.release())
  })
})
