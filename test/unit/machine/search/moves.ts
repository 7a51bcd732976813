import { openGoal, type MachinePolicy } from 'drainable/machine'
import type { ChangeResult } from 'drainable/provider'
import { isOutdated } from '../../../../src/core/machine/rough.js'
import { failure, WEB1 } from '../member-run.js'
import { happenings } from './happenings.js'
import {
  may,
  noInput,
  take,
  type Case,
  type Make,
  type Made,
  type Node,
  type Put,
  type Step,
} from './node.js'
import { nextRuns } from './runs.js'
import { cached, carryOut, look, type Flaw, type Seen, type Truth } from './truth.js'
import type { World } from './world.js'

export type { Case, Node, Step } from './node.js'

/** Between two looks, in milliseconds. */
export const TICK = 40
/** Longer than any pause of the machine between two tries. */
const LONG = 5_000
/** An answer that took that long hides that the product stood still, in milliseconds. */
const SLOW = 1_000

/** Errors say nothing but their code here: each is made once. */
const LOST = failure('CONNECTION_LOST')
const TIMED_OUT = failure('CALL_TIMEOUT')
const OVERRULED = failure('DRAIN_OVERRULED')
const UNHEALTHY = failure('HEALTH_TIMEOUT')
const TOO_FEW = failure('POOL_AT_MINIMUM')
const REFUSALS = [
  ['refused for now', failure('CONFLICT', true)],
  ['refused for good', failure('FORBIDDEN')],
] as const

/** Everything that can happen next. */
export function* moves(node: Node, { policy, world, without }: Case): Generator<Step> {
  const left = (name: string): boolean => !without.some((one) => one.test(name))
  for (const [name, step] of inputs(node, policy, world)) if (left(name)) yield { ...step(), name }
  if (node.quiet) return
  for (const [name, truth, later = 0] of happenings(node, world)) {
    if (!left(name)) continue
    yield { ...noInput({ ...node, now: node.now + later, truth, quiet: true }), name }
  }
}

function* inputs(node: Node, policy: MachinePolicy, world: World): Generator<Make> {
  const put: Put = (input, more = {}, seen = null) =>
    take({ ...node, ...more }, input, policy, seen)
  const { settled, holding } = node.machine.ending
  // A run that released everything takes no further look.
  if (!settled || holding) {
    yield* looks(node, policy, world)
    yield ['look fails', () => failedLook(node, put)]
  }
  yield* results(node, put, world)
  yield* ends(node, put)
  yield* rarer(node, put, policy, world)
  yield* nextRuns(node, policy, world)
}

function failedLook({ now }: Node, put: Put): Made {
  const askedAt = now + TICK
  return put({ type: 'unreadable', error: LOST, askedAt }, { now: askedAt })
}

/** How a look goes, beside what is true. */
interface LookOptions {
  readonly flaw?: Flaw
  readonly took?: number
  readonly floor?: typeof TOO_FEW | null
}

function* looks(node: Node, policy: MachinePolicy, world: World): Generator<Make> {
  const { truth, asked, machine } = node
  const see = (at: number, of: Truth, flaw: Flaw = 'none'): Seen => ({
    reading: look(of, at, world, flaw),
    askedAt: at,
    truth: of,
  })
  const lookIn =
    (ms: number, { flaw, took = 0, ...floor }: LookOptions = {}) =>
    (): Made => {
      const at = node.now + ms
      const from = { ...node, truth: cached(truth, at, world) }
      return answer(
        from,
        see(at, truth, flaw),
        { at: at + took, took, ...floor },
        { policy, world },
      )
    }
  yield ['look', lookIn(TICK)]
  yield ['look after long', lookIn(LONG)]
  if (truth.damagedAt === null && truth.identity !== null)
    yield [
      'look, damaged',
      () => {
        const step = lookIn(TICK, { flaw: 'damaged' })()
        const { node: after } = step
        return { ...step, node: { ...after, truth: { ...after.truth, damagedAt: after.now } } }
      },
    ]
  if (may(world, 'partial') && isKnown(node, 'a'))
    yield ['look, partial', lookIn(TICK, { flaw: 'partial' })]
  const { cache } = truth
  if (cache !== null && node.now + TICK - cache.at <= world.freshness)
    yield ['look, old numbers', lookIn(TICK, { flaw: 'old' })]
  if (may(world, 'stops') && !world.tellsClock)
    yield ['look, slow: it stood still', () => slowLook(node, { policy, world })]
  if (may(world, 'floor') && machine.hold.floor === 'granted')
    yield ['look, floor broken', lookIn(TICK, { floor: TOO_FEW })]
  if (asked === null)
    yield [
      'ask',
      () => noInput({ ...node, quiet: false, asked: see(node.now, truth), now: node.now + 1 }),
    ]
  else
    yield [
      'answer',
      () =>
        answer(
          { ...node, asked: null },
          asked,
          { at: node.now + TICK, took: 0 },
          { policy, world },
        ),
    ]
}

