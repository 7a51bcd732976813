import { describe, expect, test } from 'vitest'
import { drain, ready, restore, startDrain, type Ticket } from 'drainable'
import type { FakeClock, FakeProvider } from 'drainable/testing'
import { changesOf, only, recorder, thrown, web1 } from '../set-up.js'
import {
  anotherObject,
  isHold,
  isOpening,
  isSeal,
  json,
  loseAnswer,
  memoryStore,
  recordChanges,
  rig,
  type Rig,
} from '../rig.js'

const LATE_BOUND = 10_000

/** The answer to the first hold is lost; the balancer carries it out `late` ms after it was asked for, or never. */
function lostHold(late?: number, lateBound = LATE_BOUND): Rig {
  const both = rig({ capabilities: { lateBound } })
  both.lb.occupy(web1)
  loseAnswer(both.lb, both.clock, isHold, late)
  return both
}

/** A drain with the policy of these tests, in another process: only its ticket is left. */
async function crashed(lb: FakeProvider, clock: FakeClock): Promise<Ticket> {
  const kept: Ticket[] = []
  const onTicket = (ticket: Ticket): void => void kept.push(json(ticket))
  const run = startDrain(lb, web1, { clock, timeout: '10m', onTicket })
  await clock.advance(0)
  await run.release()
  expect(changesOf(kept[0]!.members[0])).toEqual(['drain:intended'])
  return kept[0]!
}

type Undo = (lb: FakeProvider, clock: FakeClock) => Promise<unknown>

/** Three ways to undo a hold whose answer was lost; each begins 20 ms after the loss. */
const UNDOS: readonly (readonly [string, Undo])[] = [
  [
    'handle.restore()',
    async (lb, clock) => {
      await using run = startDrain(lb, web1, { clock, timeout: '10m' })
      await clock.advance(20)
      await clock.runUntil(run.restore(), 120_000)
    },
  ],
  [
    'ready()',
    async (lb, clock) => {
      await using run = startDrain(lb, web1, { clock, timeout: '10m' })
      await clock.advance(20)
      await clock.runUntil(ready(lb, web1, { clock }), 120_000)
      await run.done
    },
  ],
  [
    'restore(ticket)',
    async (lb, clock) => {
      const ticket = await crashed(lb, clock)
      await clock.runUntil(restore(anotherObject(lb), ticket, { clock }), 120_000)
    },
  ],
]

