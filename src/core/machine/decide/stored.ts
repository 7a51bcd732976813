import { atLeast } from '../../../provider/admin-state.js'
import type { AdminState, PresentReading } from '../../../provider/contract.js'
import type { OpenGoal } from '../goal.js'
import { mayBeOurs } from '../ledger/changes.js'
import type { DrainState } from '../state.js'

/** The state that a stored configuration gives a member at the next reload. */
export type Stored = Exclude<PresentReading['stored'], undefined>

/**
 * The stored state of a member that is still to be undone; null if there is none, or if it was stored before the
 * drain: `native` is then as it was found.
 */
export function storedHold(
  { found }: DrainState,
  goal: OpenGoal,
  { stored, native }: PresentReading,
  to: AdminState,
): Stored | null {
  if (stored === undefined || to !== 'ready') return null
  const same = JSON.stringify(native ?? null) === JSON.stringify(found?.native ?? null)
  return goal.of === 'ours' && same ? null : stored
}

/** Whether a hold of ours may have stored it: then we undo it, whatever the running state is. */
export function storedByUs({ hold }: DrainState, stored: Stored | null): boolean {
  if (stored === null) return false
  return (
    mayBeOurs(hold.late, stored) ||
    hold.changes.some(
      ({ kind, state, to }) =>
        kind === 'hold' && state === 'applied' && to !== null && atLeast(to, stored),
    )
  )
}
