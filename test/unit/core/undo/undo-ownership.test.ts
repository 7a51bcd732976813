import { describe, expect, test } from 'vitest'
import { restore, resumeDrain, startDrain, stepDrain, type Ticket } from 'drainable'
import type { FakeClock, FakeProvider } from 'drainable/testing'
import { changesOf, only, setUp, web1 } from '../set-up.js'
import {
  after,
  isOpening,
  json,
  loseAnswer,
  memoryStore,
  ofKind,
  recordChanges,
  rig,
  type Sent,
} from '../rig.js'

type Undo = (lb: FakeProvider, clock: FakeClock, begun?: () => void) => Promise<unknown>

/** Three ways to undo our own changes of web1. `begun` is called when the drain is held and idle. */
const UNDOS: readonly (readonly [string, Undo])[] = [
  [
    'handle.restore()',
    async (lb, clock, begun) => {
      await using run = startDrain(lb, web1, { clock, timeout: '10m' })
      await clock.runUntil(run.done)
      begun?.()
      return only(await clock.runUntil(run.restore(), 120_000)).outcome
    },
  ],
  [
    'restore(ticket)',
    async (lb, clock, begun) => {
      const run = startDrain(lb, web1, { clock, timeout: '10m' })
      await clock.runUntil(run.done)
      const ticket = json(await run.ticket)
      await run.release()
      begun?.()
      return only(await clock.runUntil(restore(lb, ticket, { clock }), 120_000)).outcome
    },
  ],
  [
    "onAbort: 'restore'",
    async (lb, clock, begun) => {
      const stop = new AbortController()
      const end = lb.occupy(web1) // so that it is not idle
      await using run = startDrain(lb, web1, {
        clock,
        timeout: '10m',
        hold: 'maint',
        onAbort: 'restore',
        signal: stop.signal,
      })
      await clock.advance(2_000)
      begun?.()
      stop.abort('enough')
      const { outcome, error } = only(await clock.runUntil(run.done, 120_000))
      end()
      expect(outcome).toBe('aborted')
      return error === undefined ? 'restored' : 'overruled'
    },
  ],
]

const isFirstStep = (change: { kind: string; to?: string }): boolean =>
  change.kind === 'restore' && change.to === 'drain'

// Fault 9, first clause: the way out of maint has two steps, and both are ours
describe('an undo out of maint', () => {
  const steps = [
    ['first', isFirstStep],
    ['second', isOpening],
  ] as const
  const losses = UNDOS.flatMap(([name, undo]) =>
    steps.flatMap(([step, which]) =>
      ([undefined, 0, 300] as const).map(
        (late) =>
          [
            `${step} step, ${late === undefined ? 'never' : `${late} ms`}`,
            name,
            undo,
            which,
            late,
          ] as const,
      ),
    ),
  )

  test.each(losses)('opens with one step lost (%s): %s', async (_, __, undo, which, late) => {
    const { clock, lb } = rig({ capabilities: { lateBound: 500 } })
    const outcome = await undo(lb, clock, () => loseAnswer(lb, clock, which, late))
    await clock.advance(10_000)
    expect(lb.state(web1)).toBe('ready')
    expect(outcome).toBe('restored')
  })

  test.each(UNDOS)('opens with each step lost once: %s', async (_, undo) => {
    const { clock, lb } = rig({ capabilities: { lateBound: 500 } })
    const lose = (): void => {
      loseAnswer(lb, clock, isOpening)
      loseAnswer(lb, clock, isFirstStep)
    }
    const outcome = await undo(lb, clock, lose)
    expect(lb.state(web1)).toBe('ready')
    expect(outcome).toBe('restored')
  })

  test('does not blame another client when its second step is lost', async () => {
    const { clock, lb } = rig({ capabilities: { lateBound: 500 } })
    await using run = startDrain(lb, web1, { clock })
    await clock.runUntil(run.done)
    loseAnswer(lb, clock, isOpening)
    const report = await clock.runUntil(run.restore(), 120_000)
    expect(only(report).error?.message ?? '').not.toContain('another client')
  })

  test('can be finished by another process after a kill between the steps', async () => {
    const { clock, lb } = rig()
    const tickets = memoryStore()
    await using run = startDrain(lb, web1, { clock, tickets, id: 'one' })
    await clock.runUntil(run.done)
    let killed: unknown
    const apply = lb.apply.bind(lb)
    lb.apply = (changes, ctx) => {
      if (changes.some(isOpening)) killed ??= json(tickets.map.get('one'))
      return apply(changes, ctx)
    }
    await clock.runUntil(run.restore(), 120_000)
    expect(killed).toBeDefined()
    await run.release()
    // What the killed process left: its ticket, and the member at drain.
    const left = setUp({ instance: lb.instance })
    left.lb.setBehind(web1, 'drain')
    const undone = restore(left.lb, killed as Ticket, { clock: left.clock })
    expect(only(await left.clock.runUntil(undone, 120_000)).outcome).toBe('restored')
    expect(left.lb.state(web1)).toBe('ready')
  })
})

