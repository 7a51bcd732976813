/** What becomes of our changes by their answers; `seen.ts` has what looks show of them. */
import { atLeast, formatRef } from '../../../provider/member-ref.js'
import type { AdminState, Change, ChangeResult } from '../../../provider/contract.js'
import { DrainableError } from '../../../provider/error.js'
import type { Draft, Open } from '../draft.js'
import { isLive, type Ledger, type Pending } from '../record.js'
import { saidTakenOut, saidUnproved } from '../hold.js'
import { destination, isBelow, lacksEffect, targetOf } from '../whose.js'
import { dropIdle } from '../idle.js'
import { isDown } from '../wanted.js'
import { forgetSamples } from '../proof/scopes.js'

const RETRY_FIRST = 250
const RETRY_MOST = 5_000

/** A growing wait: 250 ms, doubled each time, at most 5 s. */
function backOff(failures: number): number {
  return Math.min(RETRY_MOST, RETRY_FIRST * 2 ** failures)
}

/** The effect of a change without an answer is there: above a hold of ours it is ours in either case, else it is in doubt. */
export function shown(draft: Draft, to: AdminState | null, own = to): void {
  const { ledger } = draft
  const { set: known, earlier, doubted } = ledger
  const isRaise = known !== null && to !== null && to !== known && atLeast(to, known)
  if (isRaise && own === to && !doubted.includes(to))
    Object.assign(ledger, { set: to, earlier: unique([...earlier, known]) })
  else doubt(draft, to)
}

/** A state that a change of ours may have led to. */
export function doubt({ ledger }: Draft, to: AdminState | null): void {
  if (to === null || to === 'ready' || ledger.set === to || ledger.doubted.includes(to)) return
  ledger.doubted = [...ledger.doubted, to]
}

/** Takes in the answer to a change. */
export function learnAnswer(draft: Draft, change: Change, result: ChangeResult): void {
  const { ledger } = draft
  const { pending } = ledger
  if (pending?.change !== change) return
  ledger.pending = null
  const by = draft.claims.find(({ id }) => id === pending.by)
  switch (result.status) {
    case 'applied':
      if (isOutdone(ledger, pending)) {
        ledger.answeredAt = draft.now
        return
      }
      if (change.kind === 'terminate' && by !== undefined) draft.ending(by, { hasCut: true })
      if (pending.cuts !== null)
        countCut(
          draft,
          by,
          result.terminated ?? pending.cuts,
          result.atMost ?? result.terminated === undefined,
        )
      confirm(draft, change, 'applied', stateBefore(pending))
      return
    case 'unchanged':
      confirm(draft, change, isDoubtful(ledger, pending) ? 'unknown' : 'unchanged', pending.before)
      return
    case 'unknown':
      // What it may have cut is counted: no later look tells it from work that ended.
      if (pending.cuts !== null) countCut(draft, by, pending.cuts, true)
      lose(draft, pending, result.error)
      return
    case 'rejected':
      refuse(draft, pending, result.error)
      return
    default:
      result satisfies never
  }
}

/** An opening that was carried out before a lost hold of ours: that one was seen since, and is in place. */
function isOutdone({ set }: Ledger, { change, before }: Pending): boolean {
  if (change.kind !== 'restore' || set === null || set !== before) return false
  return set !== change.expect && set !== change.to
}

/** The state that a hold changed. If the member was read as closed already, it was opened in between. */
function stateBefore({ change, before }: Pending): AdminState | 'unknown' {
  if (change.kind !== 'hold' || !atLeast(before, change.to)) return before
  return change.to === 'drain' ? 'ready' : 'unknown'
}

/**
 * A hold that found what it wanted, though the member was read lower: by a lost change of ours, or by another client. Above
 * our own hold only a lost change can be ours.
 */
function isDoubtful({ late, set, doubted }: Ledger, { change, before }: Pending): boolean {
  if (change.kind !== 'hold' || before === 'unknown' || !lacksEffect(change, before)) return false
  const lost = late.some((one) => targetOf(one.change) === change.to)
  return set === null || lost || doubted.includes(change.to)
}

