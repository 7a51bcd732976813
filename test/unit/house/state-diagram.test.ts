import { readFileSync } from 'node:fs'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { AdminState } from 'drainable'
import {
  initialState,
  openGoal,
  transition,
  type Goal,
  type Input,
  type MachinePolicy,
} from 'drainable/machine'
import { DrainableError, type ChangeResult, type Reading } from 'drainable/provider'
import { root } from '../../../scripts/package/entries.ts'
import { arrowsOf, movesOf } from '../../../scripts/package/state-diagram.ts'

const read = (path: string): string => readFileSync(`${root}${path}`, 'utf8')
const moves = movesOf(read('src/core/machine/README.md'))
const ref = { pool: 'web', member: 'web1' }

const policyArb: fc.Arbitrary<MachinePolicy> = fc.record({
  hold: fc.constant('drain'),
  seal: fc.constantFrom('never', 'gentle'),
  settle: fc.constantFrom(0, 100),
  until: fc.constantFrom('idle', 'removed'),
  onTimeout: fc.constant('fail'),
  onOverrule: fc.constantFrom('reapply', 'fail'),
  onMinimum: fc.constantFrom('fail', 'wait'),
  escalateAfter: fc.constant(null),
  capabilities: fc.constant({
    ladder: ['ready', 'drain', 'maint'],
    maint: 'gentle',
    terminate: true,
    remove: true,
    add: true,
    counts: 'requests',
    freshness: 0,
    blind: 0,
    lateBound: 200,
    survivesReload: false,
    countsAfterRemove: true,
  }),
})

const goalArb = fc.constantFrom<Goal>(
  { kind: 'drain' },
  { kind: 'watch' },
  openGoal({ of: 'anybody', until: null, lateUntil: null }),
)

/** What happens between looks; most of the time nothing does. */
const eventArb = fc.oneof(
  { weight: 8, arbitrary: fc.constant('nothing' as const) },
  { weight: 1, arbitrary: fc.constantFrom('work', 'done', 'arrive', 'reload') },
  { weight: 1, arbitrary: fc.constantFrom('ready', 'drain', 'vanish', 'replace', 'return') },
  { weight: 1, arbitrary: fc.constantFrom('unread', 'settle', 'undo', 'yield', 'floor') },
)
const stepArb = fc.record({
  what: eventArb,
  answer: fc.constantFrom('applied', 'applied', 'applied', 'unknown', 'lost', 'rejected'),
  looks: fc.integer({ min: 1, max: 8 }),
})

type WithoutMoment<T> = T extends unknown ? Omit<T, 'at' | 'wall'> : never
type Happening = typeof stepArb extends fc.Arbitrary<infer T> ? T : never

/** One random run of the machine; every move that it says, as `goal: from -> to`. */
function play(policy: MachinePolicy, goal: Goal, script: readonly Happening[]) {
  const said: string[] = []
  const error = new DrainableError('CONFLICT', 'not now', { ref })
  const world = { own: 'ready' as AdminState, identity: 'x', present: true, active: 1 }
  let [at, arrivals, life, broken] = [1_000, 0, 1, false]
  let state = initialState(ref, at, null, goal)
  const take = (input: WithoutMoment<Input>, answer: string): void => {
    const now = { ...input, at, wall: at } as Input
    const kind = now.type === 'goal' ? now.goal.kind : state.goal.kind
    const { state: next, effects } = transition(state, now, policy)
    state = next
    for (const effect of effects) {
      if (effect.type === 'emit' && effect.event.type === 'phase')
        said.push(`${kind}: ${effect.event.from} -> ${effect.event.to}`)
    }
    for (const effect of effects) {
      if (effect.type !== 'apply') continue
      const { change } = effect
      at += 1
      if (answer === 'applied' || answer === 'unknown') {
        if (change.kind === 'hold' || change.kind === 'restore') world.own = change.to
        if (change.kind === 'remove') world.present = false
      }
      const status = answer === 'lost' ? 'unknown' : answer
      const result = { ref, status, ...(status === 'applied' ? {} : { error }) } as ChangeResult
      take({ type: 'result', change, result }, 'applied')
    }
  }
  const look = (): Reading => {
    const load = { state: 'read' as const, active: world.active, queued: 0, arrivals }
    const scopes = [{ scope: 'a', incarnation: `${life}`, sampledAt: at, inForce: true, ...load }]
    if (!world.present) return { ref, present: false, scopes }
    const { own, identity } = world
    return { ref, present: true, identity, own, serves: own === 'ready', health: 'up', scopes }
  }
  for (const { what, answer, looks } of script) {
    if (what === 'work') world.active = 1
    else if (what === 'done') world.active = 0
    else if (what === 'arrive') arrivals += 1
    else if (what === 'ready' || what === 'drain') world.own = what
    else if (what === 'vanish') world.present = false
    else if (what === 'return') world.present = true
    else if (what === 'replace') world.identity = 'y'
    else if (what === 'floor') broken = !broken
    else if (what === 'reload') {
      life += 1
      world.own = 'ready'
    } else if (what === 'settle') {
      if (state.ending.ended !== null) take({ type: 'settle' }, answer)
    } else if (what === 'undo') {
      const undo = openGoal({ of: 'ours', until: null, lateUntil: null })
      if (goal.kind === 'drain') take({ type: 'goal', goal: undo }, answer)
    } else if (what === 'yield') {
      if (goal.kind !== 'watch') take({ type: 'yield', error }, answer)
    } else if (what === 'unread') take({ type: 'unreadable', error, askedAt: at }, answer)
    else if (looks > 4) world.active = 0
    for (let i = 0; i < looks; i += 1) {
      at += 40
      const seen = { reading: look(), askedAt: at, random: 0, floor: broken ? error : null }
      take({ type: 'reading', ...seen }, answer)
    }
  }
  return said
}

describe('the table of transitions in src/core/machine/README.md', () => {
  it('has exactly the moves that random runs of the machine make', () => {
    const seen = new Set<string>()
    fc.assert(
      fc.property(policyArb, goalArb, fc.array(stepArb, { maxLength: 25 }), (...run) => {
        for (const move of play(...run)) seen.add(move)
      }),
      { numRuns: 3_000, seed: 12 },
    )
    const known = moves.map(({ goal, from, to }) => `${goal}: ${from} -> ${to}`)
    expect([...seen].sort()).toEqual([...new Set(known)].sort())
  })

  it('has the arrows of docs/pictures/states.svg', () => {
    const drawn = new Set(arrowsOf(read('docs/pictures/states.svg')))
    expect([...drawn].sort()).toEqual(
      [...new Set(moves.map(({ from, to }) => `${from}-${to}`))].sort(),
    )
  })
})