/** Whether the life of a process is the one that was read last: its own state is read there. */
function isKnown({ truth, machine }: Node, name: string): boolean {
  const one = truth.processes.find((known) => known.name === name)
  const read = machine.proof.scopes.get(name)?.read
  return read?.incarnation === `${name}.${one?.incarnation ?? 0}`
}

/** The product stood still before it answered: hidden work has aged by nothing. */
function slowLook(node: Node, { policy, world }: Pick<Case, 'policy' | 'world'>): Made {
  const askedAt = node.now + TICK
  const at = askedAt + SLOW
  const truth = {
    ...node.truth,
    processes: node.truth.processes.map((one) => ({
      ...one,
      work: one.work.map(({ takenAt }) => ({ takenAt: takenAt + SLOW })),
    })),
  }
  const read = look(truth, at, world)
  const scopes = read.scopes.map((one) => ({ ...one, sampledAt: askedAt - world.freshness }))
  const seen: Seen = { reading: { ...read, scopes }, askedAt, truth }
  return answer({ ...node, truth }, seen, { at, took: SLOW }, { policy, world })
}

interface Came {
  readonly at: number
  readonly took: number
  readonly floor?: typeof TOO_FEW | null
}

function answer(
  node: Node,
  seen: Seen,
  { at, took, floor }: Came,
  { policy, world }: Pick<Case, 'policy' | 'world'>,
): Made {
  const { reading, askedAt } = seen
  const ended = world.listsAll ? { ended: 'unlisted' as const } : {}
  const shown = reading.scopes.map(({ scope }) => scope)
  const stragglers = node.truth.stragglers.map((one) =>
    one.until === null && one.underWay !== true && askedAt >= one.lostAt
      ? { ...one, until: at + policy.capabilities.lateBound }
      : one,
  )
  const { damagedAt } = node.truth
  const truth = {
    ...node.truth,
    stragglers,
    damagedAt: damagedAt !== null && askedAt <= damagedAt ? damagedAt : null,
  }
  const asks = node.machine.hold.floor === 'granted'
  const broken = asks ? { floor: floor ?? null, random: 0.05 } : {}
  const more = { now: at, truth, shown: [...new Set([...node.shown, ...shown])].sort() }
  const input = { type: 'reading' as const, reading, askedAt, took, ...ended, ...broken }
  return take({ ...node, ...more }, input, policy, seen)
}

/** What ends a run, or takes it back. */
function* ends(node: Node, put: Put): Generator<Make> {
  const { goal, ending, deadline } = node.machine
  const { now } = node
  const silent = node.machine.last === null
  if (goal.kind === 'drain') {
    yield [
      'undo',
      () => {
        const undo = openGoal({ of: 'ours', until: now + 20_000, lateUntil: null })
        return put({ type: 'goal', goal: undo })
      },
    ]
    yield ['yield', () => put({ type: 'yield', error: OVERRULED })]
    if (deadline !== null && now >= deadline)
      yield ['overdue', () => put({ type: 'overdue', error: TIMED_OUT, silent })]
  }
  if (goal.kind === 'open' && goal.until !== null && now >= goal.until && ending.ended === null)
    yield ['overdue', () => put({ type: 'overdue', error: TIMED_OUT, silent })]
  if (ending.ended !== null && !ending.settled) yield ['settle', () => put({ type: 'settle' })]
  if (ending.settled && ending.holding) yield ['release', () => put({ type: 'release' })]
  if (ending.ended === null) yield ['abort', () => put({ type: 'end', outcome: 'aborted' })]
}