/** Changes that open the member for traffic. */
function openings(sent: readonly Sent[]): readonly Sent[] {
  return ofKind(sent, 'restore').filter(({ change }) => isOpening(change))
}

// Fault 9, second clause
describe('a drain that an operator sets just after our undo', () => {
  const policies = ['drain', 'maint'] as const

  for (const found of policies) {
    test.each(UNDOS)(`is left alone (${found}): %s`, async (_, undo) => {
      const { clock, lb } = rig()
      after(lb, isOpening, () => lb.setBehind(web1, found))
      const sent = recordChanges(lb, clock)
      await undo(lb, clock)
      await clock.advance(30_000)
      expect(lb.state(web1)).toBe(found)
      expect(openings(sent)).toHaveLength(1)
    })
  }

  test('is left alone if our own hold was a drain too', async () => {
    const { clock, lb } = rig()
    await using run = startDrain(lb, web1, { clock, seal: false })
    await clock.runUntil(run.done)
    after(lb, isOpening, () => lb.setBehind(web1, 'drain'))
    const sent = recordChanges(lb, clock)
    const report = await clock.runUntil(run.restore(), 120_000)
    await clock.advance(30_000)
    expect(lb.state(web1)).toBe('drain')
    expect(openings(sent)).toHaveLength(1)
    expect(only(report).outcome).toBe('overruled')
  })

  test('is left alone by restore() of a ticket that held a drain', async () => {
    const { clock, lb } = rig()
    const run = startDrain(lb, web1, { clock, seal: false })
    await clock.runUntil(run.done)
    const ticket = json(await run.ticket)
    await run.release()
    after(lb, isOpening, () => lb.setBehind(web1, 'drain'))
    const sent = recordChanges(lb, clock)
    const report = await clock.runUntil(restore(lb, ticket, { clock }), 120_000)
    expect(lb.state(web1)).toBe('drain')
    expect(openings(sent)).toHaveLength(1)
    expect(only(report).outcome).toBe('overruled')
  })

  test('is opened if a reload brought it back from a state file', async () => {
    const { clock, lb } = rig()
    await using run = startDrain(lb, web1, { clock, seal: false })
    await clock.runUntil(run.done)
    after(lb, isOpening, () => {
      lb.reload()
      lb.setBehind(web1, 'drain')
    })
    const report = await clock.runUntil(run.restore(), 120_000)
    expect(lb.state(web1)).toBe('ready')
    expect(only(report).outcome).toBe('restored')
  })
})

/** A ticket whose first hold was intended, and never sent: the process was killed before that. */
async function intendedOnly(lb: FakeProvider, clock: FakeClock): Promise<Ticket> {
  let kept: Ticket | undefined
  const onTicket = (ticket: Ticket): void => {
    kept ??= json(ticket)
    throw new Error('killed')
  }
  const run = startDrain(lb, web1, { clock, timeout: '10m', onTicket })
  await clock.runUntil(run.done)
  await run.release()
  expect(lb.state(web1)).toBe('ready')
  expect(changesOf(kept?.members[0])).toEqual(['drain:intended'])
  return kept!
}

