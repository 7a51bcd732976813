import { DrainableError } from '../../../provider/error.js'
import { formatRef } from '../../../provider/member-ref.js'
import { isUnreachable } from '../../../provider/thrown.js'
import type { Outcome } from '../../../provider/report.js'
import type { Draft } from '../draft.js'
import { loadOf, type DrainState } from '../state.js'
import { raise } from './raise.js'
import { send } from './send.js'

/** How long what was cut may take to show in the counts, beyond the idle rule itself, in milliseconds. */
const CUT_SHOWS = 5_000
/** Between two cuts of one member, in milliseconds: what was queued comes next and is cut too. */
const CUT_GAP = 100

/** Past the deadline, after one last look. */
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

/** The last look did not come in time: the end says what was known before it. */
export function endOverdue(draft: Draft): void {
  const { state } = draft
  if (state.goal.kind !== 'drain') return
  if (state.ending.terminateUntil !== null && draft.now < state.ending.terminateUntil) return
  endAtDeadline(draft)
}

function endAtDeadline(draft: Draft): void {
  const { state } = draft
  const [outcome, error] = outcomeAtDeadline(draft)
  // What was never held is not taken after the end either.
  if (wasHeld(state)) draft.end(outcome, error)
  else draft.finish(outcome, error)
}

// eslint-disable-next-line complexity -- one outcome a line, the first that fits
function outcomeAtDeadline({
  state,
  policy,
  input,
}: Draft): readonly [Outcome, DrainableError | null] {
  const { hold, unread } = state
  const refused = refusalOf(state)
  if (policy.onTimeout === 'proceed') return ['proceeded', refused]
  if (!wasHeld(state) && hold.atMinimum) return ['refused', minimumError(state)]
  // A hold that could not even be sent was not refused, where looks don't come through either.
  const silent = unread !== null || (input.type === 'overdue' && input.silent)
  const unsent = silent && refused !== null && isUnreachable(refused)
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

/** Cuts what is left, again and again: what was queued comes next. Ends when the counts show it. */
function terminate(draft: Draft): void {
  const { policy } = draft
  const reading = draft.state.last?.reading
  const { blind, freshness } = policy.capabilities
  if (draft.state.ending.terminateUntil === null) {
    const rule = Math.max(policy.settle, blind) + 2 * freshness
    draft.ending({ terminateUntil: draft.now + CUT_SHOWS + rule })
    const raises = policy.seal !== 'never' || !policy.capabilities.terminate
    if (reading?.present === true && raises) raise(draft, reading)
  }
  if (draft.now >= (draft.state.ending.terminateUntil ?? Infinity)) endAfterCut(draft)
  else cutAgain(draft)
}

/** The time in which a cut must show is over: either nothing is left in any process, or it did not help. */
function endAfterCut(draft: Draft): void {
  const { state } = draft
  const unread = [...state.proof.scopes.values()].some(({ last }) => last.state === 'unread')
  const cut = loadOf(state) === 0 && !unread && state.last?.reading.present === true
  draft.end(cut ? 'terminated' : 'timeout', cut ? null : refusalOf(state))
}

/** Cuts what is left, unless a cut is under way, or was refused for good. */
function cutAgain(draft: Draft): void {
  const { state, policy } = draft
  const cutting = state.hold.late.some(({ change }) => change.kind === 'terminate')
  if (loadOf(state) === 0 || cutting || !policy.capabilities.terminate) return
  const refused = state.hold.refusal
  if (refused?.change.kind === 'terminate' && !refused.error.retryable) {
    draft.end('timeout', refused.error)
    return
  }
  if (send(draft, { kind: 'terminate', ref: state.ref, ...draft.identity }))
    draft.hold({ notBefore: draft.now + CUT_GAP })
}