// Fault 6
describe('an undo of a hold whose answer was lost', () => {
  test.each(UNDOS)('opens a hold that is carried out late: %s', async (_, undo) => {
    const { clock, lb } = lostHold(5_000)
    await undo(lb, clock)
    await clock.advance(60_000)
    expect(lb.state(web1)).toBe('ready')
  })

  test.each(UNDOS)(
    'opens a hold that is carried out just within lateBound: %s',
    async (_, undo) => {
      const { clock, lb } = lostHold(LATE_BOUND - 100)
      await undo(lb, clock)
      await clock.advance(60_000)
      expect(lb.state(web1)).toBe('ready')
    },
  )

  test.each(UNDOS)('is not done before lateBound has passed: %s', async (_, undo) => {
    const { clock, lb } = lostHold()
    const from = clock.now()
    await undo(lb, clock)
    expect(clock.now() - from).toBeGreaterThanOrEqual(LATE_BOUND)
    expect(clock.now() - from).toBeLessThan(LATE_BOUND + 5_000)
    expect(lb.state(web1)).toBe('ready')
  })

  test.each(UNDOS)('counts lateBound from the first look answered since: %s', async (_, undo) => {
    const { clock, lb } = lostHold(11_000)
    const sent = recordChanges(lb, clock)
    const observe = lb.observe.bind(lb)
    lb.observe = async (refs, ctx) => {
      const answerAt = sent[0] === undefined ? 0 : sent[0].at + 3_000
      const wait = answerAt - clock.now()
      if (wait > 0) await new Promise<void>((resolve) => clock.setTimeout(resolve, wait))
      return observe(refs, ctx)
    }
    await undo(lb, clock)
    await clock.advance(60_000)
    expect(lb.state(web1)).toBe('ready')
  })

  test('opens a late hold that was sent again and found in between', async () => {
    const { clock, lb } = lostHold(6_000)
    await using run = startDrain(lb, web1, { clock, timeout: '10m' })
    await clock.advance(3_000)
    await clock.runUntil(run.restore(), 120_000)
    await clock.advance(60_000)
    expect(lb.state(web1)).toBe('ready')
  })

  test('opens a seal that is carried out late', async () => {
    const { clock, lb } = rig({ capabilities: { lateBound: LATE_BOUND } })
    loseAnswer(lb, clock, isSeal, 5_000)
    const sent = recordChanges(lb, clock)
    await using run = startDrain(lb, web1, { clock, timeout: '10m' })
    while (!sent.some(({ change }) => isSeal(change))) await clock.advance(20)
    await clock.runUntil(run.restore(), 120_000)
    await clock.advance(60_000)
    expect(lb.state(web1)).toBe('ready')
  })

  test('says in why() for how long it waits', async () => {
    const { clock, lb } = lostHold(5_000)
    await using run = startDrain(lb, web1, { clock, timeout: '10m' })
    await clock.advance(20)
    const undone = run.restore()
    await clock.advance(1_000)
    const why = run.why().find(({ code }) => code === 'not-in-force')
    expect(why?.text).toMatch(/until \d{4}-\d\d-\d\dT\d\d:\d\d:\d\d/)
    await clock.runUntil(undone, 120_000)
  })

  test('says restored at the end', async () => {
    const { clock, lb } = lostHold(5_000)
    await using run = startDrain(lb, web1, { clock, timeout: '10m' })
    await clock.advance(20)
    const report = await clock.runUntil(run.restore(), 120_000)
    expect(only(report)).toMatchObject({ outcome: 'restored', ref: web1 })
    expect(only(report).error).toBeUndefined()
    expect((await run.done).outcome).toBe('aborted')
  })

  test('keeps the ticket until it is done', async () => {
    const { clock, lb } = lostHold()
    const tickets = memoryStore()
    await using run = startDrain(lb, web1, { clock, timeout: '10m', tickets, id: 'one' })
    await clock.advance(20)
    const undone = run.restore()
    await clock.advance(LATE_BOUND - 1_000)
    expect(tickets.map.has('one')).toBe(true)
    await clock.runUntil(undone, 120_000)
    expect(tickets.map.has('one')).toBe(false)
  })

  test('keeps the ticket until it is done: restore() of the ticket', async () => {
    const { clock, lb } = lostHold()
    const tickets = memoryStore()
    const ticket = await crashed(lb, clock)
    await tickets.set(ticket.id, ticket)
    const undone = restore(anotherObject(lb), ticket, { clock, tickets })
    await clock.advance(LATE_BOUND - 1_000)
    expect(tickets.map.has(ticket.id)).toBe(true)
    expect(only(await clock.runUntil(undone, 120_000)).outcome).toBe('restored')
    expect(tickets.map.has(ticket.id)).toBe(false)
  })
})

// Fault 6
describe("an abort with onAbort: 'restore' after a hold whose answer was lost", () => {
  test('opens a hold carried out within 5 s, then rejects', async () => {
    const { clock, lb } = lostHold(2_000, 3_000)
    const tickets = memoryStore()
    const stop = new AbortController()
    const caught = thrown(
      drain(lb, web1, {
        clock,
        timeout: '10m',
        onAbort: 'restore',
        signal: stop.signal,
        tickets,
        id: 'one',
      }),
    )
    await clock.advance(20)
    stop.abort('enough')
    expect(await clock.runUntil(caught, 60_000)).toBe('enough')
    await clock.advance(60_000)
    expect(lb.state(web1)).toBe('ready')
    expect(tickets.map.has('one')).toBe(false)
  })

  test('rejects with the reason after at most 5 s', async () => {
    const { clock, lb } = lostHold(20_000, 30_000)
    const stop = new AbortController()
    const caught = thrown(
      drain(lb, web1, { clock, timeout: '10m', onAbort: 'restore', signal: stop.signal }),
    )
    await clock.advance(20)
    const from = clock.now()
    stop.abort('enough')
    expect(await clock.runUntil(caught, 60_000)).toBe('enough')
    expect(clock.now() - from).toBeGreaterThanOrEqual(4_000)
    expect(clock.now() - from).toBeLessThan(6_000)
  })

  test('says in report and fault that the hold may still come', async () => {
    const { clock, lb } = lostHold(20_000, 30_000)
    const stop = new AbortController()
    const seen = recorder()
    const tickets = memoryStore()
    await using run = startDrain(lb, web1, {
      clock,
      timeout: '10m',
      onAbort: 'restore',
      signal: stop.signal,
      onEvent: seen.onEvent,
      tickets,
      id: 'one',
    })
    await clock.advance(20)
    stop.abort('enough')
    const report = await clock.runUntil(run.done, 60_000)
    expect(report.outcome).toBe('aborted')
    expect(only(report).error).toMatchObject({ code: 'CONFLICT' })
    expect(seen.of('fault').map(({ error }) => error.code)).toContain('CONFLICT')
    expect(tickets.map.has('one')).toBe(true)
  })

  test('leaves a ticket that opens a hold which came afterwards', async () => {
    const { clock, lb } = lostHold(20_000, 30_000)
    const stop = new AbortController()
    const tickets = memoryStore()
    const run = startDrain(lb, web1, {
      clock,
      timeout: '10m',
      onAbort: 'restore',
      signal: stop.signal,
      tickets,
      id: 'one',
    })
    await clock.advance(20)
    stop.abort('enough')
    await clock.runUntil(run.done, 60_000)
    expect(tickets.map.has('one')).toBe(true)
    const ticket = json(tickets.map.get('one')) as Ticket
    const report = await clock.runUntil(restore(lb, ticket, { clock, tickets }), 120_000)
    expect(only(report).outcome).toBe('restored')
    await clock.advance(60_000)
    expect(lb.state(web1)).toBe('ready')
  })
})

