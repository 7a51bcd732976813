import { atLeast, formatRef } from '../../provider/member-ref.js'
import type { PresentReading, Reading } from '../../provider/contract.js'
import { DrainableError } from '../../provider/error.js'
import type { Proof } from '../../provider/report.js'
import type { Draft, Open } from './draft.js'
import { type Claim, type Ledger, maintEffect, type SeenReading } from './record.js'
import {
  clearedCounters,
  isClosed,
  isLastLook,
  marksOf,
  missesArrivals,
  proveIdle,
  stillIdle,
  verdictStands,
  workSeen,
} from './proof/prove.js'
import { ownOf, readsMember, type ClaimedMember } from './claimed.js'
import { isRefused } from './whose.js'

/** After so many refusals, idle is reported without a seal. */
const MOST_SEALS = 3

/** Proves that the member is idle now; null while a rule is not met. */
export function prove(draft: Draft, claim: Claim): Proof | null {
  return proveIdle(draft.claimed(claim), draft.now, draft.wall - draft.now)
}

/** Whether a lost undo of ours may still open the member: then it would not stay idle. */
export function mayOpenLate({ late, pending }: Ledger): boolean {
  const isOpening = pending?.change.kind === 'restore' && pending.stage === 'sent'
  return isOpening || late.some(({ change }) => change.kind === 'restore')
}

/**
 * Applies the idle rule. Once it is met, keeps persistent clients out if the policy wants a seal, and looks once more: a
 * verdict from an earlier look needs one more, whatever its time.
 *
 * @returns whether the member is idle now
 */
export function judge(draft: Draft, claim: Open, reading: PresentReading): boolean {
  // It has an outcome already: only another look tells more.
  if (claim.ending.ended !== null && draft.input.type !== 'look') return false
  const isFresh = claim.proof.verdict === null
  if (isFresh) {
    const proof = prove(draft, claim)
    if (proof === null || mayOpenLate(draft.ledger)) return false
    const verdict = { at: draft.now, proof, scopes: marksOf(claim), sealedAt: null }
    draft.proof(claim, { verdict })
  }
  const closed = isClosed(claim, reading)
  const seal = { kind: 'hold' as const, to: 'maint' as const, ref: draft.ref, ...draft.identity }
  if (!closed && wantsSeal(claim, reading) && !isRefused(draft.ledger, seal)) {
    if (draft.send(claim, seal)) claim.wish = 'maint'
    // During the wait after a refusal, the verdict is dropped and found anew.
    else draft.proof(claim, { verdict: null })
    return false
  }
  if (!isFresh && !hasStood(draft, claim)) return false
  sayIdle(draft, claim, reading, closed)
  return true
}

function wantsSeal({ policy, wish, proof }: Claim, reading: PresentReading): boolean {
  if (wish === 'maint' || proof.sealFailures >= MOST_SEALS) return false
  const effect = maintEffect(policy, reading)
  if (effect === 'none' || policy.seal === 'never') return false
  return policy.seal === 'always' || effect === 'gentle'
}

/** Whether a verdict of an earlier look still stands after the seal, as far as this look shows. */
function hasStood(draft: Draft, claim: Open): boolean {
  const stands = verdictStands(claim)
  // Work came in before the seal: the drain goes on in maint, by the whole rule.
  if (stands === 'fell') draft.proof(claim, { verdict: null })
  if (stands !== 'stands') return false
  // Without arrivals only zeros from behind the seal show that nobody came before it.
  const again = claim.proof.verdict?.sealedAt != null && missesArrivals(claim)
  if (!again || isLastLook(draft.claimed(claim))) return true
  draft.proof(claim, { verdict: null })
  return false
}

function sayIdle(draft: Draft, claim: Open, reading: PresentReading, sealed: boolean): void {
  const { verdict } = claim.proof
  if (verdict === null) return
  const { proof } = verdict
  draft.proof(claim, { proof, sealed, unverified: unverifiedBy(claim, reading) })
  if (claim.ending.settled) draft.ending(claim, { marks: marksOf(claim) })
  draft.phase(claim, 'idle')
  draft.emit(claim, { type: 'idle', ...draft.stamp, proof })
}

/** Why an idle by this reading is not verified; null if it is. The reading of an absent member does not say. */
export function unverifiedBy(claim: Claim, reading: Reading): string | null {
  if (reading.present && reading.unverified !== undefined) return reading.unverified
  if (claim.policy.capabilities.counts === 'none')
    return 'this product does not count work: idle is what the product reports'
  if (!reading.present || !missesArrivals(claim)) return null
  // A verdict from before the seal rests on zeros between which a client can have come and gone.
  const sinceClosed = isClosed(claim, reading) && claim.proof.verdict?.sealedAt == null
  return sinceClosed
    ? null
    : 'this product does not count arrivals, and the member was not closed to all clients: one can come between two looks'
}

/** Whether a sealed member, whoever sealed it, is open to persistent clients again before the outcome. */
export function isUnsealed(claim: Claim, reading: PresentReading): boolean {
  return claim.proof.sealed && !claim.ending.settled && !isClosed(claim, reading)
}

