import { describe, expect, test } from 'vitest'
import { ready, restore, startDrain, type Ticket } from 'drainable'
import { DrainableError, type PresentReading } from 'drainable/provider'
import type { FakeClock, FakeProvider } from 'drainable/testing'
import { askFloor } from '../../../../src/core/balancer/floor.js'
import type { SeenLook } from '../../../../src/core/balancer/look/look.js'
import { anotherObject, isHold, isOpening, json } from '../rig.js'
import { only, setUp, thrown, web1, web2 } from '../set-up.js'

/** Calls with such a change reach the balancer `ms` later, once. */
function slow(
  lb: FakeProvider,
  clock: FakeClock,
  which: (change: { kind: string }) => boolean,
  ms: number,
): void {
  const apply = lb.apply.bind(lb)
  let left = 1
  lb.apply = async (changes, ctx) => {
    if (changes.some(which) && left-- > 0)
      await new Promise<void>((resolve) => clock.setTimeout(resolve, ms))
    return apply(changes, ctx)
  }
}

describe('a later call', () => {
  test('opens what was closed after its first look', async () => {
    const { clock, lb } = setUp()
    slow(lb, clock, isHold as never, 20)
    const observe = lb.observe.bind(lb)
    let late = 0
    lb.observe = async (refs, ctx) => {
      const snapshot = await observe(refs, ctx)
      if (late > 0) await new Promise<void>((resolve) => clock.setTimeout(resolve, late))
      return snapshot
    }
    await using run = startDrain(lb, web1, { clock, timeout: '1m' })
    await clock.advance(10)
    late = 30 // read while the hold is under way, told when it has ended
    const opening = ready(anotherObject(lb), web1, { clock })
    await clock.advance(40)
    late = 0
    await clock.runUntil(opening)
    await clock.advance(2_000)
    expect(lb.state(web1)).toBe('ready')
    await clock.runUntil(run.done)
  })

  test('is remembered for a drain that comes after it', async () => {
    const { clock, lb } = setUp({ latency: 50 })
    const slowLook = anotherObject(lb)
    const observe = slowLook.observe.bind(slowLook)
    slowLook.observe = async (refs, ctx) => {
      await new Promise<void>((resolve) => clock.setTimeout(resolve, 1_000))
      return observe(refs, ctx)
    }
    await using first = startDrain(slowLook, [web1, web2], { clock, timeout: '1m' })
    const opening = thrown(ready(lb, web1, { clock, waitHealthy: '1m' }))
    lb.setHealth(web1, 'down')
    await clock.advance(200)
    await using second = startDrain(lb, web1, { clock, timeout: '1m' })
    await clock.advance(2_000)
    expect(await opening).toMatchObject({ code: 'DRAIN_OVERRULED' })
    expect(first.report().members[0]).toMatchObject({ ref: web1, outcome: 'overruled' })
    expect(second.report().members[0]?.outcome).not.toBe('overruled')
  })

  test('has the last word over an undo under way, also when that is repeated', async () => {
    const { clock, lb } = setUp()
    await using run = startDrain(lb, web1, { clock, timeout: '1m' })
    await clock.runUntil(run.done)
    slow(lb, clock, isOpening as never, 3_000)
    const undone = run.restore()
    await clock.advance(500)
    await using next = startDrain(lb, web1, { clock, timeout: '1m' })
    void run.restore()
    expect(only(await clock.runUntil(undone)).outcome).toBe('overruled')
    expect((await clock.runUntil(next.done)).outcome).toBe('idle')
    expect(lb.state(web1)).toBe('maint')
  })

  test('waits for the calls of others no longer than its deadline', async () => {
    const { clock, lb } = setUp()
    const held = startDrain(lb, [web1, web2], { clock, timeout: '1m' })
    await clock.runUntil(held.done)
    await held.release()
    slow(lb, clock, (change) => change.kind === 'restore', 25_000)
    // One call for both: the second waits for it when the first has gone.
    const opening = [thrown(ready(lb, web1, { clock })), ready(lb, web2, { clock })] as const
    await clock.advance(500)
    const before = clock.now()
    await using next = startDrain(lb, web1, { clock, timeout: '4s' })
    await clock.runUntil(next.done)
    expect(clock.now() - before).toBeLessThan(8_000)
    expect(await clock.runUntil(opening[0])).toMatchObject({ code: 'DRAIN_OVERRULED' })
    await clock.runUntil(opening[1])
  })
})

test('the floor counts what the look of the moment shows', () => {
  const ask = (serving: number): ReturnType<typeof askFloor> => {
    const reading: PresentReading = {
      ref: web1,
      present: true,
      identity: '10.0.0.1:80',
      own: 'ready',
      serves: true,
      health: 'up',
      scopes: [],
    }
    const pools = [{ pool: 'web', serving, total: 3, whenNone: 'refuse' as const }]
    const snapshot = { readings: [reading], pools }
    const look: SeenLook = { snapshot, refs: [web1], askedAt: 0, at: 0, took: 0 }
    return askFloor(reading, { records: new Map(), look, keepReady: 1, now: 0 })
  }
  expect(ask(3)).toBeUndefined()
  expect(ask(2)).toBeUndefined()
  expect(ask(1)).toMatchObject({ error: { code: 'POOL_AT_MINIMUM' }, isFinal: true })
})

test('a call of which the floor refuses one member leaves no trace', async () => {
  const { clock, lb } = setUp({ pools: { web: ['web1', 'web2'] } })
  lb.setBehind(web1, 'drain')
  const saved: Ticket[] = []
  const run = startDrain(lb, [web1, web2], {
    clock,
    timeout: '4s',
    onMinimum: 'wait',
    onTicket: (ticket) => void saved.push(ticket),
  })
  expect((await clock.runUntil(run.done)).outcome).toBe('refused')
  await clock.advance(30_000)
  await run.release()
  expect([lb.state(web1), saved]).toEqual(['drain', []])
  expect(lb.requests.filter(({ verb }) => verb === 'apply')).toEqual([])
})

test('a ticket is kept for one member where another was refused', async () => {
  const { clock, lb } = setUp()
  lb.setBehind(web1, 'drain')
  const apply = lb.apply.bind(lb)
  lb.apply = async (changes, ctx) => {
    const ours = changes.filter(({ ref }) => ref.member !== web2.member)
    const results = await apply(ours, ctx)
    const error = new DrainableError('REJECTED', 'this one is locked')
    return changes.map((change) =>
      ours.includes(change)
        ? results[ours.indexOf(change)]!
        : { ref: change.ref, status: 'rejected', error },
    )
  }
  const end = lb.occupy(web1)
  let saved: Ticket | undefined
  const run = startDrain(lb, [web1, web2], {
    clock,
    timeout: '4s',
    onTicket: (ticket) => void (saved = json(ticket)),
  })
  expect((await clock.runUntil(run.done)).outcome).toBe('refused')
  end()
  await clock.advance(30_000)
  expect(lb.state(web1)).toBe('maint')
  await run.release()
  await clock.runUntil(restore(anotherObject(lb), saved!, { clock }))
  expect(lb.state(web1)).toBe('drain')
})
