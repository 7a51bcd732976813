import { transition, type DrainState, type Input, type MachinePolicy } from 'drainable/machine'
import type { FreeInput } from '../member-run.js'
import { isAbove, type Seen, type Truth } from './truth.js'
import type { Group, World } from './world.js'

/** One case: the machine's policy, what the world may do, and where it begins. */
export interface Case {
  readonly name: string
  readonly policy: MachinePolicy
  readonly world: World
  /** Names of moves that are left out. */
  readonly without: readonly RegExp[]
}

/** What the run has said so far. */
export interface Said {
  readonly inForce: boolean
  /** Idle is said, and not taken back since. */
  readonly idle: boolean
  readonly removed: boolean
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
  readonly said: Said
  /** Runs so far: a second one begins with what the first left. */
  readonly runs: number
  /** A look of this run has shown that another client took our hold back, and nothing of ours was set since. */
  readonly takenBack: boolean
  /** The first hold was decided on just now: the floor may still say no. */
  readonly first: boolean
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

export type Made = Omit<Step, 'name'>
/** A move that is made when it is wanted. */
export type Make = readonly [string, () => Made]
export type Put = (input: FreeInput, more?: Partial<Node>, seen?: Seen | null) => Made

/** Nothing was said yet. */
export const UNSAID: Said = { inForce: false, idle: false, removed: false }

/** Whether a group of moves is played. */
export function may({ may: groups }: World, group: Group): boolean {
  return groups.includes(group)
}

/** One input of the machine. */
export function take(
  node: Node,
  input: FreeInput,
  policy: MachinePolicy,
  seen: Seen | null = null,
): Made {
  const stamped = { ...input, at: node.now, wall: node.now } as Input
  const { state, effects } = transition(node.machine, stamped, policy)
  const first = effects.some((effect) => effect.type === 'apply' && effect.first)
  const said = effects.reduce(hear, node.said)
  const takenBack = isTakenBack(node, stamped)
  const next = { ...node, machine: state, quiet: false, said, first, takenBack }
  return { node: next, input: stamped, effects, seen }
}

/** Whether, after this input, our hold is known to have been taken back by another client. */
function isTakenBack({ machine, takenBack }: Node, input: Input): boolean {
  const { hold, found, proof } = machine
  if (input.type === 'result')
    return takenBack && input.result.status !== 'applied' && input.result.status !== 'unknown'
  if (input.type !== 'reading' || !input.reading.present || takenBack) return takenBack
  const { own, scopes, identity } = input.reading
  if (own === 'unknown' || identity !== found?.identity || input.askedAt <= hold.confirmedAt)
    return false
  if (hold.pending !== null || hold.late.length > 0 || hold.confirmed === 'none') return false
  const same = [...proof.scopes.keys()].every((name) => {
    const life = scopes.find(({ scope, state }) => scope === name && state === 'read')?.incarnation
    return life !== undefined && life === hold.incarnations?.get(name)
  })
  return same && isAbove(hold.confirmed, own)
}

function hear(said: Said, effect: Made['effects'][number]): Said {
  if (effect.type !== 'emit') return said
  const { event } = effect
  if (event.type === 'in-force') return { ...said, inForce: true }
  if (event.type === 'idle') return { ...said, idle: true }
  if (event.type === 'removed') return { ...said, removed: true }
  const left = event.type === 'phase' && event.from === 'idle'
  return left || event.type === 'idle-lost' ? { ...said, idle: false } : said
}

/** A move that is no input. */
export function noInput(node: Node): Made {
  return { node, input: null, effects: [], seen: null }
}
