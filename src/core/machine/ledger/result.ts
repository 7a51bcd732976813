import { atLeast } from '../../../provider/admin-state.js'
import type { Change, ChangeResult } from '../../../provider/contract.js'
import { DrainableError } from '../../../provider/error.js'
import { formatRef } from '../../../provider/member-ref.js'
import { isTwin, lateChange, sameChange, targetOf } from './changes.js'
import { confirm, confirmForgotten } from './confirm.js'
import { countCut } from './cuts.js'
import type { Draft } from '../draft.js'
import type { Input } from '../input.js'
import { endUnderWay, loseAnswer, notOurs, showsWithout } from './late.js'
import { backOff } from '../pace.js'
import { type DrainState, type LateChange, type SentChange } from '../state.js'
import { meetAgain, stateBefore } from './was.js'

/** Takes in the result of the pending change. */
export function absorbResult(
  draft: Draft,
  { change, result, givenUp }: Extract<Input, { type: 'result' }>,
): void {
  const sent = draft.state.hold.pending
  if (sent?.change !== change) {
    endUnderWay(draft, change, result)
    return
  }
  switch (result.status) {
    case 'applied':
      applied(draft, sent, result)
      return
    case 'unchanged':
      draft.hold({ pending: null })
      notOurs(draft, sent)
      confirm(draft, change, whoseRaise(draft, sent))
      return
    case 'unknown':
      loseAnswer(draft, { ...sent, ...(givenUp === true ? { underWay: true } : {}) }, result.error)
      draft.fault(result.error)
      return
    case 'rejected':
      rejected(draft, change, result.error)
      return
    default:
      result satisfies never
  }
}

function applied(
  draft: Draft,
  sent: SentChange,
  { terminated, atMost }: Exclude<ChangeResult, { error: unknown }>,
): void {
  const { change, cuts } = sent
  draft.hold({ pending: null })
  if (cuts !== undefined) countCut(draft, cuts, terminated, atMost)
  if (wasForgotten(draft, sent)) {
    confirmForgotten(draft)
    return
  }
  meetAgain(draft, change, stateBefore(sent))
  confirm(draft, change, 'applied')
  notOurs(draft, sent)
  if (change.kind === 'restore') showsWithout(draft, change.to)
}

/**
 * Whether a hold was taken by one process before its answer came, and forgotten by its successor: it must be put
 * back.
 */
function wasForgotten({ state }: Draft, { change, sight }: SentChange): boolean {
  // The last entry records that the effect went: `unchanged` if another client undid it.
  return (
    change.kind === 'hold' && sight === 'gone' && state.hold.changes.at(-1)?.state === 'applied'
  )
}

/**
 * Decides whose raise it was if the member was read lower, but the change found it as wanted already: a lost change
 * of ours, or another client's. Above our own hold, only a lost change can be ours, and an undo must not take back
 * another client's raise.
 */
function whoseRaise({ state }: Draft, { change, before }: SentChange): 'unknown' | 'unchanged' {
  if (change.kind !== 'hold' || before === 'unknown' || atLeast(before, change.to))
    return 'unchanged'
  const { changes, late } = state.hold
  const held = changes.some((known) => known.kind === 'hold' && known.state === 'applied')
  const lost =
    late.some((entry) => isTwin(entry.change, change)) ||
    changes.some((known) => known.state === 'intended' && known.to === change.to)
  return held && !lost ? 'unchanged' : 'unknown'
}

/**
 * Records a refusal. Unless it is retryable, the same change is not sent again; the next look decides whether the
 * member is still as it was.
 */
function rejected(draft: Draft, change: Change, error: DrainableError): void {
  const { hold, proof, phase } = draft.state
  draft.fault(error)
  draft.hold({
    pending: null,
    late: [...hold.late, ...halfDone(draft)],
    confirmedAt: draft.now,
    refusals: hold.refusals + 1,
    refusal: { change, error },
    notBefore: draft.now + backOff(hold.refusals),
  })
  if (hold.pending !== null) notOurs(draft, hold.pending)
  if (change.kind !== 'hold') return
  const sealing = proof.verdict !== null && phase !== 'idle'
  if (sealing) sealRefused(draft, error)
  else if (hold.confirmed !== 'none' && change.to !== hold.confirmed)
    draft.hold({ wish: hold.confirmed, escalated: !error.retryable }) // the drain itself goes on
}

/**
 * The late entries for a refused change that may have been carried out in part: if the next look shows its effect,
 * and it was not there before, it is ours.
 */
function halfDone({ state, now }: Draft): readonly LateChange[] {
  const { pending } = state.hold
  if (pending === null || targetOf(pending.change) === null) return []
  return [{ ...lateChange(pending, now), until: now, refused: true }]
}

/** Records a refused seal. If it was refused for good, the verdict stands without a seal: nothing was changed. */
function sealRefused(draft: Draft, error: DrainableError): void {
  const { hold, proof } = draft.state
  draft.hold({ wish: hold.confirmed })
  if (error.retryable) draft.proof({ verdict: null, sealFailures: proof.sealFailures + 1 })
  else draft.proof({ sealFailures: Number.MAX_SAFE_INTEGER })
}

/**
 * Whether the same change was refused for good. After a NOT_FOUND that the look contradicts, the change is tried
 * again.
 */
export function isRefused({ hold }: DrainState, change: Change): boolean {
  const { refusal } = hold
  if (refusal === null || refusal.error.retryable || refusal.error.code === 'NOT_FOUND')
    return false
  return sameChange(refusal.change, change)
}

/** Ends a run that can't go on without a change that was refused for good. */
export function endRefused(draft: Draft): void {
  const error = draft.state.hold.refusal?.error
  if (error === undefined) return
  const lost = new DrainableError(
    'IDLE_LOST',
    `${formatRef(draft.state.ref)}: the drain could not be put back: ${error.message}`,
    { ref: draft.state.ref, cause: error },
  )
  draft.lose(lost)
  draft.finish('refused', error)
}
