import { setImmediate as nextTurn } from 'node:timers/promises'
import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import {
  isDrainableError,
  restore,
  resumeDrain,
  startDrain,
  stepDrain,
  type DrainEvent,
  type DrainStep,
  type Ticket,
} from 'drainable'
import type { FakeClock, FakeProvider } from 'drainable/testing'
import { thrown, web1, web2 } from '../set-up.js'
import { balancer, json, restoreWall, steps, wallFollows } from '../balancer.js'
import { stepped } from '../stepped.js'

const four = { pools: { web: ['web1', 'web2', 'web3', 'web4'] } }
const policy = { timeout: '1m' } as const

let rejected: unknown[] = []
const onRejection = (reason: unknown): void => void rejected.push(reason)
beforeEach(() => {
  rejected = []
  process.on('unhandledRejection', onRejection)
})
afterEach(() => {
  process.off('unhandledRejection', onRejection)
  restoreWall()
})

/** A balancer on which web1 is drained and holds two requests, ten seconds after its drain began. */
async function later(instance: string) {
  const { clock, lb } = balancer({ ...four, instance })
  wallFollows(clock)
  await clock.advance(10_000)
  lb.setBehind(web1, 'drain')
  const end = lb.occupy(web1, 2)
  return { clock, lb, end }
}

/** Real tickets of every stage: intended, applied, busy, sealed, of two members, of steps. */
async function tickets(instance: string): Promise<readonly Ticket[]> {
  const { clock, lb } = balancer({ ...four, instance })
  wallFollows(clock)
  const kept: Ticket[] = []
  let undoing = false
  const onTicket = (ticket: Ticket): void => {
    if (!undoing) kept.push(json(ticket))
  }
  const end = lb.occupy(web1)
  const one = startDrain(lb, web1, { clock, ...policy, onTicket })
  await clock.advance(1_500)
  kept.push(json(await one.ticket))
  end()
  await clock.runUntil(one.done)
  kept.push(json(await one.ticket))
  undoing = true
  await clock.runUntil(one.restore())
  const two = startDrain(lb, [web1, web2], { clock, ...policy })
  await clock.advance(500)
  kept.push(json(await two.ticket))
  await clock.runUntil(two.restore())
  lb.occupy(web1)
  const done = await steps(lb, clock, { target: web1, policy }, 4)
  return [...kept, ...done.map(({ ticket }) => json(ticket))]
}

type Path = readonly (string | number)[]

/** Where every field of a value is, the value itself aside. */
function paths(value: unknown, at: Path = []): readonly Path[] {
  if (typeof value !== 'object' || value === null) return []
  const keys = Array.isArray(value) ? value.map((_, i) => i) : Object.keys(value)
  return keys.flatMap((key) => {
    const path = [...at, key]
    return [path, ...paths((value as Record<string | number, unknown>)[key], path)]
  })
}

function valueAt(value: unknown, path: Path): unknown {
  return path.reduce((at, key) => (at as Record<string | number, unknown>)[key], value)
}

/** The same with one field changed, or left out. */
function damaged(ticket: Ticket, path: Path, change: (holder: object, key: string) => void) {
  const copy = structuredClone(ticket)
  change(valueAt(copy, path.slice(0, -1)) as object, String(path.at(-1)))
  return copy
}

function set(ticket: Ticket, path: Path, value: unknown): Ticket {
  return damaged(ticket, path, (holder, key) => Reflect.set(holder, key, value))
}

function without(ticket: Ticket, path: Path): Ticket {
  return damaged(ticket, path, (holder, key) => Reflect.deleteProperty(holder, key))
}

/** Whether an error says which field it is about, or a field that holds it. */
function expectRefusal(error: unknown, path: Path): void {
  if (!isDrainableError(error, 'TICKET_INVALID')) throw error
  const names = path.filter((key) => typeof key === 'string')
  const telling = names.length > 1 ? names.filter((name) => name !== 'members') : names
  const said = telling.some((name) => error.message.includes(name))
  const elsewhere = telling.at(-1) === 'instance' && error.message.includes('belongs to')
  if (!said && !elsewhere) {
    throw new Error(`the refusal of ${path.join('.')} names no field`, { cause: error })
  }
}

