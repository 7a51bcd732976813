import { readFileSync } from 'node:fs'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { AdminState } from 'drainable'
import { DrainableError, type ChangeResult, type Reading } from 'drainable/provider'
import { openGoal, type Goal } from '../../../src/core/member/wanted.js'
import type { FreeInput } from '../../../src/core/member/input.js'
import { type MachinePolicy, newClaim, newRecord } from '../../../src/core/member/record.js'
import { step } from '../../../src/core/member/step.js'
import { root } from '../../../scripts/package/entries.ts'
import { arrowsOf, movesOf } from '../../../scripts/package/state-diagram.ts'

const read = (path: string): string => readFileSync(`${root}${path}`, 'utf8')
const moves = movesOf(read('src/core/member/README.md'))
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
  openGoal({ of: 'anybody', since: 0, until: null, lateUntil: null }),
)

/** What happens between looks; most of the time nothing does. */
const eventArb = fc.oneof(
  { weight: 8, arbitrary: fc.constant('nothing' as const) },
  { weight: 1, arbitrary: fc.constantFrom('work', 'done', 'arrive', 'reload') },
  { weight: 1, arbitrary: fc.constantFrom('ready', 'drain', 'vanish', 'replace', 'return') },
  { weight: 1, arbitrary: fc.constantFrom('unread', 'settle', 'undo', 'other', 'floor') },
)
const stepArb = fc.record({
  what: eventArb,
  answer: fc.constantFrom('applied', 'applied', 'applied', 'unknown', 'lost', 'rejected'),
  looks: fc.integer({ min: 1, max: 8 }),
})

type Happening = typeof stepArb extends fc.Arbitrary<infer T> ? T : never

/** The claim whose moves are told, and the provider object that all claims look through. */
const CLAIM = 1
const VIEW = 1

/** One random life of a claim; every move that it says, as `goal: from -> to`. */
function play(policy: MachinePolicy, goal: Goal, script: readonly Happening[]) {
  const said: string[] = []
  const error = new DrainableError('CONFLICT', 'not now', { ref })
  const world = { own: 'ready' as AdminState, identity: 'x', present: true, active: 1 }
  let [at, arrivals, life, broken, claims] = [1_000, 0, 1, false, 0]
  let record = newRecord(ref, at)
  const goalNow = (): Goal => record.claims.find(({ id }) => id === CLAIM)?.goal ?? goal
  const take = (input: FreeInput, answer: string): void => {
    const { kind } = input.type === 'undo' ? input.goal : goalNow()
    const { record: next, effects } = step(record, { ...input, at, wall: at })
    record = next
    for (const effect of effects) {
      if (effect.type === 'emit' && effect.claim === CLAIM && effect.event.type === 'phase')
        said.push(`${kind}: ${effect.event.from} -> ${effect.event.to}`)
    }
    for (const effect of effects) {
      if (effect.type !== 'send') continue
      const { change } = effect
      take({ type: 'sending', change }, answer)
      const { pending } = record.ledger
      if (pending?.change !== change || pending.stage !== 'sent') continue
      at += 1
      if (answer === 'applied' || answer === 'unknown') {
        if (change.kind === 'hold' || change.kind === 'restore') world.own = change.to
        if (change.kind === 'remove') world.present = false
      }
      const status = answer === 'lost' ? 'unknown' : answer
      const result = { ref, status, ...(status === 'applied' ? {} : { error }) } as ChangeResult
      take({ type: 'answer', change, result }, 'applied')
    }
  }
  const lay = (wanted: Goal, answer: string): void => {
    const start = { goal: wanted, policy, startedAt: at, deadline: null }
    take({ type: 'laid', claim: newClaim({ ...start, id: (claims += 1), view: VIEW }) }, answer)
  }
  const look = (): Reading => {
    const load = { state: 'read' as const, active: world.active, queued: 0, arrivals }
    const scopes = [{ scope: 'a', incarnation: `${life}`, sampledAt: at, inForce: true, ...load }]
    if (!world.present) return { ref, present: false, scopes }
    const { own, identity } = world
    return { ref, present: true, identity, own, serves: own === 'ready', health: 'up', scopes }
  }
  lay(goal, 'applied')
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
      const isOver = record.claims.some(({ id, ending }) => id === CLAIM && ending.ended !== null)
      if (isOver) take({ type: 'settle', claim: CLAIM }, answer)
    } else if (what === 'undo') {
      const undo = openGoal({ of: 'ours', since: 0, until: null, lateUntil: null })
      if (goal.kind === 'drain') take({ type: 'undo', claim: CLAIM, goal: undo }, answer)
    } else if (what === 'other') {
      const open = openGoal({ of: 'anybody', since: 0, until: null, lateUntil: null })
      if (goal.kind !== 'watch') lay(goal.kind === 'drain' ? open : { kind: 'drain' }, answer)
    } else if (what === 'unread') take({ type: 'unread', view: VIEW, error, askedAt: at }, answer)
    else if (looks > 4) world.active = 0
    for (let i = 0; i < looks; i += 1) {
      at += 40
      const floor = new Map(record.claims.map(({ id }) => [id, broken ? error : null]))
      const seen = { reading: look(), askedAt: at, took: 0, random: 0, floor }
      take({ type: 'look', view: VIEW, ...seen }, answer)
    }
  }
  return said
}

describe('the table of transitions in src/core/member/README.md', () => {
  it('has exactly the moves that random claims make', () => {
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
