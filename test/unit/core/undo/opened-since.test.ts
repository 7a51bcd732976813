import { describe, expect, test } from 'vitest'
import { ready, startDrain, type Drain, type DrainableProvider } from 'drainable'
import { only, web1 } from '../set-up.js'
import { anotherObject, rig, type Rig } from '../rig.js'

/** web1 drained, opened again by another call of this process, and drained by another client since. */
async function drainedAnew(
  { clock, lb }: Rig,
  opener: DrainableProvider,
  giveUp?: (run: Drain) => void,
): Promise<Drain> {
  const controller = new AbortController()
  const run = startDrain(lb, web1, { clock, timeout: '1m', signal: controller.signal })
  await clock.advance(500)
  giveUp?.(run)
  if (giveUp !== undefined) controller.abort(new Error('enough'))
  await clock.advance(0)
  await clock.runUntil(ready(opener, web1, { clock }))
  await clock.runUntil(run.done)
  lb.setBehind(web1, 'drain')
  return run
}

describe('a change by another client after a call of this process opened', () => {
  test('is left alone by the undo of the drain before', async () => {
    const both = rig()
    const run = await drainedAnew(both, both.lb)
    const report = await both.clock.runUntil(run.restore())
    expect(only(report)).toMatchObject({ outcome: 'overruled', error: { code: 'CONFLICT' } })
    expect(both.lb.state(web1)).toBe('drain')
  })

  test('is left alone after an abort as well', async () => {
    const both = rig()
    const run = await drainedAnew(both, both.lb, () => undefined)
    const report = await both.clock.runUntil(run.restore())
    expect([only(report).outcome, both.lb.state(web1)]).toEqual(['overruled', 'drain'])
  })

  test('is left alone after a release as well', async () => {
    const both = rig()
    const run = await drainedAnew(both, both.lb, (drain) => void drain.release())
    const report = await both.clock.runUntil(run.restore())
    expect([only(report).outcome, both.lb.state(web1)]).toEqual(['overruled', 'drain'])
  })

  test('is left alone where another object of the balancer opened it', async () => {
    const both = rig()
    const run = await drainedAnew(both, anotherObject(both.lb))
    const report = await both.clock.runUntil(run.restore())
    expect([only(report).outcome, both.lb.state(web1)]).toEqual(['overruled', 'drain'])
  })

  test('does not keep an undo from what the drain itself had set', async () => {
    const { clock, lb } = rig()
    const run = startDrain(lb, web1, { clock, timeout: '1m' })
    await clock.advance(500)
    await run.release()
    const report = await clock.runUntil(run.restore())
    expect([only(report).outcome, lb.state(web1)]).toEqual(['restored', 'ready'])
  })
})

test('a member seen open by another run between two looks is left alone', async () => {
  const { clock, lb } = rig()
  lb.occupy(web1)
  await using slow = startDrain(lb, web1, { clock, timeout: '10m', seal: false, pace: '30s' })
  await clock.runUntil(slow.inForce)
  const other = anotherObject(lb)
  await using quick = startDrain(other, web1, { clock, timeout: '10m', seal: false })
  await clock.runUntil(quick.inForce)
  await clock.advance(500)
  lb.setBehind(web1, 'ready')
  expect(only(await clock.runUntil(quick.done)).outcome).toBe('overruled')
  lb.setBehind(web1, 'drain')
  const report = await clock.runUntil(slow.restore(), 60_000)
  expect([only(report).outcome, lb.state(web1)]).toEqual(['overruled', 'drain'])
})