const DAMAGES: readonly unknown[] = [
  undefined,
  null,
  NaN,
  -1,
  0,
  0.5,
  1e300,
  Infinity,
  Number.MAX_SAFE_INTEGER,
  '',
  'x',
  true,
  {},
  [],
  [null],
  { a: { b: [1] } },
  [['worker', {}]],
]

/** A ticket, and how one field of it is damaged. */
const damage = fc.record({
  ticket: fc.nat(),
  field: fc.nat(),
  how: fc.oneof(fc.constant('delete' as const), fc.nat(DAMAGES.length - 1)),
})

function apply(all: readonly Ticket[], wish: { ticket: number; field: number; how: unknown }) {
  const ticket = all[wish.ticket % all.length]!
  const fields = paths(ticket)
  const path = fields[wish.field % fields.length]!
  const made =
    wish.how === 'delete' ? without(ticket, path) : set(ticket, path, DAMAGES[Number(wish.how)])
  return { made, path }
}

/** Looks for idle that is said while the balancer holds work. */
function idleTooEarly(lb: FakeProvider) {
  const faults: string[] = []
  const onEvent = (event: DrainEvent): void => {
    if (event.type === 'idle' && lb.load(event.ref) > 0) faults.push('idle with work in flight')
  }
  return { faults, onEvent }
}

/** Waits for the end of a drain whose deadline is within two minutes, as long as it looks with pauses. */
async function endOf(done: Promise<unknown>, lb: FakeProvider, clock: FakeClock): Promise<void> {
  const state = { over: false }
  void done.then(() => (state.over = true))
  for (let seconds = 0; !state.over; seconds += 1) {
    if (seconds > 180) throw new Error('done never resolves')
    if (lb.requests.length > 20_000) throw new Error('it looks without a pause')
    await clock.advance(1_000)
  }
}

async function stepOn(lb: FakeProvider, clock: FakeClock, from: Ticket, most: number) {
  let step: DrainStep | undefined
  for (let i = 0; i < most && step?.outcome === undefined; i += 1) {
    step = await stepped(lb, step === undefined ? from : json(step.ticket), { clock })
    expect(step.againIn).toBeGreaterThanOrEqual(0)
    if (step.outcome === 'idle') expect(lb.load(web1)).toBe(0)
    await clock.advance(Math.max(100, Math.min(step.againIn, 10_000)))
  }
  return step
}

// Faults 19 and 25: a damaged ticket is refused by its field, or does no harm.
describe('a ticket with any one field damaged', () => {
  test('is refused by resumeDrain at once, or leads to an end', { timeout: 120_000 }, async () => {
    const instance = 'answers-damaged-resume'
    const all = await tickets(instance)
    await fc.assert(
      fc.asyncProperty(damage, async (wish) => {
        const { made, path } = apply(all, wish)
        const { clock, lb, end } = await later(instance)
        const { faults, onEvent } = idleTooEarly(lb)
        let run
        try {
          run = resumeDrain(lb, made, { clock, onEvent })
        } catch (error) {
          expectRefusal(error, path)
          expect(lb.requests).toEqual([])
          return
        }
        await clock.advance(3_000)
        end()
        await endOf(run.done, lb, clock)
        await run.release()
        await nextTurn()
        expect(faults).toEqual([])
        expect(rejected).toEqual([])
      }),
      { numRuns: 250, seed: 20_261_122 },
    )
  })

  test('is refused by stepDrain at once, or leads to an end', { timeout: 120_000 }, async () => {
    const instance = 'answers-damaged-step'
    const all = await tickets(instance)
    await fc.assert(
      fc.asyncProperty(damage, async (wish) => {
        const { made, path } = apply(all, wish)
        const { clock, lb, end } = await later(instance)
        try {
          await stepped(lb, structuredClone(made), { clock })
        } catch (error) {
          expectRefusal(error, path)
          expect(lb.requests).toEqual([])
          return
        }
        const early = await stepOn(lb, clock, made, 20)
        end()
        const last =
          early?.outcome === undefined ? await stepOn(lb, clock, early!.ticket, 1_000) : early
        expect(last?.outcome).toBeDefined()
        expect(rejected).toEqual([])
      }),
      { numRuns: 150, seed: 20_261_122 },
    )
  })

  test(
    'is refused by restore() before it looks, or leads to an end',
    { timeout: 120_000 },
    async () => {
      const instance = 'answers-damaged-restore'
      const all = await tickets(instance)
      await fc.assert(
        fc.asyncProperty(damage, async (wish) => {
          const { made, path } = apply(all, wish)
          const { clock, lb } = await later(instance)
          const ended = await clock.runUntil(
            restore(lb, made, { clock }).catch((error: unknown) => ({ error })),
            180_000,
          )
          await nextTurn()
          expect(rejected).toEqual([])
          if (!('members' in ended)) {
            expectRefusal(ended.error, path)
            expect(lb.requests).toEqual([])
          }
        }),
        { numRuns: 150, seed: 20_261_122 },
      )
    },
  )
})

