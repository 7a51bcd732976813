import { expect, test } from 'vitest'
import { startDrain, type DrainReport } from 'drainable'
import { web1, web2 } from '../set-up.js'
import { isHold, rig, type Rig } from '../rig.js'

/** The first call that changes something hangs, and is carried out then. */
function hang({ clock, lb }: Rig, until: number): void {
  const apply = lb.apply.bind(lb)
  let first = true
  lb.apply = (changes, ctx) => {
    if (!first || !changes.some(isHold)) return apply(changes, ctx)
    first = false
    const own = { ...ctx, signal: new AbortController().signal }
    return new Promise((resolve, reject) => {
      clock.setTimeout(() => {
        if (!ctx.signal.aborted) resolve(apply(changes, own))
      }, until)
      ctx.signal.addEventListener('abort', () => reject(ctx.signal.reason))
    })
  }
}

test('an undo waits for a call that others still wait for', async () => {
  const both = rig({ capabilities: { lateBound: 500 } })
  const { clock, lb } = both
  for (const ref of [web1, web2]) lb.occupy(ref)
  const policy = { clock, keepReady: 0, settle: '100ms' } as const
  const one = startDrain(lb, web1, { ...policy, timeout: '2s' })
  const two = startDrain(lb, web2, { ...policy, timeout: '1m' })
  await clock.advance(1_000)
  hang(both, 12_000)
  lb.reload() // one look shows both, one call puts both back
  await clock.runUntil(one.done)
  let undone: DrainReport | undefined
  void one.restore().then((report) => (undone = report))
  await clock.advance(6_000)
  expect(undone).toBeUndefined()
  await clock.advance(8_000)
  expect([undone?.outcome, lb.state(web1)]).toEqual(['restored', 'ready'])
  await two.release()
})

test('a release waits for its call, so that the ticket can move on', async () => {
  const both = rig({ capabilities: { lateBound: 500 } })
  const { clock, lb } = both
  hang(both, 60_000)
  const run = startDrain(lb, web1, { clock, timeout: '1m' })
  await clock.advance(100)
  let released = false
  void run.release().then(() => (released = true))
  await clock.advance(1_900)
  expect(released).toBe(false)
  await clock.advance(200)
  expect(released).toBe(true)
})
