import { atLeast } from '../../../provider/admin-state.js'
import type { AdminState, Change } from '../../../provider/contract.js'
import { targetOf } from './changes.js'
import type { Draft } from '../draft.js'
import type { OpenGoal } from '../goal.js'
import { isTakenBack, undoneAt } from './owner.js'
import { anotherIncarnation, type DrainState, type OwnChange, type SentChange } from '../state.js'

/**
 * Records the state to go back to at our first effective hold: the state that the hold was decided on, unless a hold
 * of ours whose answer was lost may have made it.
 */
export function meetAgain(draft: Draft, change: Change, before: AdminState | 'unknown'): void {
  const { found, hold } = draft.state
  if (change.kind !== 'hold' || found === null) return
  if (before === 'unknown' || found.own === before) return
  const since = changesInPlace(draft.state)
  if (since.some((known) => known.kind === 'hold' && known.state === 'applied')) return
  // A state that another process forgot was another client's hold: it is not a state to go back to.
  if (anotherIncarnation(draft.state, hold.incarnations)) return
  const maybeOurs = [
    ...hold.late.map((late) => targetOf(late.change)),
    ...since.flatMap((known) => (known.state === 'intended' ? [known.to] : [])),
  ].some((to) => to === before && !atLeast(found.own, to))
  if (!maybeOurs) draft.set({ found: { ...found, own: before } })
}

/**
 * Records that another client opened the member before any hold of ours changed it: an undo goes back to that state.
 */
export function meetLower(draft: Draft, own: AdminState): void {
  const { found, hold } = draft.state
  if (found === null || found.own === 'unknown' || atLeast(own, found.own)) return
  const since = hold.changes.slice(undoneAt(draft.state) + 1)
  if (since.some((known) => known.kind === 'hold' && known.state === 'applied')) return
  draft.set({ found: { ...found, own } })
}

/** The state that an undo goes to; null if it is not known. */
export function destination({ found }: DrainState, goal: OpenGoal): AdminState | null {
  if (goal.of === 'anybody') return 'ready'
  return found === null || found.own === 'unknown' ? null : found.own
}

/** The ledger without changes that an undo or another client has taken back. */
function changesInPlace(state: DrainState): readonly OwnChange[] {
  const { hold, found } = state
  const takenBack = hold.changes.findLastIndex(
    (change) => isTakenBack(change) && change.to === found?.own,
  )
  return hold.changes.slice(Math.max(undoneAt(state), takenBack) + 1)
}

/** The state that a hold changed. If the member was read as closed already, it was opened in between. */
export function stateBefore({ change, before }: SentChange): AdminState | 'unknown' {
  if (change.kind !== 'hold' || !atLeast(before, change.to)) return before
  return change.to === 'drain' ? 'ready' : 'unknown'
}
