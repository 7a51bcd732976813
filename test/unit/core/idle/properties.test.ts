import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { startDrain, type Phase } from 'drainable'
import {
  DrainableError,
  type Capabilities,
  type ChangeResult,
  type LoadScope,
  type Reading,
} from 'drainable/provider'
import { fakeClock, fakeProvider } from 'drainable/testing'
import { openGoal, type Goal } from '../../../../src/core/member/wanted.js'
import type { FreeInput } from '../../../../src/core/member/input.js'
import {
  type MachinePolicy,
  type MemberRecord,
  newClaim,
  newRecord,
} from '../../../../src/core/member/record.js'
import { step } from '../../../../src/core/member/step.js'
import { web1 } from '../set-up.js'

const SETTLE = 1_000

/** What can befall a member in the middle of a drain. */
type Mishap =
  | { readonly what: 'begin' | 'queue'; readonly for: number }
  | { readonly what: 'flash' | 'reload' | 'cut' | 'fail' | 'late' | 'unknown' }
  | { readonly what: 'blind'; readonly for: number }

const mishap: fc.Arbitrary<Mishap> = fc.oneof(
  fc.record({
    what: fc.constantFrom('begin' as const, 'queue' as const),
    for: fc.integer({ min: 1, max: 4_000 }),
  }),
  fc.record({
    what: fc.constantFrom(
      'flash' as const,
      'reload' as const,
      'cut' as const,
      'fail' as const,
      'late' as const,
      'unknown' as const,
    ),
  }),
  fc.record({ what: fc.constant('blind' as const), for: fc.integer({ min: 1, max: 3_000 }) }),
)

describe('idle is never said too early, whatever happens', () => {
  test('it is said only with nothing held and nothing arrived for settle', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.tuple(fc.integer({ min: 1, max: 1_500 }), mishap), { maxLength: 25 }),
        fc.integer({ min: 0, max: 40 }),
        async (script, latency) => {
          const clock = fakeClock()
          const lb = fakeProvider({
            pools: { web: ['web1', 'web2'] },
            clock,
            latency,
            capabilities: { lateBound: 200 },
          })
          let lastArrival = -Infinity
          const faults: string[] = []
          const run = startDrain(lb, web1, {
            clock,
            timeout: '10m',
            settle: SETTLE,
            onOverrule: 'reapply',
            onEvent: (event) => {
              if (event.type !== 'idle') return
              if (lb.load(web1) > 0) faults.push(`idle with ${lb.load(web1)} in flight`)
              // the seal looks once more after the verdict: at the verdict itself nothing had come for settle
              if (clock.now() - lastArrival < SETTLE)
                faults.push(`idle ${clock.now() - lastArrival} ms after an arrival`)
            },
          })
          const admits = (): boolean => lb.state(web1) === 'ready' || lb.state(web1) === 'drain'
          for (const [wait, { what, ...more }] of script) {
            await clock.advance(wait)
            const length = 'for' in more ? more.for : 0
            if ((what === 'begin' || what === 'queue') && admits()) {
              // what queues and leaves again was never served: no arrival
              if (what === 'begin') lastArrival = clock.now()
              clock.setTimeout(what === 'begin' ? lb.occupy(web1) : lb.queue(web1), length)
            } else if (what === 'flash' && admits()) {
              lastArrival = clock.now()
              lb.arrive(web1)
            } else if (what === 'reload' || what === 'cut') {
              lb.reload({ cut: what === 'cut' })
            } else if (what === 'fail') lb.failNext('throw')
            else if (what === 'late') lb.failNext('throw-after')
            else if (what === 'unknown') lb.failNext('unknown', { verb: 'apply' })
            else if (what === 'blind') {
              lb.disconnect()
              clock.setTimeout(() => lb.connect(), length)
            }
          }
          const report = await clock.runUntil(run.done)
          // A change that is on its way is waited for.
          await clock.runUntil(run.release())
          expect(faults).toEqual([])
          expect(['idle', 'unreachable', 'refused']).toContain(report.outcome)
        },
      ),
      { numRuns: 60 },
    )
  })
})

const capabilities: Capabilities = {
  ladder: ['ready', 'drain', 'maint'],
  maint: 'gentle',
  terminate: true,
  remove: true,
  add: true,
  counts: 'requests',
  freshness: 0,
  blind: 0,
  lateBound: 100,
  survivesReload: false,
  countsAfterRemove: true,
}

const policyArb: fc.Arbitrary<MachinePolicy> = fc.record({
  hold: fc.constantFrom('drain', 'maint'),
  seal: fc.constantFrom('never', 'gentle', 'always'),
  settle: fc.constantFrom(0, 500),
  until: fc.constantFrom('idle', 'removed'),
  onTimeout: fc.constantFrom('fail', 'terminate', 'proceed'),
  onOverrule: fc.constantFrom('reapply', 'fail'),
  onMinimum: fc.constantFrom('fail', 'wait'),
  escalateAfter: fc.constantFrom(null, 300),
  capabilities: fc.constant(capabilities),
})

const scopeArb: fc.Arbitrary<Omit<LoadScope, 'sampledAt'>> = fc.record({
  scope: fc.constantFrom('a', 'b'),
  incarnation: fc.constantFrom('1', '2'),
  state: fc.constantFrom('read', 'read', 'read', 'unread', 'ended'),
  active: fc.constantFrom(0, 0, 0, 2),
  queued: fc.constantFrom(0, 0, 0, 1),
  arrivals: fc.constantFrom(5, 5, 5, 6),
  inForce: fc.constantFrom(true, true, true, false),
})

