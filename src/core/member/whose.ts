import { atLeast } from '../../provider/member-ref.js'
import type { AdminState, Change } from '../../provider/contract.js'
import type { OpenGoal } from './wanted.js'
import type { LateChange, Ledger, Refusal } from './record.js'
import { isAnother, type ClaimedMember } from './claimed.js'

/** The own state that a change leads to; null if it does not change the state. */
export function targetOf(change: Change): AdminState | null {
  return change.kind === 'hold' || change.kind === 'restore' ? change.to : null
}

/** Whether a member in this state shows that a change has not been carried out. */
export function lacksEffect(change: Change, own: AdminState | 'unknown'): boolean {
  const to = targetOf(change)
  if (to === null) return true
  if (own === 'unknown') return false
  return change.kind === 'hold' ? !atLeast(own, to) : own !== to
}

/** Whether two changes ask for the same thing. */
export function sameChange(one: Change, other: Change): boolean {
  return (
    one.kind === other.kind &&
    targetOf(one) === targetOf(other) &&
    (one.kind !== 'restore' || other.kind !== 'restore' || one.expect === other.expect)
  )
}

/**
 * Whether a state found while a member is to be opened is ours to undo.
 *
 * - `ours`: we set it, or a change of ours that a look had lacked leads there
 * - `unknown`: a change of ours may have led there, and nobody can tell
 * - `theirs`: another client set it; ready always is
 */
export function whose(
  { ledger, facts }: Pick<ClaimedMember, 'ledger' | 'facts'>,
  own: AdminState,
): 'ours' | 'unknown' | 'theirs' {
  const { set, earlier, doubted, late } = ledger
  if (own === 'ready') return 'theirs'
  // A state between the steps of an undo is ours as well.
  if (own === set || mayBeOurs(late, own) || (set !== null && isUndone(ledger, own))) return 'ours'
  // A state file can bring back what we had set, and nobody saw taken back, in another process.
  if (earlier.includes(own) && isAnother(facts.incarnations, ledger.told)) return 'ours'
  if (doubted.includes(own)) return 'unknown'
  const mayHaveCome = late.some(({ change }) => targetOf(change) === own)
  // A raise above a state of ours that may have come: both are ours.
  if (mayHaveCome && set !== null && atLeast(own, set)) return 'ours'
  return mayHaveCome ? 'unknown' : 'theirs'
}

/** Whether the next look shows a change of ours if it shows this state: its answer was lost, and a look has lacked it. */
export function mayBeOurs(late: readonly LateChange[], own: AdminState | 'unknown'): boolean {
  return late.some(({ change, lacked }) => lacked !== null && targetOf(change) === own)
}

/**
 * Why a member is lower than a claim wants it:
 *
 * - `unset`: we have not set it yet, or a lost undo of ours came through
 * - `raise`: the first state is there, only the raise above it is not
 * - `forgotten`: the process is not the one that had taken it
 * - `theirs`: another client set it
 */
export type Cause = 'unset' | 'raise' | 'forgotten' | 'theirs'

export function whyLower({ claim, ledger, facts }: ClaimedMember, own: AdminState): Cause {
  if (isUndone(ledger, own)) return atLeast(own, 'drain') ? 'raise' : 'unset'
  if (mayBeOurs(ledger.late, own) && !atLeast(own, 'drain')) return 'unset'
  const isNew = isAnother(facts.incarnations, ledger.told)
  if (claim.confirmed !== 'none') {
    if (atLeast(own, claim.confirmed)) return 'raise'
    return isNew ? 'forgotten' : 'theirs'
  }
  if (claim.held || isNew || !isBelowFound(ledger, own)) return 'unset'
  return 'theirs'
}

/** Whether an undo of ours that is under way, or whose answer was lost, leads to this state. */
export function isUndone({ late, pending }: Ledger, own: AdminState): boolean {
  return [...late, ...(pending === null ? [] : [pending])].some(
    ({ change }) => change.kind === 'restore' && change.to === own,
  )
}

/** Whether somebody has lowered it before any change of ours was carried out. */
function isBelowFound({ found, set, earlier, doubted }: Ledger, own: AdminState): boolean {
  return isBelow(found, own) && set === null && earlier.length + doubted.length === 0
}

export function isBelow(found: Ledger['found'], own: AdminState | 'unknown'): boolean {
  return found !== null && found.own !== 'unknown' && !atLeast(own, found.own)
}

/** The state that an opening leads to; null if it is not known. */
export function destination({ found }: Ledger, { of }: OpenGoal): AdminState | null {
  if (of === 'anybody') return 'ready'
  return found === null || found.own === 'unknown' ? null : found.own
}

/** Whether a change of ours whose answer was lost may still change this state, or the one that follows it. */
export function stillLate({ late }: Ledger, own: AdminState | 'unknown'): boolean {
  return late.some(({ change }) => {
    const to = targetOf(change)
    return to !== null && (change.kind === 'hold' || to !== own)
  })
}

/** Whether the same change was refused for good. */
export function isRefused({ refusal }: Ledger, change: Change): boolean {
  return refusal !== null && !isTriedAgain(refusal) && sameChange(refusal.change, change)
}

/** Whether what was refused is tried again: so it is after a NOT_FOUND too, which the look contradicts. */
export function isTriedAgain({ error }: Refusal): boolean {
  return error.retryable || error.code === 'NOT_FOUND'
}
