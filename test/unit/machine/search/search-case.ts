import { initialState, type Goal } from 'drainable/machine'
import { policyOf, WEB1, type RunOptions } from '../member-run.js'
import { moves, type Case, type Node } from './moves.js'
import { UNSAID } from './node.js'
import { process, setOwn, type Truth } from './truth.js'
import { WORLD, type World } from './world.js'

/** A case, and the places its search begins in. */
export interface SearchCase {
  readonly name: string
  readonly one: Case
  readonly starts: readonly { readonly name: string; readonly node: Node }[]
  /** How deep it is searched in CI. */
  readonly depth: number
}

/** What differs from a plain drain. */
export interface CaseOptions {
  readonly name: string
  readonly policy?: RunOptions
  readonly world?: Partial<World>
  readonly without?: readonly RegExp[]
  readonly goal?: Goal
  readonly own?: Truth['own']
  /** The balancer contradicts itself about the state in which the member is found. */
  readonly contradicts?: boolean
  readonly second?: 'unborn' | 'alive'
  /** Moves from the beginning to each place where a search begins, beside the beginning itself. */
  readonly ways?: Readonly<Record<string, readonly string[]>>
  readonly timeout?: number
  readonly depth: number
}

const LATE_BOUND = 100

export function searchCase(options: CaseOptions): SearchCase {
  const { name, goal = { kind: 'drain' }, own = 'ready', without = [], depth } = options
  const policy = policyOf({ settle: 60, lateBound: LATE_BOUND, ...options.policy })
  const world = { ...WORLD, ...options.world }
  const one = { name, policy, world, without }
  const deadline = options.timeout === undefined ? null : options.timeout
  const truth: Truth = {
    own: 'ready',
    setBy: 'before',
    had: {},
    identity: 'first',
    processes: [process('a'), process('b', options.second ?? 'alive')],
    stragglers: [],
    landed: false,
    operator: false,
    damagedAt: null,
    contradicts: options.contradicts ?? false,
    inherited: null,
    health: 'unchecked',
    rough: false,
    cache: null,
  }
  const start: Node = {
    now: 0,
    machine: initialState(WEB1, 0, deadline, goal),
    truth: setOwn(truth, own, 'before'),
    asked: null,
    quiet: false,
    shown: [],
    said: UNSAID,
    runs: 1,
    takenBack: false,
    first: false,
  }
  const ways = Object.entries(options.ways ?? {})
  const starts = ways.map(([place, way]) => ({ name: place, node: follow(start, one, way) }))
  return { name, one, starts: [{ name: 'the beginning', node: start }, ...starts], depth }
}

function follow(start: Node, one: Case, way: readonly string[]): Node {
  let node = start
  for (const name of way) {
    const step = [...moves(node, one)].find((move) => move.name === name)
    if (step === undefined) throw new Error(`${one.name}: no move '${name}' in '${way.join(', ')}'`)
    node = step.node
  }
  return node
}
