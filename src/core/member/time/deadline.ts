import { DrainableError, isUnreachable } from '../../../provider/error.js'
import type { MemberRef } from '../../../provider/contract.js'
import { atLeast, formatRef } from '../../../provider/member-ref.js'
import type { Outcome } from '../../../provider/report.js'
import type { Draft, Open } from '../draft.js'
import { raise, remove } from '../hold.js'
import { loseIdle } from '../idle.js'
import { loadOf, ownOf, readsMember, type ClaimedMember } from '../claimed.js'
import { idleRule } from '../proof/prove.js'
import type { Claim, Facts } from '../record.js'
import { absenceGap, judgeScope } from '../proof/scopes.js'

/** How long a cut can take to show in the counts, beyond the idle rule itself, in milliseconds. */
const CUT_SHOWS = 5_000
/** Between two cuts of one member, in milliseconds: queued work becomes active next and is cut too. */
const CUT_GAP = 100

/** Decides the outcome past the deadline, after one last look. */
export function checkDeadline(draft: Draft, claim: Open): void {
  const { deadline, ending, goal, policy, id, held } = claim
  const { pending, answeredAt } = draft.ledger
  if (ending.ended !== null || pending?.by === id || goal.kind !== 'drain') return
  if (deadline === null) return
  const { last, unread } = draft.claimed(claim).facts
  const hasLooked = [last?.askedAt, unread?.askedAt].some(
    (at) => at !== undefined && at >= deadline && at > answeredAt,
  )
  if (!hasLooked) return
  if (unread !== null || !held) endAtDeadline(draft, claim)
  else if (policy.onTimeout === 'terminate') terminate(draft, claim)
  else if (policy.onTimeout === 'remove') takeOut(draft, claim)
  else endAtDeadline(draft, claim)
}

/** Ends the claim when the last look did not come in time: the outcome rests on the readings before it. */
export function endOverdue(draft: Draft, claim: Open): void {
  const { input, ledger, ref } = draft
  if (claim.goal.kind !== 'drain') return
  // It is given up with this: its answer comes when nobody listens any more.
  if (ledger.pending?.by === claim.id && input.type === 'overdue') {
    const isUnsent = ledger.pending.stage === 'ticket' && !input.silent
    const error = isUnsent ? unsent(ref) : input.error
    ledger.loss = error
    draft.fault(claim, error)
  }
  const { terminateUntil } = claim.ending
  if (terminateUntil === null || draft.now >= terminateUntil) endAtDeadline(draft, claim)
}

/** What keeps the ticket gave no answer: the store or the caller, and not the balancer. */
function unsent(ref: MemberRef): DrainableError {
  const words = `a change of ${formatRef(ref)} was not sent: its ticket was not saved before the deadline`
  return new DrainableError('TICKET_INVALID', words, { ref, retryable: true })
}

function endAtDeadline(draft: Draft, claim: Open): void {
  const [outcome, error] = outcomeAtDeadline(draft, claim)
  // It is not known whether the member is still idle.
  if (isSilent(draft, claim) && claim.ending.ended === null) loseIdle(draft, claim)
  // A member that was never held is not held after the end either.
  if (claim.held) draft.end(claim, outcome, error)
  else draft.finish(claim, outcome, error)
}

/** Whether the balancer answers no look. */
function isSilent(draft: Draft, claim: Open): boolean {
  const { input } = draft
  return draft.claimed(claim).facts.unread !== null || (input.type === 'overdue' && input.silent)
}

function outcomeAtDeadline(draft: Draft, claim: Open): readonly [Outcome, DrainableError | null] {
  const { input, ledger, ref } = draft
  const { unread } = draft.claimed(claim).facts
  const { held } = claim
  const refused = ledger.refusal?.error ?? null
  if (claim.policy.onTimeout === 'proceed') return ['proceeded', refused]
  if (!held && claim.atMinimum) {
    const words = `${formatRef(ref)} was not drained: no replacement served before the deadline, and the pool would keep fewer serving members than keepReady`
    return ['refused', new DrainableError('POOL_AT_MINIMUM', words, { ref })]
  }
  // If the balancer answers no look either, a hold that could not be sent was not refused.
  const isUnsent = isSilent(draft, claim) && refused !== null && isUnreachable(refused)
  if (!held && refused !== null && !isUnsent) return ['refused', refused]
  if (unread !== null) return ['unreachable', refused ?? unread.error]
  if (input.type === 'overdue' && input.silent) return ['unreachable', refused ?? input.error]
  return ['timeout', refused ?? (held ? null : ledger.loss)]
}