// Fault 19: one schema is the type, and every field is checked.
describe('resumeDrain refuses a real ticket', () => {
  const wrong: readonly (readonly [string, (value: unknown) => boolean, unknown])[] = [
    ['a function in any field', () => true, () => 0],
    ['NaN for any number', (value) => typeof value === 'number', NaN],
    ['a text for any number', (value) => typeof value === 'number', '5'],
    ['a number for any text', (value) => typeof value === 'string', 5],
    ['a text for any truth value', (value) => typeof value === 'boolean', 'yes'],
    ['a text for any list', (value) => Array.isArray(value), 'x'],
  ]
  test.each(wrong)('with %s, by name', async (_, matches, value) => {
    const instance = 'answers-damaged-field'
    const all = await tickets(instance)
    const { clock, lb } = await later(instance)
    const accepted: string[] = []
    for (const ticket of all) {
      for (const path of paths(ticket).filter((at) => matches(valueAt(ticket, at)))) {
        try {
          const run = resumeDrain(lb, set(ticket, path, value), { clock })
          accepted.push(path.join('.'))
          await run.release()
        } catch (error) {
          expectRefusal(error, path)
        }
      }
    }
    expect([...new Set(accepted)]).toEqual([])
    expect(lb.requests).toEqual([])
  })
})

/** A ticket of a drain that holds two members, in every part as it is written. */
async function held() {
  const instance = 'answers-damaged-part'
  const all = await tickets(instance)
  const ticket = all.find(({ members }) => members.length === 2)!
  return { ticket, ...(await later(instance)) }
}