/** Drops an idle that a reading contradicts: the drain goes on. */
export function loseIdle(draft: Draft, claim: Open): void {
  draft.proof(claim, { verdict: null })
  if (claim.phase !== 'idle') return
  draft.proof(claim, { proof: null, sealed: false })
  if (restsOnIdle(claim) && !claim.ending.settled) draft.ending(claim, { ended: null })
  draft.emit(claim, { type: 'idle-lost', ...draft.stamp })
  draft.phase(claim, 'draining')
}

/** Whether the outcome rests on idle. An outcome at the deadline does not, even if idle is reported after it. */
export function restsOnIdle({ ending }: Pick<Claim, 'ending'>): boolean {
  const outcome = ending.ended?.outcome
  return outcome === 'idle' || outcome === 'terminated'
}

/** Whether its outcome says that it is idle now. */
export function isReportedIdle(claim: Pick<Claim, 'ending' | 'phase'>): boolean {
  return claim.phase === 'idle' && restsOnIdle(claim)
}

/** Drops an idle that is not yet the outcome of the whole call. An outcome at the deadline stands. */
export function dropIdle(draft: Draft, claim: Open): void {
  if (isReportedIdle(claim) && !claim.ending.settled) draft.ending(claim, { ended: null })
}

/**
 * Whether a reported idle still stands. While other members go on, every process must be as it was then; once the call
 * has its outcome and only holds, only visible work contradicts it.
 */
export function staysIdle(draft: Draft, claim: Open): boolean {
  const { marks } = claim.ending
  if (marks === null) return stillIdle(claim)
  if (workSeen(claim)) return false
  const { scopes } = claim.proof
  const read = [...marksOf(claim)].filter(([name]) => scopes.get(name)?.last.state === 'read')
  draft.ending(claim, { marks: new Map([...marks, ...read]) })
  return true
}

/** Tells the action, once, that work came to a member held idle. */
export function sayLostWork(draft: Draft, claim: Open): void {
  if (!workSeen(claim)) return
  const cleared = clearedCounters(claim)
  const words =
    cleared === undefined
      ? 'got work again after it was reported idle: look for a reload that forgot the drain, or another client that opened it'
      : `may have got work after it was reported idle: the counters of ${cleared} began anew, so another client has cleared them, and what came before that can't be told`
  const { ref } = draft
  draft.lose(claim, new DrainableError('IDLE_LOST', `${formatRef(ref)} ${words}`, { ref }))
}

/** While a change of the claim is under way, nothing new is decided; an idle that a look contradicts falls all the same. */
export function fallByLook(draft: Draft, claim: Open): void {
  const claimed = draft.claimed(claim)
  if (draft.ownLook(claim) === undefined || !readsMember(claimed)) return
  sayLostWork(draft, claim)
  const { ending, proof, phase, confirmed } = claim
  const marks = ending.marks ?? proof.verdict?.scopes ?? null
  const isOpen = !ending.settled && !atLeast(ownOf(claimed), confirmed)
  if (phase === 'idle' && (isOpen || workSeen(claim, marks))) loseIdle(draft, claim)
}

/** Since when all members of a run have been idle, and until when that was seen, by the clock, in milliseconds. */
export interface IdleTime {
  readonly from: number
  /** -Infinity if one of them can't be read. */
  readonly seen: number
}

/** From when the counts of a look are: they can be as old as the product's `freshness` when they are read. */
function countedAt({ reading, askedAt }: SeenReading): number {
  const read = reading.scopes.flatMap((one) => (one.state === 'read' ? [one.sampledAt] : []))
  return Math.min(askedAt, ...read)
}

/** @returns null if one of them has not ended as idle */
export function idleTime(claimedMembers: readonly ClaimedMember[]): IdleTime | null {
  let from = -Infinity
  let seen = Infinity
  for (const { claim, facts } of claimedMembers) {
    const { ending, proof } = claim
    const { last, unread } = facts
    const { ended } = ending
    if (ended === null || !isReportedIdle(claim) || last === null) return null
    // Nothing arrived since the first of its two samples.
    const [first] = proof.proof?.samples ?? []
    const proved = Math.max(...(first?.scopes ?? []).map(({ sampledAt }) => sampledAt))
    // An ended process is in no sample, and may have had work until shortly before the verdict.
    const alive = proof.ended === 0 ? -Infinity : (proof.verdict?.at ?? ended.at)
    from = Math.max(from, alive, Number.isFinite(proved) ? proved : ended.at)
    seen = Math.min(seen, unread === null ? countedAt(last) : -Infinity)
  }
  return { from, seen }
}

/**
 * Whether a member was idle while others went on, but can't be read now: it is not known whether it is still idle.
 */
export function isUnseenIdle({ claim, facts }: ClaimedMember): boolean {
  return isReportedIdle(claim) && !claim.ending.settled && facts.unread !== null
}
