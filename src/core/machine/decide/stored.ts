import { atLeast } from '../../../provider/admin-state.js'
import type { AdminState, PresentReading } from '../../../provider/contract.js'
import type { OpenGoal } from '../goal.js'
import { mayBeOurs } from '../ledger/changes.js'
import type { DrainState } from '../state.js'

/** What a stored configuration makes of a member at the next reload. */
export type Stored = Exclude<PresentReading['stored'], undefined>

/**
 * What the stored configuration would make of a member, where that is still to be taken back; null where
 * it is not, or where it was so before the drain: `native` is then as it was found.
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

/** Whether a hold of ours may have stored it: then it is ours to take back, whatever runs now. */
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