/**
 * Takes the member out with the work that is left. A product that refuses to remove a member at work is asked again once that
 * work is cut: a cut that comes first would be for nothing where it refuses for another reason.
 */
function takeOut(draft: Draft, claim: Open): void {
  const { refusal } = draft.ledger
  if (claim.ending.terminateUntil === null) giveTime(draft, claim)
  const isAtWork = refusal?.change.kind === 'remove' && refusal.error.retryable
  if (draft.now >= (claim.ending.terminateUntil ?? Infinity)) endAfterCut(draft, claim)
  else if (isAtWork && mayBeLeft(claim) && claim.policy.capabilities.terminate)
    cutAgain(draft, claim)
  else if (readsMember(draft.claimed(claim))) remove(draft, claim)
}

/** It is idle, and waits for no other member of its call any more: all are, or the deadline is there. */
export function goOut(draft: Draft, claim: Open): void {
  claim.policy = { ...claim.policy, until: 'removed' }
  draft.ending(claim, { ended: null })
  if (claim.deadline !== null && draft.now >= claim.deadline) giveTime(draft, claim)
}

/** A removal at the deadline has the time of a cut, and of an answer. */
function giveTime(draft: Draft, claim: Open): void {
  const { lateBound } = claim.policy.capabilities
  draft.ending(claim, { terminateUntil: draft.now + cutTime(claim) + lateBound })
}

/** How long after the deadline a cut must show, in milliseconds. */
function cutTime({ policy }: Open): number {
  const { blind, freshness } = policy.capabilities
  return CUT_SHOWS + Math.max(policy.settle, blind) + 2 * freshness
}

/** Cuts the work that is left, repeatedly, because queued work becomes active next. Ends when the counts show it. */
function terminate(draft: Draft, claim: Open): void {
  const { policy } = claim
  const claimed = draft.claimed(claim)
  const reading = claimed.facts.last?.reading
  if (claim.ending.terminateUntil === null) {
    draft.ending(claim, { terminateUntil: draft.now + cutTime(claim) })
    const raises = policy.seal !== 'never' || !policy.capabilities.terminate
    // An idle member waits for its removal: it has nothing to cut, and its verdict stands.
    if (claim.phase !== 'idle' && reading?.present === true && readsMember(claimed) && raises)
      raise(draft, claim, reading)
  }
  if (draft.now >= (claim.ending.terminateUntil ?? Infinity)) endAfterCut(draft, claim)
  else cutAgain(draft, claim)
}

/**
 * Ends the claim when the time for a cut to show is over: either no process has work left, or the cut did not help. In a member
 * that a reload has opened new work comes next, whatever was cut.
 */
function endAfterCut(draft: Draft, claim: Open): void {
  const isUnread = [...claim.proof.scopes.values()].some(({ last }) => last.state === 'unread')
  const isClosed = atLeast(ownOf(draft.claimed(claim)), 'drain')
  const isDone = !mayBeLeft(claim) && !isUnread && isClosed
  if (isDone && claim.policy.onTimeout === 'terminate') draft.end(claim, 'terminated')
  else draft.end(claim, 'timeout', draft.ledger.refusal?.error ?? null)
}

/**
 * Cuts the work that is left, unless a cut may still come, or was refused for good. A member last read as absent, or as
 * another one, can't be cut.
 */
