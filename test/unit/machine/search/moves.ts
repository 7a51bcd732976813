import {
  openGoal,
  transition,
  type DrainState,
  type Input,
  type MachinePolicy,
} from 'drainable/machine'
import type { AdminState, ChangeResult } from 'drainable/provider'
import { failure, WEB1, type FreeInput } from '../member-run.js'
import {
  carryOut,
  change,
  look,
  setOwn,
  type Process,
  type Seen,
  type Truth,
  type World,
} from './truth.js'

/** One case: the machine's policy, what the world may do, and where it begins. */
export interface Case {
  readonly name: string
  readonly policy: MachinePolicy
  readonly world: World
  /** Names of moves that are left out. */
  readonly without: readonly RegExp[]
}

/** One state of machine and world together. */
export interface Node {
  readonly now: number
  readonly machine: DrainState
  readonly truth: Truth
  /** A look that was asked for and has no answer yet. */
  readonly asked: Seen | null
  /** The newest thing that happened was no input: the next is one. */
  readonly quiet: boolean
  /** Processes that readings of this run have shown. */
  readonly shown: readonly string[]
}

/** One move, with what the machine did about it. */
export interface Step {
  readonly name: string
  readonly node: Node
  readonly input: Input | null
  readonly effects: ReturnType<typeof transition>['effects']
  /** The look that came in. */
  readonly seen: Seen | null
}

/** Between two looks, in milliseconds. */
export const TICK = 40
/** Longer than any pause of the machine between two tries. */
const LONG = 5_000

/** Errors say nothing but their code here: each is made once. */
const LOST = failure('CONNECTION_LOST')
const TIMED_OUT = failure('CALL_TIMEOUT')
const OVERRULED = failure('DRAIN_OVERRULED')
const REFUSALS = [
  ['refused for now', failure('CONFLICT', true)],
  ['refused for good', failure('FORBIDDEN')],
] as const

/** Everything that can happen next. */
export function* moves(node: Node, { policy, world, without }: Case): Generator<Step> {
  const left = (name: string): boolean => !without.some((one) => one.test(name))
  for (const [name, step] of inputs(node, policy, world)) if (left(name)) yield { ...step(), name }
  if (node.quiet) return
  for (const [name, truth] of happenings(node, world)) {
    if (!left(name)) continue
    yield { name, node: { ...node, truth, quiet: true }, input: null, effects: [], seen: null }
  }
}

type Make = readonly [string, () => Omit<Step, 'name'>]

function* inputs(node: Node, policy: MachinePolicy, world: World): Generator<Make> {
  const put = (input: FreeInput, more: Partial<Node> = {}, seen: Seen | null = null) =>
    take({ ...node, ...more, quiet: false }, input, policy, seen)
  const answer = (seen: Seen, now: number): Omit<Step, 'name'> => {
    const ended = world.listsAll ? { ended: 'unlisted' as const } : {}
    const { reading, askedAt } = seen
    const shown = reading.scopes.map(({ scope }) => scope)
    const stragglers = node.truth.stragglers.map((one) =>
      one.until === null && askedAt >= one.lostAt
        ? { ...one, until: now + policy.capabilities.lateBound }
        : one,
    )
    const { damagedAt } = node.truth
    const news = {
      ...node.truth,
      stragglers,
      damagedAt: damagedAt !== null && askedAt <= damagedAt ? damagedAt : null,
    }
    const more = { now, truth: news, shown: [...new Set([...node.shown, ...shown])].sort() }
    return put({ type: 'reading', reading, askedAt, ...ended }, more, seen)
  }
  const { truth } = node
  const see = (at: number, damaged = false): Seen => ({
    reading: look(truth, at, world, damaged),
    askedAt: at,
    truth,
  })
  const lookIn = (ms: number) => () => answer(see(node.now + ms), node.now + ms)
  yield ['look', lookIn(TICK)]
  yield ['look after long', lookIn(LONG)]
  if (truth.damagedAt === null && truth.identity !== null)
    yield [
      'look, damaged',
      () => {
        const step = answer(see(node.now + TICK, true), node.now + TICK)
        return {
          ...step,
          node: { ...step.node, truth: { ...step.node.truth, damagedAt: step.node.now } },
        }
      },
    ]
  const { asked } = node
  if (asked === null)
    yield ['ask', () => idleStep({ ...node, asked: see(node.now), now: node.now + 1 })]
  else
    yield [
      'answer',
      () => {
        const step = answer(asked, node.now + TICK)
        return { ...step, node: { ...step.node, asked: null } }
      },
    ]
  yield [
    'look fails',
    () =>
      put({ type: 'unreadable', error: LOST, askedAt: node.now + TICK }, { now: node.now + TICK }),
  ]
  yield* results(node, put)
  const { goal, ending } = node.machine
  if (goal.kind === 'drain') {
    yield [
      'undo',
      () =>
        put({
          type: 'goal',
          goal: openGoal({ of: 'ours', until: node.now + 20_000, lateUntil: null }),
        }),
    ]
    yield ['yield', () => put({ type: 'yield', error: OVERRULED })]
    if (node.machine.deadline !== null && node.now >= node.machine.deadline)
      yield ['overdue', () => put({ type: 'overdue', error: TIMED_OUT, silent: false })]
  }
  if (ending.ended !== null && !ending.settled) yield ['settle', () => put({ type: 'settle' })]
  if (ending.settled && ending.holding) yield ['release', () => put({ type: 'release' })]
  if (ending.ended === null) yield ['abort', () => put({ type: 'end', outcome: 'aborted' })]
}

