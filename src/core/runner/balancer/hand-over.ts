import { atLeast } from '../../../provider/admin-state.js'
import type { AdminState, MemberRef } from '../../../provider/contract.js'
import { DrainableError } from '../../../provider/error.js'
import { formatRef, refKey } from '../../../provider/member-ref.js'
import type { Goal } from '../../machine/goal.js'
import { owesUndo } from '../../machine/ledger/owner.js'
import { noted, ownChange } from '../../machine/ledger/changes.js'
import { isLetGo, type DrainState, type Owned, type OwnChange } from '../../machine/state.js'
import type { RunState } from '../run-state.js'
import { asInherited, type LeftChange, type Side, type Stake } from './balancer.js'

/** What one run takes over from those that it ends: its member goes back to what it was before both. */
export class HandOver {
  readonly #run: RunState
  /** Drains that an undo has ended. What they had sent may get its answer afterwards. */
  readonly #ended: { readonly ref: MemberRef; readonly other: Stake }[] = []
  /** Where the undo of each member led when the others were last asked. */
  readonly #led = new Map<string, AdminState | null>()

  constructor(run: RunState) {
    this.#run = run
  }

  /** Speaks for a member from now on, and takes over what the other run has changed there. */
  take(ref: MemberRef, other: Stake, side: Side): void {
    const state = this.#run.members?.get(refKey(ref))
    if (state === undefined) return
    const before = other.side(ref)
    const to = side === 'open' ? leadsTo(state) : null
    const owned = other.overrule(ref, side, to, this.#run.keeper?.head.id)
    if (state.goal.kind === 'open' && state.goal.of === 'anybody') return
    if (side === 'open' && before === 'drain' && other.side(ref) === null)
      this.#ended.push({ ref, other })
    // Two undos go on side by side: the later one takes on what the earlier one has yet to open.
    const together = side === 'open' && before === 'open'
    this.#inherit(ref, owned ?? (together ? other.owned(ref) : null), side)
  }

  /**
   * Where an undo leads shows when a hold that had no answer turns out to be carried out: a drain that was left alone
   * for that is ended before the member is opened further.
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
   * What another run that leaves never got an answer to: an undo may still open a member that this one holds. The place
   * of a hold is kept elsewhere.
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

  /** Whether a drain that was ended has something under way, or without an answer. */
  isAwaited(): boolean {
    return this.#ended.some(({ ref, other }) => other.late(ref).length > 0)
  }

  /** What was under way has ended. */
  takeAgain(): void {
    for (const { ref, other } of this.#ended.splice(0)) this.#inherit(ref, other.owned(ref), 'open')
  }

  #inherit(ref: MemberRef, owned: Owned | null, side: Side): void {
    const state = this.#run.members?.get(refKey(ref))
    if (owned === null || state === undefined) return
    // A drain that was overruled itself takes nothing on.
    if (side === 'drain' && isLetGo(state)) return
    const input = side === 'open' ? { held: owned } : { owned }
    this.#run.members?.take(refKey(ref), { type: 'inherit', late: [], ...input })
  }
}

/** Whether a run still has something to undo, or keeps it up, under its ticket. */
export function goesOn({ states }: RunState): boolean {
  return states.some((state) => state.phase !== 'removed' && !isLetGo(state) && owesUndo(state))
}

/** Another run has nothing left to do with this ticket: one that has writes it from now on. Returns whether it does. */
export function takeUpTicket(run: RunState, ticket: string): boolean {
  const { keeper, sender } = run
  if (keeper?.head.id !== ticket || !goesOn(run)) return false
  keeper.takeUp()
  void sender?.save()
  return true
}

/** What a run that another one ends has not undone yet; null where it owes nothing. */
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

/** An undo that was seen to have come is one, also before its answer: what is set after that is another client's. */
function changesOf({ hold, last }: DrainState): readonly OwnChange[] {
  const { changes, pending, confirmedAt } = hold
  if (pending?.change.kind !== 'restore' || pending.sight !== 'shown') return changes
  return noted(changes, ownChange(pending.change, 'applied', last?.at ?? confirmedAt))
}

/** Where an undo leads; null: not known, or ready whoever drained the member. */
function leadsTo({ goal, found }: DrainState): AdminState | null {
  if (goal.kind === 'open' && goal.of === 'anybody') return null
  return found === null || found.own === 'unknown' ? null : found.own
}

/**
 * Whether a drain has what it wishes, also where an undo of another one has come to its end.
 *
 * @param to - where that leads
 */
export function isKept(state: DrainState | undefined, to: AdminState | null): boolean {
  if (state === undefined || to === null || state.goal.kind !== 'drain') return false
  const { wish } = state.hold
  return wish !== 'none' && atLeast(to, wish)
}

export function isOurs(goal: Goal): boolean {
  return goal.kind === 'open' && goal.of === 'ours'
}

/** Whether it is opened for the floor's sake only, and drained again as soon as there is a place. */
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