function cutAgain(draft: Draft, claim: Open): void {
  const { ledger, ref } = draft
  const isCutting = ledger.late.some(({ change }) => change.kind === 'terminate')
  if (!mayBeLeft(claim) || isCutting || !claim.policy.capabilities.terminate) return
  if (!readsMember(draft.claimed(claim))) return
  const { refusal } = ledger
  if (refusal?.change.kind === 'terminate' && !refusal.error.retryable)
    draft.end(claim, 'timeout', refusal.error)
  else if (draft.send(claim, { kind: 'terminate', ref, ...draft.identity }))
    ledger.notBefore = draft.now + CUT_GAP
}

/**
 * Whether work may be left. If work is not counted, the answer is yes until one cut was carried out, or each process
 * reports the member released: nothing shows that a second cut is needed.
 */
function mayBeLeft(claim: Open): boolean {
  if (claim.policy.capabilities.counts !== 'none') return loadOf({ claim }) > 0
  if (claim.ending.hasCut) return false
  return [...claim.proof.scopes.values()].some(
    ({ last }) => last.state === 'read' && last.released !== true,
  )
}

/**
 * Milliseconds until this member can change by time alone: a quiet time that runs out, a deadline, an
 * escalation, a wait before something is sent again. Null: only the balancer can bring news.
 */
export function dueIn(claimed: ClaimedMember, now: number): number | null {
  const { claim, facts, ledger } = claimed
  const { goal } = claim
  const { vanished } = facts
  const moments: (number | null)[] = [
    ...endings(claimed, now),
    later(ledger.notBefore, now),
    unseen(facts, claim.yieldAt),
    ...ledger.late.map((late) => unseen(facts, late.until)),
    sampleAt(claimed, now),
    vanished === null ? null : unseen(facts, vanished.since + absenceGap(claim)),
    ...(goal.kind === 'open' ? [later(goal.until, now), later(goal.lateUntil, now)] : []),
  ]
  const known = moments.filter((moment) => moment !== null)
  return known.length === 0 ? null : Math.max(0, Math.min(...known) - now)
}

/** When a claim gives up, whatever became of it by then; `Infinity`: never. */
export function givesUpAt({ goal, ending, deadline }: Claim): number {
  if (ending.ended !== null) return Infinity
  return (goal.kind === 'open' ? goal.until : goal.kind === 'drain' ? deadline : null) ?? Infinity
}

function later(moment: number | null, now: number): number | null {
  return moment !== null && moment > now ? moment : null
}

/**
 * Drops a moment that a look asked for since has passed without a decision: only the balancer can bring news of it.
 */
function unseen({ last }: Facts, moment: number | null): number | null {
  return moment !== null && (last === null || last.askedAt < moment) ? moment : null
}

function endings({ claim, facts }: ClaimedMember, now: number): (number | null)[] {
  const { ending, goal, policy, escalated, startedAt, deadline } = claim
  if (ending.ended !== null || goal.kind !== 'drain') return []
  const { escalateAfter } = policy
  return [
    later(deadline, now),
    escalateAfter !== null && !escalated ? unseen(facts, startedAt + escalateAfter) : null,
    unseen(facts, ending.terminateUntil),
  ]
}

/** The part of the freshness by which the numbers of one look can be older than those of the last. */
const JITTER = 1 / 400

/**
 * When to ask for the look whose numbers are from the awaited moment. If a product's numbers are old when they are
 * read, the look is that much later: an earlier one would show nothing.
 */
function sampleAt(claimed: ClaimedMember, now: number): number | null {
  const { claim, facts } = claimed
  const rule = idleRule(claimed)
  if (rule === null || claim.phase === 'idle' || facts.last === null) return null
  const { askedAt } = facts.last
  const { freshness } = claim.policy.capabilities
  let latest: number | null = null
  for (const track of claim.proof.scopes.values()) {
    const verdict = judgeScope(track, rule, now)
    const { sampledAt } = track.last
    if (verdict.idle) continue
    const { needs } = verdict
    if (needs === null) return null
    const age = Math.min(freshness, Math.max(0, askedAt - sampledAt))
    latest = Math.max(latest ?? now + 1, needs + (age > 0 ? age + freshness * JITTER : 0))
  }
  return latest
}