// Fault 6: an undo that misses no answer waits for nothing
describe('an undo of a hold whose answer came', () => {
  const soon: readonly (readonly [string, Undo])[] = [
    [
      'handle.restore()',
      async (lb, clock) => {
        await using run = startDrain(lb, web1, { clock, timeout: '10m' })
        await clock.advance(2_000)
        await clock.runUntil(run.restore(), 1_000)
      },
    ],
    [
      'ready()',
      async (lb, clock) => {
        await using run = startDrain(lb, web1, { clock, timeout: '10m' })
        await clock.advance(2_000)
        await clock.runUntil(ready(lb, web1, { clock }), 1_000)
        await run.done
      },
    ],
    [
      'restore(ticket)',
      async (lb, clock) => {
        const run = startDrain(lb, web1, { clock, timeout: '10m' })
        await clock.advance(2_000)
        const ticket = json(await run.ticket)
        await run.release()
        await clock.runUntil(restore(lb, ticket, { clock }), 1_000)
      },
    ],
    [
      "onAbort: 'restore'",
      async (lb, clock) => {
        const stop = new AbortController()
        await using run = startDrain(lb, web1, {
          clock,
          timeout: '10m',
          onAbort: 'restore',
          signal: stop.signal,
        })
        await clock.advance(2_000)
        stop.abort('enough')
        await clock.runUntil(run.done, 1_000)
      },
    ],
  ]

  test.each(soon)('is done at once, whatever lateBound is: %s', async (_, undo) => {
    const { clock, lb } = rig({ capabilities: { lateBound: 30_000 } })
    lb.occupy(web1)
    await undo(lb, clock)
    expect(lb.state(web1)).toBe('ready')
  })

  test.each(soon)('opens at once a lost hold that was found since: %s', async (_, undo) => {
    const { clock, lb } = rig({ capabilities: { lateBound: 30_000 } })
    lb.occupy(web1)
    lb.failNext('throw-after', { verb: 'apply' })
    await undo(lb, clock)
    expect(lb.state(web1)).toBe('ready')
  })

  test('opens a lost hold at once if its own first look finds it', async () => {
    const { clock, lb } = rig({ capabilities: { lateBound: 30_000 } })
    lb.occupy(web1)
    loseAnswer(lb, clock, isHold, 0)
    await using run = startDrain(lb, web1, { clock, timeout: '10m' })
    await clock.advance(0)
    const undone = run.restore()
    await clock.advance(500)
    expect(lb.state(web1)).toBe('ready')
    await clock.runUntil(undone, 120_000)
  })

  test('leaves alone a drain set by another client after it is done', async () => {
    const { clock, lb } = lostHold(5_000)
    await using run = startDrain(lb, web1, { clock, timeout: '10m' })
    await clock.advance(20)
    await clock.runUntil(run.restore(), 120_000)
    const sent = recordChanges(lb, clock)
    lb.setBehind(web1, 'drain')
    await clock.advance(60_000)
    expect(sent.filter(({ change }) => isOpening(change))).toEqual([])
    expect(lb.state(web1)).toBe('drain')
  })
})

test('a lost maint that a look has shown is opened by a later undo', async () => {
  const { clock, lb } = rig({ capabilities: { lateBound: 3_000 } })
  const abort = new AbortController()
  const { signal } = abort
  lb.failNext('hang-after', { verb: 'apply' })
  await using run = startDrain(lb, web1, { clock, signal, hold: 'maint', onAbort: 'restore' })
  await clock.advance(500)
  lb.disconnect()
  await clock.advance(500)
  abort.abort(new Error('stop'))
  await clock.runUntil(run.done)
  lb.connect()
  const undone = await clock.runUntil(run.restore())
  expect([only(undone).outcome, lb.state(web1)]).toEqual(['restored', 'ready'])
})
