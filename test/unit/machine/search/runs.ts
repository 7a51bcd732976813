import {
  initialState,
  openGoal,
  transition,
  type DrainState,
  type Input,
  type LateChange,
  type MachinePolicy,
} from 'drainable/machine'
import { seenElsewhere } from '../../../../src/core/machine/ledger/foreign.js'
import { incarnationsIn } from '../../../../src/core/machine/state.js'
import { owesUndo } from '../../../../src/core/machine/ledger/owner.js'
import { freezeMember } from '../../../../src/core/tickets/freeze.js'
import { thawMember, thawStep } from '../../../../src/core/tickets/thaw.js'
import { failure, WEB1 } from '../member-run.js'
import { may, noInput, UNSAID, type Made, type Make, type Node } from './node.js'
import { carryOut, look, type Truth } from './truth.js'
import type { World } from './world.js'

/** Runs of one story: one, and one that begins with what the first left. */
const MOST_RUNS = 2
/** Between two steps, in milliseconds. */
const GAP = 40
const OVERRULED = failure('DRAIN_OVERRULED')

/** Another run takes the place of this one. */
export function* nextRuns(node: Node, policy: MachinePolicy, world: World): Generator<Make> {
  if (may(world, 'elsewhere') && node.truth.identity !== null && !node.truth.contradicts)
    yield ['another run looks', () => looksElsewhere(node, world)]
  if (node.runs >= MOST_RUNS) return
  if (may(world, 'next-run')) yield* others(node, policy)
  if (may(world, 'steps') && hasTicket(node)) yield* steps(node)
}

/** `ready()` writes none: no process goes on from one, or takes it for the ticket of a drain. */
function hasTicket({ machine: { goal } }: Node): boolean {
  return goal.kind === 'drain' || (goal.kind === 'open' && goal.of === 'ours')
}

function* others(node: Node, policy: MachinePolicy): Generator<Make> {
  const { machine, now } = node
  if (machine.goal.kind === 'watch') return
  for (const [how, truth] of hasTicket(node) ? crashes(node) : []) {
    yield [`crash${how}, resumed`, () => thawed(node, truth, { kind: 'drain' })]
    const undo = openGoal({ of: 'ours', until: now + 20_000, lateUntil: null })
    yield [`crash${how}, undone by its ticket`, () => thawed(node, truth, undo)]
  }
  if (machine.hold.pending !== null) return
  const { ended, holding } = machine.ending
  const over = ended !== null && !holding
  if (machine.goal.kind === 'open' || over)
    yield ['another drain begins', () => drains(node, policy)]
  yield [
    'ready begins',
    () => {
      const open = openGoal({ of: 'anybody', until: now + 30_000, lateUntil: null })
      return begins(node, initialState(WEB1, now, null, open), policy)
    },
  ]
}

/** A look of another run: this one learns how the member was found. */
function looksElsewhere(node: Node, world: World): Made {
  const now = node.now + 1
  const reading = look(node.truth, now, world)
  if (!reading.present || reading.own === 'unknown') return noInput({ ...node, now })
  const { own, identity, scopes } = reading
  const sight = { own, identity, askedAt: now, at: now, incarnations: incarnationsIn(scopes) }
  return noInput({ ...node, now, quiet: false, machine: seenElsewhere(node.machine, sight) })
}

/** The outcome of the change under way, where its process ended. */
function* crashes({ machine, truth, now }: Node): Generator<readonly [string, Truth]> {
  yield ['', { ...truth, landed: false }]
  const { pending } = machine.hold
  if (pending === null || truth.landed) return
  const { change } = pending
  const done = carryOut(truth, change)
  if (done !== null && done !== truth) yield [' after its change', done]
  const late = { change, lostAt: now, until: null }
  yield [' with a change on its way', { ...truth, stragglers: [...truth.stragglers, late] }]
}

function thawed(node: Node, truth: Truth, goal: DrainState['goal']): Made {
  const now = node.now + GAP
  const { deadline } = node.machine
  const options = { now, wallOffset: 0, goal, deadline: goal.kind === 'drain' ? deadline : null }
  const state = thawMember(freezeMember(node.machine, 0), options)
  const undoing = { ...state.hold, wish: 'none', confirmed: 'none', floor: 'unasked' } as const
  const machine = goal.kind === 'drain' ? state : { ...state, hold: undoing }
  return replaced(node, { now, truth, machine })
}

function replaced(node: Node, news: Pick<Node, 'now' | 'truth' | 'machine'>): Made {
  const runs = node.runs + 1
  return noInput({
    ...node,
    ...news,
    asked: null,
    quiet: false,
    said: UNSAID,
    runs,
    first: false,
    takenBack: false,
  })
}

/** The next step of the same drain, in another process of the same boot. */
function* steps(node: Node): Generator<Make> {
  for (const [how, truth] of crashes(node))
    yield [
      `step ends${how}, another begins`,
      () => {
        const now = node.now + GAP
        const { goal, deadline } = node.machine
        const saved = { wall: node.now, uptime: 0, boot: 'boot' }
        const options = { now, wallOffset: 0, goal, deadline }
        const frozen = freezeMember(node.machine, 0)
        const machine = thawStep(frozen, saved, { ms: GAP, foreign: false }, options)
        const next = { ...node, now, truth, machine, asked: null, quiet: false, first: false }
        return noInput(next)
      },
    ]
}

/** A later drain of the same process: an undo ends before that, and what it still owes is inherited. */
function drains(node: Node, policy: MachinePolicy): Made {
  const { machine, now } = node
  const { goal, ending, found, hold } = machine
  const undo = goal.kind === 'open' && goal.of === 'ours' && ending.ended === null
  const owes = undo && found !== null && owesUndo(machine)
  const incarnations = (goal.kind === 'open' ? goal.reached : null) ?? hold.incarnations
  const owned = owes ? { owned: { found, changes: hold.changes, incarnations } } : {}
  const stamped = { type: 'yield', error: OVERRULED, at: now, wall: now } as const
  const left = transition(machine, stamped, policy).state
  const next = { ...node, machine: left }
  return begins(next, initialState(WEB1, now, machine.deadline), policy, owned)
}

function begins(
  node: Node,
  state: DrainState,
  policy: MachinePolicy,
  owned: Partial<Extract<Input, { type: 'inherit' }>> = {},
): Made {
  const { now, truth } = node
  const late = node.machine.hold.late.map((entry) => leftBy(entry, now))
  const input = { type: 'inherit', late, at: now, wall: now, ...owned } as const
  const step = transition(state, input, policy)
  return { ...replaced(node, { now, truth, machine: step.state }), input, effects: step.effects }
}

/** As `inheritedLate` of the runner hands it on. */
function leftBy({ change, until, lackedAt, before }: LateChange, now: number): LateChange {
  const entry = { change, lostAt: now, until }
  if (change.kind !== 'restore' || lackedAt === null) return { ...entry, lackedAt: null }
  return { ...entry, lackedAt: now, shared: true, ...(before === undefined ? {} : { before }) }
}
