import { describe, expect, test } from 'vitest'
import { ready, resumeDrain, startDrain, type Change } from 'drainable'
import type { FakeClock, FakeProvider } from 'drainable/testing'
import { pause } from '../../../../src/provider/clock.js'
import { DrainableError } from '../../../../src/provider/error.js'
import { sendThrough } from '../balancer.js'
import { anotherObject, isHold, isOpening, isSeal, loseAnswer, recordChanges, rig } from '../rig.js'
import { only, web1 } from '../set-up.js'

/** Such changes are carried out after `before`, and answered `after` that. */
function slow(
  lb: FakeProvider,
  clock: FakeClock,
  which: (change: Change) => boolean,
  { before = 0, after = 0 },
): void {
  sendThrough(lb, async (changes, ctx, apply) => {
    if (!changes.some(which)) return apply(changes, ctx)
    await pause(clock, before)
    const results = await apply(changes, { ...ctx, result: () => undefined })
    await pause(clock, after)
    return results
  })
}

/** Each look is delivered so long after it was taken; the last one stands for all that follow. */
function deliveredAfter(lb: FakeProvider, clock: FakeClock, ...delays: readonly number[]): void {
  const observe = lb.observe.bind(lb)
  let looks = 0
  lb.observe = async (refs, ctx) => {
    const delay = delays[Math.min(looks, delays.length - 1)] ?? 0
    looks += 1
    const snapshot = await observe(refs, ctx)
    await pause(clock, delay, ctx.signal)
    return snapshot
  }
}

const policy = { timeout: '1m', seal: false } as const

test('of three calls the last one wins, also if prepared first', async () => {
  const { clock, lb } = rig()
  deliveredAfter(lb, clock, 100, 150, 10, 0)
  const first = ready(lb, web1, { clock })
  const drained = startDrain(lb, web1, { clock, ...policy })
  const last = ready(lb, web1, { clock })
  expect(only(await clock.runUntil(drained.done)).outcome).toBe('overruled')
  await clock.runUntil(Promise.all([first, last]))
  expect(lb.state(web1)).toBe('ready')
})

describe('a drain that comes while ready() opens its member takes the opening for no other client', () => {
  test('where the opening shows before its answer', async () => {
    const { clock, lb } = rig()
    lb.setBehind(web1, 'drain')
    slow(lb, clock, isOpening, { after: 200 })
    ready(lb, web1, { clock }).catch(() => undefined)
    await clock.advance(20)
    const drained = startDrain(lb, web1, { clock, ...policy })
    expect(only(await clock.runUntil(drained.done)).outcome).toBe('idle')
  })

  test('where it goes on with a ticket', async () => {
    const { clock, lb } = rig()
    const before = startDrain(lb, web1, { clock, ...policy })
    await clock.runUntil(before.done)
    const ticket = await before.ticket
    await clock.runUntil(before.release())
    slow(lb, clock, isOpening, { after: 30 })
    deliveredAfter(lb, clock, 0, 60)
    ready(lb, web1, { clock }).catch(() => undefined)
    await clock.advance(5)
    const drained = resumeDrain(lb, ticket, { clock })
    expect(only(await clock.runUntil(drained.done)).outcome).toBe('idle')
  })

  test('where a lost hold may have closed it before', async () => {
    const { clock, lb } = rig({ capabilities: { lateBound: 100 } })
    lb.setBehind(web1, 'drain')
    sendThrough(lb, async (changes, ctx, apply) => {
      await apply(changes, { ...ctx, result: () => undefined })
      await pause(clock, 50)
      if (changes.some(isHold)) throw new DrainableError('CONNECTION_LOST', 'the answer was lost')
      return apply(changes, ctx)
    })
    const before = startDrain(lb, web1, { clock, ...policy })
    await clock.advance(60)
    ready(lb, web1, { clock }).catch(() => undefined)
    await clock.advance(20)
    const drained = startDrain(lb, web1, { clock, ...policy })
    expect(only(await clock.runUntil(drained.done)).outcome).toBe('idle')
    await before.release()
  })

  test('where a reload was first, and the opening is refused', async () => {
    const { clock, lb } = rig()
    lb.setBehind(web1, 'maint')
    slow(lb, clock, (change) => change.kind === 'restore', { before: 100 })
    ready(lb, web1, { clock }).catch(() => undefined)
    await clock.advance(20)
    lb.reload()
    const drained = startDrain(lb, web1, { clock, ...policy })
    expect(only(await clock.runUntil(drained.done)).outcome).toBe('idle')
  })
})

