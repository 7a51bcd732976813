import { expect, test } from 'vitest'
import { ready, startDrain, watch, type DrainableProvider } from 'drainable'
import type { FakeClock } from 'drainable/testing'
import { pause } from '../../../../src/provider/clock.js'
import { sendThrough } from '../balancer.js'
import { only, web1 } from '../set-up.js'
import { rig } from '../rig.js'

/** Each look is delivered so long after it was taken. */
function deliveredAfter(lb: DrainableProvider, clock: FakeClock, delay: number): void {
  const observe = lb.observe.bind(lb)
  lb.observe = async (refs, ctx) => {
    const snapshot = await observe(refs, ctx)
    await pause(clock, delay, ctx.signal)
    return snapshot
  }
}

// A reload while the action runs, and the action ends while the hold is put back: nobody holds the member any more when the
// answer comes, and ready() has asked for its first look before that.
test('ready() does not go by a look from before the last hold was put back', async () => {
  const { clock, lb } = rig()
  deliveredAfter(lb, clock, 30)
  const drained = startDrain(lb, web1, { clock, timeout: '1m' })
  await clock.runUntil(drained.done)
  const opened = new Promise<Promise<unknown>>((resolve) => {
    sendThrough(lb, async (changes, ctx, apply) => {
      if (changes[0]?.kind === 'hold') {
        void drained.release()
        resolve(ready(lb, web1, { clock, waitHealthy: '20s' }))
      }
      await pause(clock, 20, ctx.signal)
      return apply(changes, ctx)
    })
  })
  lb.reload()
  await clock.runUntil(opened)
  expect(lb.state(web1)).toBe('ready')
})

test('ready() does not go by a look from before it was called', async () => {
  const { clock, lb } = rig()
  deliveredAfter(lb, clock, 100)
  const watched = watch(lb, web1, { clock })
  await clock.advance(130) // its second look is under way
  lb.setBehind(web1, 'maint')
  await clock.advance(10)
  await clock.runUntil(ready(lb, web1, { clock }))
  expect(lb.state(web1)).toBe('ready')
  await watched.close()
})

test('an undo does not go back to a state that another undo has taken back', async () => {
  const { clock, lb } = rig()
  const first = startDrain(lb, web1, { clock, timeout: '1m', seal: false })
  await clock.runUntil(first.done)
  deliveredAfter(lb, clock, 20)
  const undoing = first.restore()
  await clock.advance(130)
  const second = startDrain(lb, web1, { clock, timeout: '1m' }) // its first look shows the hold
  await clock.advance(20)
  const undone = only(await clock.runUntil(second.restore()))
  expect([undone.outcome, undone.error, lb.state(web1)]).toEqual(['restored', undefined, 'ready'])
  await clock.runUntil(undoing)
})