/** A change of ours took effect. `unknown`: the effect is there, and nobody can tell whose it is. */
export function confirm(
  draft: Draft,
  change: Change,
  by: 'applied' | 'unchanged' | 'unknown',
  before: AdminState | 'unknown',
): void {
  const { ledger } = draft
  Object.assign(ledger, {
    losses: 0,
    loss: null,
    refusals: 0,
    refusal: null,
    answeredAt: draft.now,
  })
  for (const claim of draft.claims) claim.atMinimum = false
  if (change.kind === 'hold') {
    if (by === 'applied') set(draft, change.to, before)
    else if (by === 'unknown') shown(draft, change.to)
    for (const claim of draft.claims)
      if (isDown(claim) && claim.wish !== 'none') hold(draft, claim, change.to)
  } else if (change.kind === 'restore') opened(draft, change.to)
  else if (change.kind === 'remove') removed(draft)
}

/** Our first effective change: what was there before it is where an undo goes. */
function set(draft: Draft, to: AdminState, before: AdminState | 'unknown'): void {
  const { ledger } = draft
  const { found, set: known, doubted, late } = ledger
  const maybeOurs =
    doubted.some((one) => one === before) || late.some(({ change }) => targetOf(change) === before)
  const isFirst = known === null && ledger.earlier.length === 0
  if (
    isFirst &&
    found !== null &&
    before !== 'unknown' &&
    !maybeOurs &&
    !hasForgotten(draft, before)
  )
    ledger.found = { ...found, own: before }
  if (known !== null && known !== to) ledger.earlier = unique([...ledger.earlier, known])
  ledger.set = to
  ledger.doubted = doubted.filter((one) => one !== to)
  // A lost change that this state shows too can't be told by its effect any more.
  ledger.late = late.map((one) => (lacksEffect(one.change, to) ? one : { ...one, lacked: null }))
}

/** Whether the state before is lower than found because a process forgot another client's hold: that is no state to go back to. */
function hasForgotten({ ledger: { found }, claims }: Draft, before: AdminState): boolean {
  return isBelow(found, before) && claims.some((claim) => isDown(claim) && claim.held)
}

/** A hold is in place for a claim. One that another claim raised above what it wants goes on by its own evidence. */
function hold(draft: Draft, claim: Open, to: 'drain' | 'maint'): void {
  const { verdict, effectiveSince } = claim.proof
  const isNews =
    claim.confirmed === 'none' || (atLeast(to, claim.wish) && claim.confirmed !== claim.wish)
  claim.confirmed = atLeast(to, claim.wish) ? claim.wish : to
  claim.held = true
  claim.overruled = false
  if (!isNews && effectiveSince !== null) return
  draft.proof(claim, {
    effectiveSince: draft.now,
    inForce: false,
    scopes: forgetSamples(claim.proof.scopes),
    verdict: verdict === null ? null : { ...verdict, sealedAt: draft.now },
  })
  if (claim.phase === 'active') draft.phase(claim, 'draining')
}

/** We opened the member to this state. Another process can still have what we had set, by a state file. */
export function opened(draft: Draft, to: AdminState): void {
  const { ledger } = draft
  const { set: known, earlier, found } = ledger
  const isUndone = to === 'ready' || to === found?.own
  ledger.earlier = unique(known === null ? earlier : [...earlier, known]).filter(
    (one) => one !== to,
  )
  if (isUndone) ledger.doubted = []
  // ready() leads below what was found: an undo of what comes after it goes there.
  if (to === 'ready' && found !== null) ledger.found = { ...found, own: to }
  ledger.set = isUndone ? null : to
  ledger.late = ledger.late.map((one) => {
    if (lacksEffect(one.change, to)) return { ...one, lacked: { at: draft.now, own: to } }
    // A lost hold to the state that this undo led to can't be told by its effect any more.
    return one.change.kind === 'hold' ? { ...one, lacked: null } : one
  })
  for (const claim of draft.claims) {
    const { goal } = claim
    claim.confirmed = 'none' // for one that came in the meantime the member must be held again, and nobody else did it
    if (goal.kind !== 'open' || to !== destination(ledger, goal)) continue
    claim.goal = { ...goal, reached: draft.view(claim.view).incarnations }
  }
}

function removed(draft: Draft): void {
  const cutShort = draft.claims.filter(isUnproved)
  for (const claim of draft.claims) {
    dropIdle(draft, claim)
    const { policy, goal, ending, proof } = claim
    draft.phase(claim, 'removed')
    draft.emit(claim, { type: 'removed', ...draft.stamp })
    const isTheirs = goal.kind !== 'drain' || policy.until === 'idle'
    // Work that another drain was allowed to leave is none that this one was.
    const isLost = proof.proof === null && cutShort.length > 0 && !cutShort.includes(claim)
    if (isTheirs) draft.finish(claim, 'gone', removedError(draft))
    else if (isLost) draft.finish(claim, 'gone', takenOutError(draft, claim))
    else {
      if (cutShort.includes(claim)) draft.proof(claim, { unverified: saidUnproved(claim) })
      else if (proof.proof === null) draft.proof(claim, { unverified: saidTakenOut(claim) })
      draft.finish(claim, ending.terminated > 0 ? 'terminated' : 'removed')
    }
  }
}