describe('a reload is no other client', () => {
  test('where a hold was seen in place before its answer', async () => {
    const { clock, lb } = rig()
    slow(lb, clock, isHold, { after: 200 })
    const first = startDrain(lb, web1, { clock, ...policy })
    await clock.advance(10)
    // Looks that go on while the answer is due.
    const second = startDrain(lb, web1, { clock, ...policy })
    await clock.advance(60)
    lb.reload()
    expect(only(await clock.runUntil(first.done)).outcome).toBe('idle')
    expect(only(await clock.runUntil(second.done)).outcome).toBe('idle')
  })

  test('where another object of the balancer sees it first', async () => {
    const { clock, lb } = rig()
    const end = lb.occupy(web1)
    const first = startDrain(anotherObject(lb), web1, { clock, ...policy, pace: '5s' })
    await clock.runUntil(first.inForce)
    slow(lb, clock, isSeal, { before: 500 })
    const second = startDrain(lb, web1, { clock, ...policy, hold: 'maint' })
    await clock.advance(100)
    end()
    lb.reload()
    expect(only(await clock.runUntil(first.done)).outcome).toBe('idle')
    expect(only(await clock.runUntil(second.done)).outcome).toBe('idle')
  })

  test('for a drain that found its member closed, and goes on by its ticket', async () => {
    const { clock, lb } = rig()
    lb.setBehind(web1, 'maint')
    const before = startDrain(lb, web1, { clock, ...policy })
    await clock.runUntil(before.done)
    const ticket = await before.ticket
    await clock.runUntil(before.release())
    lb.reload()
    const drained = resumeDrain(lb, ticket, { clock })
    expect(only(await clock.runUntil(drained.done)).outcome).toBe('idle')
  })

  test('for a drain that comes while a forgotten hold is put back', async () => {
    const { clock, lb } = rig()
    lb.setBehind(web1, 'drain')
    const first = startDrain(lb, web1, { clock, ...policy })
    await clock.runUntil(first.done)
    slow(lb, clock, isHold, { before: 300 })
    lb.reload()
    await clock.advance(150)
    const second = startDrain(lb, web1, { clock, ...policy })
    expect(only(await clock.runUntil(second.done)).outcome).toBe('idle')
  })
})

test('work that a lost cut has ended is lost to other drains', async () => {
  const { clock, lb } = rig()
  lb.occupy(web1, 3)
  sendThrough(lb, async (changes, ctx, apply) => {
    if (changes[0]?.kind !== 'terminate') return apply(changes, ctx)
    await apply(changes, { ...ctx, result: () => undefined })
    await pause(clock, 12)
    throw new DrainableError('CONNECTION_LOST', 'the answer was lost')
  })
  const first = startDrain(lb, web1, { clock, ...policy })
  const second = startDrain(lb, web1, { clock, ...policy, timeout: '1s', onTimeout: 'terminate' })
  expect(only(await clock.runUntil(first.done))).toMatchObject({ verifiedIdle: false })
  expect(only(await clock.runUntil(second.done))).toMatchObject({ outcome: 'terminated' })
})

test('ready() waits for a look from after a lost hold was over', async () => {
  const { clock, lb } = rig({ capabilities: { lateBound: 300 } })
  loseAnswer(lb, clock, isHold, 250)
  const drained = startDrain(lb, web1, { clock, ...policy })
  await clock.advance(0)
  await clock.runUntil(drained.release())
  await clock.advance(5)
  deliveredAfter(lb, clock, 400, 0)
  await clock.runUntil(ready(lb, web1, { clock }))
  expect(lb.state(web1)).toBe('ready')
})

test('ready() opens what a lost seal closes before its answer', async () => {
  const { clock, lb } = rig({ capabilities: { lateBound: 1_000 } })
  loseAnswer(lb, clock, isSeal, 150)
  slow(lb, clock, isOpening, { after: 300 })
  const sent = recordChanges(lb, clock)
  const drained = startDrain(lb, web1, { clock, timeout: '1m' })
  while (!sent.some(({ change }) => isSeal(change))) await clock.advance(1)
  await clock.runUntil(ready(lb, web1, { clock }))
  expect(lb.state(web1)).toBe('ready')
  await drained.release()
})
