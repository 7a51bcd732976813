import { DrainableError } from '../../../provider/error.js'
import { formatRef } from '../../../provider/member-ref.js'
import { isUnreachable } from '../../../provider/thrown.js'
import type { Outcome } from '../../../provider/report.js'
import type { Draft } from '../draft.js'
import { loadOf, readsMember, type DrainState } from '../state.js'
import { loseIdle } from './idle.js'
import { raise } from './raise.js'
import { send } from './send.js'

/** How long a cut can take to show in the counts, beyond the idle rule itself, in milliseconds. */
const CUT_SHOWS = 5_000
/** Between two cuts of one member, in milliseconds: queued work becomes active next and is cut too. */
const CUT_GAP = 100

/** Decides the outcome past the deadline, after one last look. */
export function checkDeadline(draft: Draft): void {
  const { state, policy } = draft
  const { deadline, hold } = state
  if (state.ending.ended !== null || hold.pending !== null || state.goal.kind !== 'drain') return
  if (deadline === null) return
  const looked = [state.last?.askedAt, state.unread?.askedAt].some(
    (at) => at !== undefined && at >= deadline && at > hold.confirmedAt,
  )
  if (!looked) return
  if (policy.onTimeout === 'terminate' && state.unread === null && wasHeld(state)) terminate(draft)
  else endAtDeadline(draft)
}

/** Ends the run when the last look did not come in time: the outcome rests on the readings before it. */
export function endOverdue(draft: Draft): void {
  const { state } = draft
  if (state.goal.kind !== 'drain') return
  if (state.ending.terminateUntil !== null && draft.now < state.ending.terminateUntil) return
  endAtDeadline(draft)
}

function endAtDeadline(draft: Draft): void {
  const { state } = draft
  const [outcome, error] = outcomeAtDeadline(draft)
  // It is not known whether the member is still idle.
  if (isSilent(draft) && state.ending.ended === null) loseIdle(draft)
  // A member that was never held is not held after the end either.
  if (wasHeld(state)) draft.end(outcome, error)
  else draft.finish(outcome, error)
}

/** Whether the balancer answers no look. */
function isSilent({ state, input }: Draft): boolean {
  return state.unread !== null || (input.type === 'overdue' && input.silent)
}

function outcomeAtDeadline(draft: Draft): readonly [Outcome, DrainableError | null] {
  const { state, policy, input } = draft
  const { hold, unread } = state
  const refused = refusalOf(state)
  if (policy.onTimeout === 'proceed') return ['proceeded', refused]
  if (!wasHeld(state) && hold.atMinimum) return ['refused', minimumError(state)]
  // If the balancer answers no look either, a hold that could not be sent was not refused.
  const unsent = isSilent(draft) && refused !== null && isUnreachable(refused)
  if (!wasHeld(state) && refused !== null && !unsent) return ['refused', refused]
  if (unread !== null) return ['unreachable', refused ?? unread.error]
  if (input.type === 'overdue' && input.silent) return ['unreachable', refused ?? input.error]
  return ['timeout', refused ?? (wasHeld(state) ? null : hold.loss)]
}

/** Whether a hold was ever in place. */
function wasHeld(state: DrainState): boolean {
  return state.hold.confirmed !== 'none'
}

function refusalOf(state: DrainState): DrainableError | null {
  return state.hold.refusal?.error ?? null
}

function minimumError(state: DrainState): DrainableError {
  return new DrainableError(
    'POOL_AT_MINIMUM',
    `${formatRef(state.ref)} was not drained: no replacement served before the deadline, and the pool would keep fewer serving members than keepReady`,
    { ref: state.ref },
  )
}

/** Cuts the work that is left, repeatedly, because queued work becomes active next. Ends when the counts show it. */
function terminate(draft: Draft): void {
  const { policy } = draft
  const reading = draft.state.last?.reading
  const { blind, freshness } = policy.capabilities
  if (draft.state.ending.terminateUntil === null) {
    const rule = Math.max(policy.settle, blind) + 2 * freshness
    draft.ending({ terminateUntil: draft.now + CUT_SHOWS + rule })
    const raises = policy.seal !== 'never' || !policy.capabilities.terminate
    // An idle member waits for its removal: it has nothing to cut, and its verdict stands.
    const { state } = draft
    if (state.phase !== 'idle' && reading?.present === true && readsMember(state) && raises)
      raise(draft, reading)
  }
  if (draft.now >= (draft.state.ending.terminateUntil ?? Infinity)) endAfterCut(draft)
  else cutAgain(draft)
}

/** Ends the run when the time for a cut to show is over: either no process has work left, or the cut did not help. */
function endAfterCut(draft: Draft): void {
  const { state } = draft
  const unread = [...state.proof.scopes.values()].some(({ last }) => last.state === 'unread')
  const cut = !mayBeLeft(draft) && !unread && state.last?.reading.present === true
  draft.end(cut ? 'terminated' : 'timeout', cut ? null : refusalOf(state))
}

/**
 * Cuts the work that is left, unless a cut is pending, or was refused for good. A member last read as absent, or as
 * another one, can't be cut.
 */
function cutAgain(draft: Draft): void {
  const { state, policy } = draft
  const cutting = state.hold.late.some(({ change }) => change.kind === 'terminate')
  if (!mayBeLeft(draft) || cutting || !policy.capabilities.terminate) return
  if (!readsMember(state)) return
  const refused = state.hold.refusal
  if (refused?.change.kind === 'terminate' && !refused.error.retryable) {
    draft.end('timeout', refused.error)
    return
  }
  if (send(draft, { kind: 'terminate', ref: state.ref, ...draft.identity }))
    draft.hold({ notBefore: draft.now + CUT_GAP })
}

/**
 * Whether work may be left. If work is not counted, the answer is yes until the product has carried out one cut, or
 * each process reports the member released: nothing shows that a second cut is needed.
 */
function mayBeLeft({ state, policy }: Draft): boolean {
  if (policy.capabilities.counts !== 'none') return loadOf(state) > 0
  const { changes } = state.hold
  if (changes.some(({ kind, state: known }) => kind === 'terminate' && known === 'applied'))
    return false
  return [...state.proof.scopes.values()].some(
    ({ last }) => last.state === 'read' && last.released !== true,
  )
}
