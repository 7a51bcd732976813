import { expect, test } from 'vitest'
import { ready, startDrain } from 'drainable'
import { pause } from '../../../../src/provider/clock.js'
import { sendThrough } from '../balancer.js'
import { web1 } from '../set-up.js'
import { rig } from '../rig.js'

// A reload while the action runs, and the action ends while the hold is put back: nobody holds the member any more when the
// answer comes, and ready() has asked for its first look before that.
test('ready() does not go by a look from before the last hold was put back', async () => {
  const { clock, lb } = rig()
  const observe = lb.observe.bind(lb)
  lb.observe = async (refs, ctx) => {
    const snapshot = await observe(refs, ctx)
    await pause(clock, 30, ctx.signal)
    return snapshot
  }
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
