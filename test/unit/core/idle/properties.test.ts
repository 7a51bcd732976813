import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { startDrain, type Phase } from 'drainable'
import {
  brokenInvariants,
  initialState,
  openGoal,
  transition,
  type Goal,
  type Input,
  type MachinePolicy,
} from 'drainable/machine'
import type { Capabilities, LoadScope, Reading } from 'drainable/provider'
import { fakeClock, fakeProvider } from 'drainable/testing'
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
  openGoal({ of: 'anybody', until: 2_000, lateUntil: null }),
  openGoal({ of: 'ours', until: 2_000, lateUntil: null }),
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

describe('the machine', () => {
  test('accepts every input, moves as drawn, and asks for one change at a time', () => {
    fc.assert(
      fc.property(
        policyArb,
        goalArb,
        fc.array(readingArb, { maxLength: 40 }),
        (policy, goal, script) => {
          let at = 0
          let state = initialState(web1, at, 3_000, goal)
          let underWay = 0
          let ends = 0
          for (const { wait, answer, scopes, present, own, identity } of script) {
            at += wait
            const listed = scopes.map((scope) => ({ ...scope, sampledAt: at - 1 }))
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
            const inputs: Input[] = [{ type: 'reading', reading, askedAt: at - 1, at, wall: at }]
            for (let input = inputs.shift(); input !== undefined; input = inputs.shift()) {
              const before = deepFrozen(state)
              const step = transition(before, input, policy) // a change of the state it was given would throw
              expect(brokenInvariants(step.state)).toEqual([])
              const changes = step.effects.flatMap((effect) =>
                effect.type === 'apply' ? [effect.change] : [],
              )
              expect(changes.length).toBeLessThanOrEqual(1)
              if (state.ending.ended === null && step.state.ending.ended !== null) ends += 1
              if (input.type === 'result') underWay -= 1
              underWay += changes.length
              expect(underWay).toBeLessThanOrEqual(1)
              if (goal.kind === 'watch') expect(changes).toEqual([])
              let phase = state.phase
              for (const effect of step.effects) {
                if (effect.type !== 'emit') continue
                const { event } = effect
                if (event.type === 'phase') {
                  expect(event.from).toBe(phase)
                  expect(MOVES[phase]).toContain(event.to)
                  phase = event.to
                }
                if (event.type === 'idle') {
                  // A member that another client removed is watched until its work has ended.
                  expect(
                    reading.present
                      ? reading.own !== 'ready' && reading.own !== 'unknown'
                      : goal.kind === 'watch',
                  ).toBe(true)
                  for (const scope of listed.filter((s) => s.state !== 'ended')) {
                    expect(scope).toMatchObject({
                      state: 'read',
                      inForce: true,
                      active: 0,
                      queued: 0,
                    })
                  }
                  const known = [...step.state.proof.scopes.values()]
                  expect(
                    known.every((track) =>
                      listed.some((scope) => scope.scope === track.last.scope),
                    ),
                  ).toBe(true)
                }
              }
              expect(step.state.phase).toBe(phase)
              state = step.state
              for (const change of changes) {
                at += 1
                const error = Object.assign(new Error('no'), {
                  code: 'CONFLICT',
                  retryable: true,
                }) as never
                const result =
                  answer === 'applied' || answer === 'unchanged'
                    ? { ref: web1, status: answer }
                    : { ref: web1, status: answer, error }
                inputs.push({ type: 'result', change, result, at, wall: at })
              }
            }
          }
          expect(ends).toBeLessThan(20)
        },
      ),
      { numRuns: 1_500 },
    )
  })
})