const readingArb = fc.record({
  present: fc.constantFrom(true, true, true, true, false),
  own: fc.constantFrom(
    'ready' as const,
    'drain' as const,
    'drain' as const,
    'maint' as const,
    'unknown' as const,
  ),
  identity: fc.constantFrom('x', 'x', 'x', 'x', 'y'),
  scopes: fc.uniqueArray(scopeArb, {
    selector: (scope) => scope.scope,
    minLength: 1,
    maxLength: 2,
  }),
  wait: fc.integer({ min: 1, max: 400 }),
  answer: fc.constantFrom(
    'applied' as const,
    'unchanged' as const,
    'unknown' as const,
    'rejected' as const,
  ),
})

const goalArb: fc.Arbitrary<Goal> = fc.constantFrom<Goal>(
  { kind: 'drain' },
  { kind: 'watch' },
  openGoal({ of: 'anybody', since: 0, until: 2_000, lateUntil: null }),
  openGoal({ of: 'ours', since: 0, until: 2_000, lateUntil: null }),
)

/** Frozen through and through; errors and maps are left alone. */
function deepFrozen<T>(value: T): T {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return value
  if (value instanceof Map || value instanceof Error) return value
  Object.freeze(value)
  for (const item of Object.values(value)) deepFrozen(item)
  return value
}

const MOVES: Readonly<Record<Phase, readonly Phase[]>> = {
  active: ['draining', 'removed'],
  draining: ['idle', 'active', 'removed'],
  idle: ['draining', 'active', 'removed'],
  removed: [],
}

/** One claim of one member, stepped by hand; each step is checked. */
class Checked {
  #record: MemberRecord
  readonly #goal: Goal
  /** Processes as the last look listed them, and whether it showed the member. */
  #listed: readonly LoadScope[] = []
  #reading: Reading | undefined
  at = 0
  ends = 0

  constructor(policy: MachinePolicy, goal: Goal) {
    this.#goal = goal
    this.#record = newRecord(web1, this.at)
    const start = { id: 1, view: 1, policy, startedAt: this.at, deadline: 3_000 }
    this.#take({ type: 'laid', claim: newClaim({ ...start, goal }) })
  }

  get #claim() {
    return this.#record.claims[0]!
  }

  look(reading: Reading, answer: ChangeResult['status']): void {
    this.#reading = reading
    this.#listed = reading.scopes
    const askedAt = this.at - 1
    this.#take({ type: 'look', view: 1, reading, askedAt, took: 0, random: 0 })
    for (
      let sent = this.#record.ledger.pending;
      sent !== null;
      sent = this.#record.ledger.pending
    ) {
      const { change, stage } = sent
      if (stage === 'ticket') {
        this.#take({ type: 'sending', change })
        continue
      }
      this.at += 1
      const error = new DrainableError('CONFLICT', 'no', { retryable: true })
      const result =
        answer === 'applied' || answer === 'unchanged'
          ? { ref: web1, status: answer }
          : { ref: web1, status: answer, error }
      this.#take({ type: 'answer', change, result })
    }
  }

  #take(input: FreeInput): void {
    const before = deepFrozen(this.#record)
    // A change of the record that it was given would throw.
    const { record, effects } = step(before, { ...input, at: this.at, wall: this.at })
    const wasUnderWay = before.ledger.pending !== null && input.type !== 'answer'
    const ended = before.claims[0]?.ending.ended ?? null
    let phase: Phase = before.claims[0]?.phase ?? 'active'
    this.#record = record
    const changes = effects.flatMap((effect) => (effect.type === 'send' ? [effect.change] : []))
    expect(changes.length).toBeLessThanOrEqual(wasUnderWay ? 0 : 1)
    if (changes.length > 0) expect(record.ledger.pending?.change).toBe(changes[0])
    if (this.#goal.kind === 'watch') expect(changes).toEqual([])
    if (ended === null && this.#claim.ending.ended !== null) this.ends += 1
    for (const effect of effects) {
      if (effect.type !== 'emit') continue
      const { event } = effect
      if (event.type === 'phase') {
        expect(event.from).toBe(phase)
        expect(MOVES[phase]).toContain(event.to)
        phase = event.to
      }
      if (event.type === 'idle') this.#checkIdle(input)
    }
    expect(this.#claim.phase).toBe(phase)
  }

  /** Idle is said by a look that shows the member closed, and nothing on every process that is known. */
  #checkIdle(input: FreeInput): void {
    expect(input.type).toBe('look')
    const reading = this.#reading!
    // A member that another client removed is watched until its work has ended.
    expect(
      reading.present
        ? reading.own !== 'ready' && reading.own !== 'unknown'
        : this.#goal.kind === 'watch',
    ).toBe(true)
    for (const scope of this.#listed.filter(({ state }) => state !== 'ended'))
      expect(scope).toMatchObject({ state: 'read', inForce: true, active: 0, queued: 0 })
    const names = this.#listed.map(({ scope }) => scope)
    for (const name of this.#claim.proof.scopes.keys()) expect(names).toContain(name)
  }
}

describe('the step of a member', () => {
  test('accepts every input, moves as drawn, and asks for one change at a time', () => {
    fc.assert(
      fc.property(
        policyArb,
        goalArb,
        fc.array(readingArb, { maxLength: 40 }),
        (policy, goal, script) => {
          const checked = new Checked(policy, goal)
          for (const { wait, answer, scopes, present, own, identity } of script) {
            checked.at += wait
            const listed = scopes.map((scope) => ({ ...scope, sampledAt: checked.at - 1 }))
            const reading: Reading = present
              ? {
                  ref: web1,
                  present,
                  identity,
                  own,
                  serves: own === 'ready',
                  health: 'up',
                  scopes: listed,
                }
              : { ref: web1, present, scopes: listed }
            checked.look(reading, answer)
          }
          expect(checked.ends).toBeLessThan(20)
        },
      ),
      { numRuns: 1_500 },
    )
  })
})
