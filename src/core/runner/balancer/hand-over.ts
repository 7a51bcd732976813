import { abortable, settledWithin } from '../../../provider/abort.js'
import { atLeast } from '../../../provider/admin-state.js'
import type { AdminState, MemberRef } from '../../../provider/contract.js'
import { DrainableError } from '../../../provider/error.js'
import { formatRef, refKey } from '../../../provider/member-ref.js'
import type { Goal } from '../../machine/goal.js'
import { owesUndo } from '../../machine/ledger/owner.js'
import { noted, ownChange } from '../../machine/ledger/changes.js'
import { isLetGo, type DrainState, type Owned, type OwnChange } from '../../machine/state.js'
import { CALL_LIMIT } from '../look/call.js'
import type { Members } from '../members.js'
import type { RunState } from '../run-state.js'
import { asInherited, type LeftChange, type Membership, type Side, type Stake } from './balancer.js'

/** Takes over the changes of runs that this run ends: the member goes back to its state before both. */
export class HandOver {
  readonly #run: RunState
  /** Drains that an undo has ended. Their pending changes can still be answered. */
  readonly #ended: { readonly ref: MemberRef; readonly other: Stake }[] = []
  /** The state that the undo of each member led to when the others were last asked. */
  readonly #led = new Map<string, AdminState | null>()

  constructor(run: RunState) {
    this.#run = run
  }