function idleStep(node: Node): Omit<Step, 'name'> {
  return { node: { ...node, quiet: false }, input: null, effects: [], seen: null }
}

type Put = (input: FreeInput, more?: Partial<Node>) => Omit<Step, 'name'>

/** The answers to the change under way. */
function* results(node: Node, put: Put): Generator<Make> {
  const { pending } = node.machine.hold
  if (pending === null) return
  const { change: wanted } = pending
  const { truth } = node
  const done = truth.landed ? truth : carryOut(truth, wanted)
  const result = (by: ChangeResult, news: Truth): Omit<Step, 'name'> => {
    const next = { ...news, landed: false }
    return put({ type: 'result', change: wanted, result: by }, { truth: next, now: node.now + 1 })
  }
  const unknown = { ref: WEB1, status: 'unknown' as const, error: TIMED_OUT }
  if (done !== null) {
    const status = done === truth && !truth.landed ? 'unchanged' : 'applied'
    yield [status, () => result({ ref: WEB1, status }, done)]
    yield ['answer lost, done', () => result(unknown, done)]
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
}

/** What happens without an input. */
function* happenings(
  { now, truth, machine }: Node,
  world: World,
): Generator<readonly [string, Truth]> {
  for (const one of truth.processes) yield* ofProcess(one, truth, now, world)
  for (const own of ['ready', 'drain', 'maint'] as const satisfies readonly AdminState[])
    if (truth.own !== own && truth.identity !== null)
      yield [`operator sets ${own}`, { ...setOwn(truth, own, 'operator'), operator: true }]
  if (truth.identity === 'first') {
    yield ['member removed', { ...truth, identity: null, operator: true }]
    yield [
      'member replaced',
      { ...setOwn(truth, 'ready', 'operator'), identity: 'other', operator: true },
    ]
  }
  const [late, ...rest] = truth.stragglers
  if (late !== undefined && (late.until === null || now < late.until)) {
    const done = carryOut(truth, late.change)
    if (done !== null) yield ['lost change carried out', { ...done, stragglers: rest }]
  }
  const { pending } = machine.hold
  if (pending !== null && !truth.landed) {
    const done = carryOut(truth, pending.change)
    if (done !== null && done !== truth) yield ['change carried out', { ...done, landed: true }]
  }
}

function* ofProcess(
  one: Process,
  truth: Truth,
  now: number,
  world: World,
): Generator<readonly [string, Truth]> {
  const { name } = one
  const as = (news: (known: Process) => Partial<Process>): Truth => change(truth, name, news)
  if (one.life === 'unborn') {
    yield [`${name} joins`, as(() => ({ life: 'alive', taken: truth.own }))]
    return
  }
  if (one.life === 'ended') return
  const open = one.taken === 'ready' || (world.persistent && one.taken === 'drain')
  if (open && one.work.length === 0)
    yield [
      `${name} gets work`,
      as(({ arrivals }) => ({ work: [{ takenAt: now }], arrivals: arrivals + 1, cameAt: now })),
    ]
  if (one.work.some(({ takenAt }) => takenAt + world.blind <= now))
    yield [`${name} finishes`, as(() => ({ work: [] }))]
  const fresh = {
    incarnation: one.incarnation + 1,
    work: [],
    arrivals: 0,
    cameAt: null,
    old: false,
  }
  if (one.incarnation < 3 && !one.old) {
    const kept = as(() => ({ ...fresh, taken: truth.own }))
    yield [`${name} restarts and keeps its state`, kept]
    // The own state is read of the first: what it forgets is forgotten.
    if (truth.own !== 'ready' && name === 'a')
      yield [
        `${name} restarts and forgets`,
        setOwn(
          as(() => fresh),
          'ready',
          'reload',
        ),
      ]
  }
  if (name === 'b') {
    yield ['b ends', as(() => ({ life: 'ended', work: [] }))]
    yield [one.readable ? 'b blurs' : 'b clears', as(() => ({ readable: !one.readable }))]
    yield [
      one.old ? 'b takes over' : 'b grows old',
      as(() => ({ old: !one.old, taken: one.old ? truth.own : one.taken })),
    ]
  }
}

function take(
  node: Node,
  input: FreeInput,
  policy: MachinePolicy,
  seen: Seen | null,
): Omit<Step, 'name'> {
  const stamped = { ...input, at: node.now, wall: node.now } as Input
  const { state, effects } = transition(node.machine, stamped, policy)
  return { node: { ...node, machine: state }, input: stamped, effects, seen }
}