/** What only some searches play. */
function* rarer(node: Node, put: Put, policy: MachinePolicy, world: World): Generator<Make> {
  const { goal, ending, hold } = node.machine
  if (may(world, 'floor') && node.first && !node.truth.landed)
    yield ['floor says no', () => put({ type: 'denied', error: TOO_FEW, isFinal: true })]
  if (may(world, 'doubts')) {
    if (ending.ended?.outcome === 'idle' && !ending.settled)
      yield ['doubt', () => put({ type: 'doubt' })]
    if (hold.pending !== null && !node.truth.landed && isOutdated(node.machine, policy))
      yield ['recalled', () => put({ type: 'recalled' })]
  }
  if (goal.kind === 'open' && goal.check === 'running') {
    yield ['own check passes', () => put({ type: 'checked', error: null })]
    yield ['own check fails', () => put({ type: 'checked', error: UNHEALTHY })]
  }
}

/** The answers to the change under way. */
function* results(node: Node, put: Put, world: World): Generator<Make> {
  yield* callsThatWereGivenUp(node, put)
  const { pending } = node.machine.hold
  if (pending === null) return
  const { change: wanted } = pending
  const { truth } = node
  const done = truth.landed ? truth : carryOut(truth, wanted)
  const result = (by: ChangeResult, news: Truth, more: { readonly givenUp?: true } = {}): Made => {
    const next = { ...news, landed: false }
    return put(
      { type: 'result', change: wanted, result: by, ...more },
      { truth: next, now: node.now + 1 },
    )
  }
  const unknown = { ref: WEB1, status: 'unknown' as const, error: TIMED_OUT }
  if (done !== null) {
    const status = done === truth && !truth.landed ? 'unchanged' : 'applied'
    yield [status, () => result({ ref: WEB1, status }, done)]
    yield ['answer lost, done', () => result(unknown, done)]
    if (may(world, 'half-made') && (wanted.kind === 'hold' || wanted.kind === 'restore'))
      for (const [name, error] of REFUSALS)
        yield [`${name}, but done`, () => result({ ref: WEB1, status: 'rejected', error }, done)]
  }
  if (truth.landed) return
  for (const [name, error] of REFUSALS)
    yield [name, () => result({ ref: WEB1, status: 'rejected', error }, truth)]
  yield ['answer lost, not done', () => result(unknown, truth)]
  const straggler = { change: wanted, lostAt: node.now + 1, until: null }
  yield [
    'answer lost, may be late',
    () => result(unknown, { ...truth, stragglers: [...truth.stragglers, straggler] }),
  ]
  if (!may(world, 'given-up')) return
  const going = { ...straggler, underWay: true }
  yield [
    'given up, its call goes on',
    () =>
      result(unknown, { ...truth, stragglers: [...truth.stragglers, going] }, { givenUp: true }),
  ]
}

function* callsThatWereGivenUp(node: Node, put: Put): Generator<Make> {
  const { truth } = node
  const call = truth.stragglers.find(({ underWay }) => underWay === true)
  if (call === undefined) return
  const { change } = call
  const rest = truth.stragglers.filter((one) => one !== call)
  const result = (by: ChangeResult, news: Truth): Made =>
    put({ type: 'result', change, result: by }, { truth: news, now: node.now + 1 })
  const done = carryOut(truth, change)
  if (done !== null) {
    const status = done === truth ? 'unchanged' : 'applied'
    yield [
      `call given up ends: ${status}`,
      () => result({ ref: WEB1, status }, { ...done, stragglers: rest }),
    ]
  }
  const [, error] = REFUSALS[0]
  yield [
    'call given up ends: refused',
    () => result({ ref: WEB1, status: 'rejected', error }, { ...truth, stragglers: rest }),
  ]
  const late = { change, lostAt: node.now + 1, until: null }
  yield [
    'call given up ends: unknown',
    () =>
      result(
        { ref: WEB1, status: 'unknown', error: TIMED_OUT },
        { ...truth, stragglers: [...rest, late] },
      ),
  ]
}