  /** Takes control of a member, and takes over the other run's changes of it. */
  take(ref: MemberRef, other: Stake, side: Side): void {
    const state = this.#run.members?.get(refKey(ref))
    if (state === undefined) return
    const before = other.side(ref)
    const to = side === 'open' ? leadsTo(state) : null
    const owned = other.overrule(ref, side, to, this.#run.keeper?.head.id)
    if (state.goal.kind === 'open' && state.goal.of === 'anybody') return
    if (side === 'open' && before === 'drain' && other.side(ref) === null)
      this.#ended.push({ ref, other })
    // Two undos run side by side: the later one takes over what the earlier one has not opened yet.
    const together = side === 'open' && before === 'open'
    this.#inherit(ref, owned ?? (together ? other.owned(ref) : null), side)
  }

  /**
   * Follows the state that an undo leads to. It can change when an unanswered hold turns out to be carried out: a
   * drain that was left alone is then ended before the member is opened further.
   */
  follow(state: DrainState, earlier: () => readonly Stake[]): void {
    const { ref, goal, ending } = state
    if (goal.kind !== 'open' || goal.of !== 'ours' || ending.ended !== null) return
    const [key, to] = [refKey(ref), leadsTo(state)]
    if (this.#led.get(key) === to) return
    this.#led.set(key, to)
    if (owesUndo(state)) for (const other of earlier()) this.take(ref, other, 'open')
  }

  /**
   * Inherits the unanswered changes of a run that leaves: its undo may still open a member that this run holds. The
   * place of a hold is kept elsewhere.
   */
  inheritLeft(left: readonly LeftChange[]): void {
    const { members, sender, spec } = this.#run
    for (const entry of left) {
      const key = refKey(entry.change.ref)
      const state = members?.get(key)
      if (entry.change.kind !== 'restore' || state?.goal.kind !== 'drain' || isLetGo(state))
        continue
      const late = [asInherited(entry, { now: this.#run.now(), clock: spec.clock })]
      sender?.send(members?.take(key, { type: 'inherit', late }) ?? [])
    }
  }

  /** Whether a drain that was ended has a pending or unanswered change. */
  isAwaited(): boolean {
    return this.#ended.some(({ ref, other }) => other.late(ref).length > 0)
  }

  /** Called when the pending changes have ended. */
  takeAgain(): void {
    for (const { ref, other } of this.#ended.splice(0)) this.#inherit(ref, other.owned(ref), 'open')
  }

  #inherit(ref: MemberRef, owned: Owned | null, side: Side): void {
    const state = this.#run.members?.get(refKey(ref))
    if (owned === null || state === undefined) return
    // A drain that was overruled itself takes over nothing.
    if (side === 'drain' && isLetGo(state)) return
    const input = side === 'open' ? { held: owned } : { owned }
    this.#run.members?.take(refKey(ref), { type: 'inherit', late: [], ...input })
  }
}

/** Whether a run still has something to undo, or keeps up a hold, under its ticket. */
export function goesOn({ states }: RunState): boolean {
  return states.some((state) => state.phase !== 'removed' && !isLetGo(state) && owesUndo(state))
}

/**
 * Called when another run no longer needs this ticket: a run that still needs it writes it from now on. Returns
 * whether it does.
 */
export function takeUpTicket(run: RunState, ticket: string): boolean {
  const { keeper, sender } = run
  if (keeper?.head.id !== ticket || !goesOn(run)) return false
  keeper.takeUp()
  void sender?.save()
  return true
}

/** The changes that a run ended by another one has not undone; null if there are none. */
export function ownedBy(state: DrainState | undefined): Owned | null {
  if (state === undefined) return null
  const { found, hold, goal, ending } = state
  if (found === null || !owesUndo(state)) return null
  if (goal.kind === 'drain') {
    const { changes, incarnations } = hold
    return changes.length === 0 ? null : { found, changes, incarnations }
  }
  if (goal.kind !== 'open' || goal.of !== 'ours' || ending.ended !== null) return null
  return { found, changes: changesOf(state), incarnations: goal.reached ?? hold.incarnations }
}

/**
 * The changes of a run. An undo whose effect was seen counts before its answer: a state set after that is another
 * client's.
 */
function changesOf({ hold, last }: DrainState): readonly OwnChange[] {
  const { changes, pending, confirmedAt } = hold
  if (pending?.change.kind !== 'restore' || pending.sight !== 'shown') return changes
  return noted(changes, ownChange(pending.change, 'applied', last?.at ?? confirmedAt))
}

/** The state that an undo leads to; null: not known, or ready whichever client drained the member. */
function leadsTo({ goal, found }: DrainState): AdminState | null {
  if (goal.kind === 'open' && goal.of === 'anybody') return null
  return found === null || found.own === 'unknown' ? null : found.own
}

/**
 * Whether a drain keeps its wanted state even after another run's undo has ended.
 *
 * @param to - the state that the undo leads to
 */
export function isKept(state: DrainState | undefined, to: AdminState | null): boolean {
  if (state === undefined || to === null || state.goal.kind !== 'drain') return false
  const { wish } = state.hold
  return wish !== 'none' && atLeast(to, wish)
}

export function isOurs(goal: Goal): boolean {
  return goal.kind === 'open' && goal.of === 'ours'
}

/** Whether the member is opened only because of the floor, and drained again as soon as there is a place. */
export function drainsAgain(state: DrainState | undefined): boolean {
  return state?.goal.kind === 'open' && state.goal.then === 'wait'
}

export function overruledError(ref: MemberRef, by: Side, was: Side): DrainableError {
  const word = { open: 'made ready', drain: 'drained' }
  return new DrainableError(
    'DRAIN_OVERRULED',
    `${formatRef(ref)} was ${word[by]} by another call of this process while it was ${word[was]}`,
    { ref },
  )
}

/**
 * Waits for other runs' calls that change these members, but not beyond this run's time.
 *
 * @returns whether there were none
 */
export async function othersAnswered(
  run: RunState,
  membership: Pick<Membership, 'callsOf'>,
  { refs, all }: Members,
): Promise<boolean> {
  const calls = refs.flatMap((ref) => membership.callsOf(ref))
  if (calls.length === 0) return true
  const until = all.map(({ goal, deadline }) => (goal.kind === 'open' ? goal.lateUntil : deadline))
  const left = Math.min(...until.map((moment) => moment ?? Infinity)) - run.now()
  const limit = Math.min(CALL_LIMIT, Math.max(0, left))
  const done = settledWithin(Promise.allSettled(calls), run.spec.clock, limit)
  await abortable(done, run.stop.signal).catch(() => undefined)
  return false
}