// Fault 25: what a damaged ticket led to so far.
describe('a refused ticket', () => {
  const member = ['members', 0]
  const ref = { pool: 'web', member: 'web1' }
  const cases: readonly (readonly [string, (ticket: Ticket) => unknown, RegExp])[] = [
    ['has no members', (ticket) => set(ticket, ['members'], []), /members/],
    ['has an empty member', (ticket) => set(ticket, member, {}), /members/],
    ['has null for a member', (ticket) => set(ticket, member, null), /members/],
    ['does not say what was found', (ticket) => without(ticket, [...member, 'found']), /found/],
    ['has a list for what was found', (ticket) => set(ticket, [...member, 'found'], []), /found/],
    [
      'found a member without an identity',
      (ticket) => without(ticket, [...member, 'found', 'identity']),
      /identity/,
    ],
    ['set a state of no name', (ticket) => set(ticket, [...member, 'set'], 'closed'), /set/],
    [
      'intends a hold that opens',
      (ticket) => set(ticket, [...member, 'intended'], { kind: 'hold', ref, to: 'ready' }),
      /intended/,
    ],
    ['has a late change of no kind', (ticket) => set(ticket, [...member, 'late'], [{}]), /late/],
    [
      'has a late addition',
      (ticket) => set(ticket, [...member, 'late'], [{ kind: 'add', ref }]),
      /late/,
    ],
    ['does not name processes', (ticket) => without(ticket, [...member, 'processes']), /processes/],
    ['has a member of another form', (ticket) => set(ticket, [...member, 'state'], {}), /state/],
    ['is of a newer version', (ticket) => set(ticket, ['v'], 2), /v/],
    ['names no balancer', (ticket) => set(ticket, ['parts'], []), /parts/],
    ['began at no time', (ticket) => set(ticket, ['startedAt'], 'yesterday'), /startedAt/],
    ['ends at no time', (ticket) => set(ticket, ['deadline'], '2026-13-45'), /deadline/],
    [
      'ends in no month',
      (ticket) => set(ticket, ['deadline'], '2026-13-05T00:00:00.000Z'),
      /deadline/,
    ],
    [
      'has a policy that waits for 100 years',
      (ticket) => set(ticket, ['policy', 'settle'], 100 * 365 * 86_400_000),
      /settle/,
    ],
    ['has a policy of negative times', (ticket) => set(ticket, ['policy', 'settle'], -1), /settle/],
    [
      'has a floor that is no number of members',
      (ticket) => set(ticket, ['policy', 'keepReady'], 0.5),
      /keepReady/,
    ],
    [
      'has a member of an unprintable name',
      (ticket) => set(ticket, ['members', 0, 'ref', 'member'], 'web1\nset server'),
      /member/,
    ],
    ['is null', () => null, /ticket/],
    ['is a list', () => [], /ticket/],
    ['is a text', () => 'ticket', /ticket/],
  ]

  test.each(cases)('is refused by resumeDrain at once: it %s', async (_, damage, words) => {
    const { ticket, clock, lb } = await held()
    let error: unknown
    try {
      const run = resumeDrain(lb, damage(ticket) as Ticket, { clock })
      await run.release()
    } catch (caught) {
      error = caught
    }
    expect(error).toMatchObject({ code: 'TICKET_INVALID', retryable: false })
    expect((error as Error).message).toMatch(words)
    expect(lb.requests).toEqual([])
  })

  // Whether null, a list or a text is a bad ticket or a bad start, is a case of the input's tests.
  test.each(cases.slice(0, -3))('is refused by stepDrain: it %s', async (_, damage, words) => {
    const { ticket, clock, lb } = await held()
    const error = await thrown(stepDrain(lb, damage(ticket) as Ticket, { clock }))
    expect(error).toMatchObject({ code: 'TICKET_INVALID', retryable: false })
    expect((error as Error).message).toMatch(words)
    expect(lb.requests).toEqual([])
  })

  test.each(cases.slice(1))('is refused by restore(): it %s', async (_, damage, words) => {
    const { ticket, clock, lb } = await held()
    const error = await clock.runUntil(thrown(restore(lb, damage(ticket) as Ticket, { clock })))
    expect(error).toMatchObject({ code: 'TICKET_INVALID', retryable: false })
    expect((error as Error).message).toMatch(words)
    expect(lb.requests).toEqual([])
    expect(lb.state(web1)).toBe('drain')
  })
})

test('restore() says of a field that refers to itself that it is no JSON', async () => {
  const { ticket, clock, lb } = await held()
  const native: { self?: unknown } = {}
  native.self = native
  const damaged = set(ticket, ['members', 0, 'found', 'native'], native)
  const error = await clock.runUntil(thrown(restore(lb, damaged, { clock })))
  expect((error as Error).message).toMatch(/members\.0\.found\.native: expected plain JSON/)
})

test('restore() of a ticket without members has nothing to undo', async () => {
  const { ticket, clock, lb } = await held()
  const report = await clock.runUntil(restore(lb, set(ticket, ['members'], []), { clock }))
  expect(report.members).toEqual([])
  expect(lb.requests.filter(({ verb }) => verb === 'apply')).toEqual([])
})

// What must stay true.
describe('a real ticket', () => {
  test('resumes at every stage and ends idle', async () => {
    const instance = 'answers-damaged-none'
    for (const ticket of await tickets(instance)) {
      const { clock, lb, end } = await later(instance)
      for (const { ref, set: state, intended } of ticket.members) {
        const coming = intended !== null && 'to' in intended ? intended.to : undefined
        lb.setBehind(ref, coming ?? state ?? 'ready')
      }
      const run = resumeDrain(lb, json(ticket), { clock })
      await clock.advance(2_000)
      end()
      const report = await clock.runUntil(run.done)
      await run.release()
      expect(report.outcome).toBe('idle')
      expect(report.members.map(({ verifiedIdle }) => verifiedIdle)).not.toContain(false)
    }
  })
})
