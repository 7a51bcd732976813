import { initialState, openGoal, type Goal } from 'drainable/machine'
import { policyOf, WEB1, type RunOptions } from '../member-run.js'
import { moves, type Case, type Node } from './moves.js'
import { process, setOwn, type Truth, type World } from './truth.js'

/** A case, and the places its search begins in. */
export interface SearchCase {
  readonly name: string
  readonly one: Case
  readonly starts: readonly { readonly name: string; readonly node: Node }[]
  /** How deep it is searched in CI. */
  readonly depth: number
}

interface Options {
  readonly name: string
  readonly policy?: RunOptions
  readonly world?: Partial<World>
  readonly without?: readonly RegExp[]
  readonly goal?: Goal
  readonly own?: Truth['own']
  readonly second?: 'unborn' | 'alive'
  /** Moves from the beginning to each place where a search begins, beside the beginning itself. */
  readonly ways?: Readonly<Record<string, readonly string[]>>
  readonly timeout?: number
  readonly depth: number
}

const LATE_BOUND = 100

function searchCase(options: Options): SearchCase {
  const { name, goal = { kind: 'drain' }, own = 'ready', without = [], depth } = options
  const policy = policyOf({ settle: 60, lateBound: LATE_BOUND, ...options.policy })
  const world = { blind: 0, persistent: true, listsAll: false, ...options.world }
  const one = { name, policy, world, without }
  const deadline = options.timeout === undefined ? null : options.timeout
  const truth: Truth = {
    own: 'ready',
    setBy: 'before',
    identity: 'first',
    processes: [process('a'), process('b', options.second ?? 'alive')],
    stragglers: [],
    landed: false,
    operator: false,
    damagedAt: null,
  }
  const start: Node = {
    now: 0,
    machine: initialState(WEB1, 0, deadline, goal),
    truth: setOwn(truth, own, 'before'),
    asked: null,
    quiet: false,
    shown: [],
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

const HELD = ['look', 'applied', 'look'] as const
const IDLE = [...HELD, 'look', 'look'] as const
const SEALED = [...IDLE, 'applied', 'look'] as const
/** What happens to the member as a whole, and what ends a run from outside: searched in cases of their own. */
const GONE = [/^member/, /damaged/]
const OUTSIDE = [/^abort$/, /^yield$/, /^settle$/, /^release$/, /^overdue$/]

export const CASES: readonly SearchCase[] = [
  searchCase({
    name: 'drain',
    without: [...GONE, ...OUTSIDE, /^undo$/],
    ways: { 'a hold': HELD, 'an idle member': IDLE },
    depth: 4,
  }),
  searchCase({
    name: 'drain, work hidden for a time',
    policy: { blind: 90, freshness: 0, settle: 0 },
    world: { blind: 90, persistent: false },
    without: [...GONE, ...OUTSIDE, /^undo$/, /long/, /refused/, /lost/],
    ways: { 'a hold': HELD },
    depth: 5,
  }),
  searchCase({
    name: 'drain with a seal',
    policy: { seal: 'gentle' },
    without: [...GONE, ...OUTSIDE, /^undo$/],
    ways: { 'a seal under way': IDLE, 'a sealed member': SEALED },
    depth: 4,
  }),
  searchCase({
    name: 'drain with a seal that cuts',
    policy: { seal: 'always', maint: 'cuts' },
    without: [...GONE, ...OUTSIDE, /^undo$/, /b blurs/],
    ways: { 'a seal under way': IDLE, 'a sealed member': SEALED },
    depth: 4,
  }),
  searchCase({
    name: 'drain, whoever opens it',
    policy: { onOverrule: 'reapply' },
    without: [...GONE, ...OUTSIDE, /^undo$/, /^b/],
    ways: { 'a hold': HELD },
    depth: 4,
  }),
  searchCase({
    name: 'drain of a member that goes or is replaced',
    world: { listsAll: true },
    without: [...OUTSIDE, /^undo$/, /^operator/, /refused/],
    second: 'unborn',
    ways: { 'a hold': HELD },
    depth: 4,
  }),
  searchCase({
    name: 'drain until removed',
    policy: { until: 'removed' },
    without: [...OUTSIDE, /^undo$/, /^b/],
    ways: { 'a removal under way': IDLE },
    depth: 4,
  }),
  searchCase({
    name: 'drain with a deadline that cuts',
    policy: { onTimeout: 'terminate', escalateAfter: 100 },
    timeout: 200,
    without: [...GONE, /^undo$/, /^yield$/, /^b blurs/, /^operator/],
    ways: { 'a hold of busy work': ['look', 'a gets work', 'applied', 'look'] },
    depth: 4,
  }),
  searchCase({
    name: 'drain, held and let go',
    without: [...GONE, /^overdue$/],
    ways: { 'an idle member': IDLE, 'a settled one': [...IDLE, 'settle'] },
    depth: 4,
  }),
  searchCase({
    name: 'undo',
    policy: { seal: 'gentle' },
    without: [
      /damaged/,
      /^member/,
      /^b/,
      /gets work/,
      /^overdue$/,
      /^settle$/,
      /^release$/,
      /^yield$/,
    ],
    ways: {
      'an undo': [...HELD, 'undo'],
      'an undo of a hold under way': ['look', 'undo'],
      'an undo of a lost hold': ['look', 'answer lost, may be late', 'undo'],
      'an undo of a lost seal': [...IDLE, 'answer lost, may be late', 'undo'],
      'an undo of a sealed member': [...SEALED, 'undo'],
    },
    depth: 4,
  }),
  searchCase({
    name: 'undo of a member drained before',
    policy: { hold: 'maint' },
    own: 'drain',
    without: [
      /damaged/,
      /^member/,
      /^b/,
      /gets work/,
      /^overdue$/,
      /^settle$/,
      /^release$/,
      /^yield$/,
    ],
    ways: { 'an undo': [...HELD, 'undo'] },
    depth: 4,
  }),
  searchCase({
    name: 'ready',
    goal: openGoal({ of: 'anybody', until: 30_000, lateUntil: null }),
    own: 'maint',
    without: [/gets work/, /^b/, /^settle$/, /^release$/],
    depth: 4,
  }),
  searchCase({
    name: 'watch',
    goal: { kind: 'watch' },
    own: 'drain',
    without: [/^abort$/],
    ways: { 'an idle member': ['look', 'look', 'look'] },
    depth: 4,
  }),
]