// Fault 9, third clause
describe('a drain that an operator set while our hold was only intended', () => {
  test('is left alone by restore() of the handle after a resume', async () => {
    const { clock, lb } = rig()
    const ticket = await intendedOnly(lb, clock)
    lb.setBehind(web1, 'drain')
    await using run = resumeDrain(lb, ticket, { clock })
    await clock.advance(500)
    await clock.runUntil(run.restore(), 120_000)
    await clock.advance(10_000)
    expect(lb.state(web1)).toBe('drain')
  })

  test('is left alone by a resume that is aborted', async () => {
    const { clock, lb } = rig()
    const ticket = await intendedOnly(lb, clock)
    const restoring: Ticket = { ...ticket, policy: { ...ticket.policy, onAbort: 'restore' } }
    lb.setBehind(web1, 'drain')
    const stop = new AbortController()
    await using run = resumeDrain(lb, restoring, { clock, signal: stop.signal })
    await clock.advance(500)
    stop.abort('enough')
    await clock.runUntil(run.done, 120_000)
    await clock.advance(10_000)
    expect(lb.state(web1)).toBe('drain')
  })

  test('is left alone by restore() of the ticket of that resume', async () => {
    const { clock, lb } = rig()
    const ticket = await intendedOnly(lb, clock)
    lb.setBehind(web1, 'drain')
    const run = resumeDrain(lb, ticket, { clock })
    await clock.advance(500)
    const later = json(await run.ticket)
    await run.release()
    await clock.runUntil(restore(lb, later, { clock }), 120_000)
    expect(lb.state(web1)).toBe('drain')
  })

  test('is left alone by restore() of the intended ticket', async () => {
    const { clock, lb } = rig()
    const ticket = await intendedOnly(lb, clock)
    lb.setBehind(web1, 'drain')
    await clock.runUntil(restore(lb, ticket, { clock }), 120_000)
    await clock.advance(10_000)
    expect(lb.state(web1)).toBe('drain')
  })

  test('is left alone by restore() of a ticket that a step intended', async () => {
    const { clock, lb } = rig()
    const step = await stepDrain(lb, { target: web1 }, { clock })
    lb.setBehind(web1, 'drain')
    await clock.runUntil(restore(lb, json(step.ticket), { clock }), 120_000)
    await clock.advance(10_000)
    expect(lb.state(web1)).toBe('drain')
  })
})

// Fault 9: holds that are ours nevertheless
describe('a hold of ours', () => {
  test('is opened after a resume if the ticket says it was applied', async () => {
    const { clock, lb } = rig()
    lb.occupy(web1)
    const first = startDrain(lb, web1, { clock, timeout: '10m' })
    await clock.advance(2_000)
    const ticket = json(await first.ticket)
    await first.release()
    await using run = resumeDrain(lb, ticket, { clock })
    await clock.advance(500)
    await clock.runUntil(run.restore(), 120_000)
    expect(lb.state(web1)).toBe('ready')
  })

  test('is opened after a resume that sent the intended hold itself', async () => {
    const { clock, lb } = rig()
    const ticket = await intendedOnly(lb, clock)
    lb.occupy(web1)
    await using run = resumeDrain(lb, ticket, { clock })
    await clock.advance(2_000)
    expect(lb.state(web1)).toBe('drain')
    await clock.runUntil(run.restore(), 120_000)
    expect(lb.state(web1)).toBe('ready')
  })

  test('is opened if this process intended it, lost the answer and found it', async () => {
    const { clock, lb } = rig()
    lb.occupy(web1)
    lb.failNext('throw-after', { verb: 'apply' })
    await using run = startDrain(lb, web1, { clock, timeout: '10m' })
    await clock.advance(2_000)
    await clock.runUntil(run.restore(), 120_000)
    expect(lb.state(web1)).toBe('ready')
  })

  test('is not opened if another client raised it to maint since', async () => {
    const { clock, lb } = rig()
    lb.occupy(web1)
    await using run = startDrain(lb, web1, { clock, timeout: '10m' })
    await clock.advance(2_000)
    lb.setBehind(web1, 'maint')
    const report = await clock.runUntil(run.restore(), 120_000)
    expect(only(report).outcome).toBe('overruled')
    expect(lb.state(web1)).toBe('maint')
  })

  test('goes back to the drain it was found in', async () => {
    const { clock, lb } = rig()
    lb.setBehind(web1, 'drain')
    await using run = startDrain(lb, web1, { clock })
    await clock.runUntil(run.done)
    expect(lb.state(web1)).toBe('maint')
    await clock.runUntil(run.restore(), 120_000)
    expect(lb.state(web1)).toBe('drain')
  })
})
