import { describe, expect, test } from 'vitest'
import { ready, startDrain, watch, type Drain, type DrainableProvider } from 'drainable'
import { only, thrown, web1 } from '../set-up.js'
import { anotherObject, isHold, loseAnswer, rig, type Rig } from '../rig.js'

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

/** How long a drain that looks seldom does not look, in milliseconds. */
const SELDOM = 20_000

/** web1 is drained by a run that looks seldom, and has just looked: a reload has forgotten the hold since. */
async function forgotten(): Promise<Rig & { readonly seldom: Drain }> {
  const both = rig({ capabilities: { minInterval: SELDOM, lateBound: 10_000 } })
  const { clock, lb } = both
  lb.occupy(web1)
  const seldom = startDrain(lb, web1, { clock, timeout: '10m', seal: false })
  await clock.runUntil(seldom.inForce, 60_000)
  lb.reload()
  return { ...both, seldom }
}

/** Another object of the balancer, whose looks are no slower than they have to be; `looked` comes after the first. */
function quickObject({ lb }: Rig, looked: () => void = () => undefined): DrainableProvider {
  let done = false
  const other = anotherObject(lb)
  return {
    ...other,
    describe: async (ctx) => {
      const info = await other.describe(ctx)
      return { ...info, capabilities: { ...info.capabilities, minInterval: 0 } }
    },
    observe: async (refs, ctx) => {
      const snapshot = await other.observe(refs, ctx)
      if (!done) looked()
      done = true
      return snapshot
    },
  }
}

/** How the undo of a drain ends. */
async function undone({ clock, lb, seldom }: Awaited<ReturnType<typeof forgotten>>) {
  await clock.advance(2 * SELDOM)
  const report = await clock.runUntil(seldom.restore(), 4 * SELDOM)
  return [only(report).outcome, lb.state(web1)]
}

describe('a process that had forgotten the hold, and that another run saw open', () => {
  test('shows another client’s state since, which is left alone', async () => {
    const all = await forgotten()
    const { clock, lb } = all
    const other = quickObject(all, () => lb.setBehind(web1, 'drain'))
    const view = watch(other, web1, { clock })
    await clock.advance(100)
    await view.close()
    // What they set is what is found from then on: the undo goes back to it.
    expect(await undone(all)).toEqual(['restored', 'drain'])
  })

  test('is not known to have been open by a call that laid no claim', async () => {
    const all = await forgotten()
    const { clock, lb } = all
    const other = quickObject(all, () => lb.setBehind(web1, 'drain'))
    const missing = { pool: 'web', member: 'web9' }
    const refused = thrown(ready(other, [web1, missing], { clock }))
    expect(await clock.runUntil(refused)).toMatchObject({ code: 'NOT_FOUND' })
    // Nobody else has seen it open, so a state file may have brought ours back: it is undone.
    expect(await undone(all)).toEqual(['restored', 'ready'])
  })

  test('is closed by a lost hold of a run that has ended: ours is undone', async () => {
    const all = await forgotten()
    const { clock, lb } = all
    loseAnswer(lb, clock, isHold, 2_000)
    const other = startDrain(quickObject(all), web1, { clock, timeout: '10m', seal: false })
    await clock.advance(5)
    await other.release()
    const view = watch(quickObject(all), web1, { clock })
    await clock.advance(1_000)
    await view.close()
    expect(lb.state(web1)).toBe('ready')
    expect(await undone(all)).toEqual(['restored', 'ready'])
  })

  test('is closed by a hold of another run that takes long: ours is undone', async () => {
    const all = await forgotten()
    const { clock, lb } = all
    const apply = lb.apply.bind(lb)
    lb.apply = (changes, ctx) =>
      new Promise((resolve) => {
        clock.setTimeout(() => resolve(apply(changes, ctx)), 2_000)
      })
    const other = startDrain(quickObject(all), web1, { clock, timeout: '10m', seal: false })
    await clock.advance(100)
    const view = watch(quickObject(all), web1, { clock })
    await clock.advance(1_000)
    expect(lb.state(web1)).toBe('ready')
    await clock.advance(1_500)
    await view.close()
    await other.release()
    expect(await undone(all)).toEqual(['restored', 'ready'])
  })
})

test('a held drain puts its hold back as soon as another run sees it open', async () => {
  const { clock, lb } = rig()
  const policy = { clock, timeout: '10m', seal: false, pace: '30s' } as const
  await using held = startDrain(lb, web1, policy)
  expect(only(await clock.runUntil(held.done, 200_000)).outcome).toBe('idle')
  const view = watch(anotherObject(lb), web1, { clock })
  await clock.advance(100)
  lb.reload()
  await clock.advance(200)
  await view.close()
  expect(lb.state(web1)).toBe('drain')
})
