import { atLeast } from '../../../provider/admin-state.js'
import type { AdminState, Change } from '../../../provider/contract.js'
import { targetOf } from './changes.js'
import type { Draft } from '../draft.js'
import type { OpenGoal } from '../goal.js'
import { isTakenBack, undoneAt } from './owner.js'
import { anotherIncarnation, type DrainState, type OwnChange, type SentChange } from '../state.js'

/**
 * The first hold of ours that changed anything: an undo goes back to the state that it was decided on,
 * unless that may be the doing of a hold of ours whose answer was lost.
 */
export function meetAgain(draft: Draft, change: Change, before: AdminState | 'unknown'): void {
  const { found, hold } = draft.state
  if (change.kind !== 'hold' || found === null) return
  if (before === 'unknown' || found.own === before) return
  const since = changesInPlace(draft.state)
  if (since.some((known) => known.kind === 'hold' && known.state === 'applied')) return
  // What another process forgot was the wish of another client: it is no state to go back to.
  if (anotherIncarnation(draft.state, hold.incarnations)) return
  const maybeOurs = [
    ...hold.late.map((late) => targetOf(late.change)),
    ...since.flatMap((known) => (known.state === 'intended' ? [known.to] : [])),
  ].some((to) => to === before && !atLeast(found.own, to))
  if (!maybeOurs) draft.set({ found: { ...found, own: before } })
}

/** Another client opened it before any hold of ours changed it: that is what an undo goes back to. */
export function meetLower(draft: Draft, own: AdminState): void {
  const { found, hold } = draft.state
  if (found === null || found.own === 'unknown' || atLeast(own, found.own)) return
  const since = hold.changes.slice(undoneAt(draft.state) + 1)
  if (since.some((known) => known.kind === 'hold' && known.state === 'applied')) return
  draft.set({ found: { ...found, own } })
}

/** The state that an undo goes to; null where it is not known. */
export function destination({ found }: DrainState, goal: OpenGoal): AdminState | null {
  if (goal.of === 'anybody') return 'ready'
  return found === null || found.own === 'unknown' ? null : found.own
}

/** What is taken back to where it was found, by an undo or by another client, is no change of ours any more. */
function changesInPlace(state: DrainState): readonly OwnChange[] {
  const { hold, found } = state
  const takenBack = hold.changes.findLastIndex(
    (change) => isTakenBack(change) && change.to === found?.own,
  )
  return hold.changes.slice(Math.max(undoneAt(state), takenBack) + 1)
}

/** The state that a hold changed. One that was read as closed already was opened in between. */
export function stateBefore({ change, before }: SentChange): AdminState | 'unknown' {
  if (change.kind !== 'hold' || !atLeast(before, change.to)) return before
  return change.to === 'drain' ? 'ready' : 'unknown'
}