/** Whether it was to be taken out at its deadline, with what was left. */
function isUnproved({ policy, ending, proof }: Open): boolean {
  const isLate = policy.onTimeout === 'remove' && ending.terminateUntil !== null
  return isLate && (proof.proof === null || ending.terminated > 0)
}

function takenOutError({ ref }: Draft, claim: Open): DrainableError {
  const words = `${formatRef(ref)}: ${saidTakenOut(claim)}; another drain of this process took it out at its own deadline`
  return new DrainableError('MEMBER_GONE', words, { ref })
}

function removedError({ ref }: Draft): DrainableError {
  const words = `${formatRef(ref)} was removed by a drain of this process: there is nothing to open`
  return new DrainableError('MEMBER_GONE', words, { ref })
}

/**
 * A lost answer: the change may have been carried out, or may be later. A hold is sent again as soon as a look shows that it is
 * not in place; a repeat does no harm.
 */
function lose(draft: Draft, pending: Pending, error: DrainableError): void {
  const { ledger } = draft
  const { change, before, effect } = pending
  const losses = ledger.losses + 1
  const wait = change.kind === 'hold' && losses > 1 ? backOff(losses - 2) : 0
  // A lost twin that was seen carried out meanwhile has led there; or the effect has come and gone, and what shows now may be others'.
  const isThere = ledger.set !== null && ledger.set === targetOf(change)
  const canTell = effect !== 'gone' && before !== 'unknown' && !isThere
  const isLacked = canTell && lacksEffect(change, before)
  const lacked = isLacked ? { at: draft.now, own: before } : null
  ledger.late = [...ledger.late, { change, lostAt: draft.now, until: null, lacked }]
  Object.assign(ledger, { losses, loss: error, answeredAt: draft.now })
  ledger.notBefore = Math.max(ledger.notBefore, draft.now + wait)
  for (const claim of draft.claims) if (isLive(claim)) draft.fault(claim, error)
}

/** A refusal. Unless it is retryable, the same change is not sent again; the next look decides what is there. */
function refuse(draft: Draft, { change, before }: Pending, error: DrainableError): void {
  const { ledger } = draft
  for (const claim of draft.claims) if (isLive(claim)) draft.fault(claim, error)
  ledger.answeredAt = draft.now
  ledger.notBefore = draft.now + backOff(ledger.refusals)
  ledger.refusals += 1
  ledger.refusal = { change, error, before }
  if (change.kind !== 'hold') return
  for (const claim of draft.claims) {
    if (!isDown(claim) || claim.wish !== change.to || claim.confirmed === claim.wish) continue
    if (claim.proof.verdict !== null && claim.phase !== 'idle') sealRefused(draft, claim, error)
    else if (claim.confirmed !== 'none')
      Object.assign(claim, { wish: claim.confirmed, escalated: !error.retryable }) // the drain itself goes on
  }
}

/** Refused for good, the verdict stands without a seal: nothing was changed. */
function sealRefused(draft: Draft, claim: Open, error: DrainableError): void {
  const { sealFailures } = claim.proof
  claim.wish = claim.confirmed
  if (error.retryable) draft.proof(claim, { verdict: null, sealFailures: sealFailures + 1 })
  else draft.proof(claim, { sealFailures: Number.MAX_SAFE_INTEGER })
}

function countCut(draft: Draft, claim: Open | undefined, count: number, atMost: boolean): void {
  if (count === 0 || claim === undefined) return
  const { terminated, terminatedAtMost } = claim.ending
  draft.ending(claim, {
    terminated: terminated + count,
    terminatedAtMost: terminatedAtMost || atMost,
  })
  draft.emit(claim, { type: 'terminated', ...draft.stamp, count })
  // It was the word of this claim alone: for the others the work is lost.
  const cut = { scope: 'the member', active: count, at: draft.stamp.at, note: CUT_BY_OTHERS }
  for (const other of draft.claims)
    if (other !== claim && isDown(other)) draft.proof(other, { lost: [...other.proof.lost, cut] })
}

const CUT_BY_OTHERS = 'another drain of this process has cut it'

export function unique(states: readonly AdminState[]): readonly AdminState[] {
  return [...new Set(states)]
}
