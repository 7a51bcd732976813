import { atLeast, formatRef } from '../../provider/member-ref.js'
import { DrainableError } from '../../provider/error.js'
import { endOverdue, goOut } from './time/deadline.js'
import { decideDown } from './down.js'
import { Draft, type Open } from './draft.js'
import { learnFailure, learnLook } from './facts.js'
import { nothingToOpen } from './gone.js'
import { type Goal, isDown, isOpposite, isUndo, type OpenGoal } from './wanted.js'
import { awaitsOthers, lowerWish, mayCut } from './hold.js'
import { dropIdle, isReportedIdle, loseIdle } from './idle.js'
import type { Input, LaidInput, Left, LookInput, Order, RecalledInput, Step } from './input.js'
import { doubt, learnAnswer } from './ledger/answers.js'
import { decideOpen, forgetOurs, isOpen, openOverdue } from './open.js'
import {
  type Claim,
  emptyLedger,
  isLive,
  type LateChange,
  maintEffect,
  type MemberRecord,
  NO_PROOF,
  owes,
  type Pending,
} from './record.js'
import { marksOf, stillIdle } from './proof/prove.js'
import { sayLoad } from './said/say-load.js'
import { takeBack } from './ledger/take-back.js'
import { expectScopes, forgetSamples } from './proof/scopes.js'
import { decideWatch } from './watch.js'

/**
 * One step of one member: takes an input in, then lets each claim decide, the newest first.
 *
 * Pure and total: it never throws, calls nothing, and uses only the input's time. Level-triggered: each reading is
 * compared with what is wanted, so a reload that forgot the drain is just another reading. A missing or partial reading is
 * never a zero.
 */
export function step(record: MemberRecord, input: Input): Step {
  const draft = new Draft(record, input)
  takeIn(draft, input)
  recall(draft)
  for (const claim of [...draft.claims].reverse()) decide(draft, claim)
  if (input.type === 'look')
    for (const claim of draft.claims) if (claim.view === input.view) sayLoad(draft, claim)
  return { record: draft.record, effects: draft.effects }
}

function decide(draft: Draft, claim: Open): void {
  if (claim.goal.kind === 'drain') decideDown(draft, claim)
  else if (isOpen(claim)) decideOpen(draft, claim)
  else decideWatch(draft, claim)
}

function takeIn(draft: Draft, input: Input): void {
  switch (input.type) {
    case 'look':
      learnLook(draft, input)
      doubtOthers(draft, input)
      return
    case 'unread':
      learnFailure(draft, input.view, { error: input.error, askedAt: input.askedAt })
      return
    case 'answer':
      learnAnswer(draft, input.change, input.result)
      return
    case 'sending':
      markSent(draft, input.change)
      return
    case 'recalled':
      takeAway(draft, input)
      return
    case 'laid':
      lay(draft, input)
      return
    default: {
      const claim = draft.claims.find(({ id }) => id === input.claim)
      if (claim !== undefined) obey(draft, claim, input)
    }
  }
}

/** An idle that is no outcome yet falls where another object of the balancer shows its member open. */
function doubtOthers(draft: Draft, { view, reading }: LookInput): void {
  if (!reading.present) return
  for (const claim of draft.claims) {
    if (claim.view === view || !isReportedIdle(claim) || claim.ending.settled) continue
    if (!atLeast(reading.own, claim.confirmed)) loseIdle(draft, claim)
  }
}

function obey(draft: Draft, claim: Open, order: Order): void {
  switch (order.type) {
    case 'undo':
      undo(draft, claim, order.goal, order.left)
      return
    case 'release':
      draft.ending(claim, { holding: false })
      return
    case 'end':
      draft.finish(claim, order.outcome, order.error)
      return
    case 'settle':
      settle(draft, claim)
      return
    case 'doubt':
      dropIdle(draft, claim)
      return
    case 'out':
      if (awaitsOthers(claim)) goOut(draft, claim)
      return
    case 'denied':
      deny(draft, claim, order)
      return
    case 'checked':
      if (!isOpen(claim)) return
      if (order.error === null) claim.goal = { ...claim.goal, check: 'passed' }
      else draft.finish(claim, 'refused', order.error)
      return
    case 'overdue':
      if (isOpen(claim)) openOverdue(draft, claim, order.error)
      else endOverdue(draft, claim)
      return
    default:
      order satisfies never
  }
}

// --- a change that waits for its ticket

/** It is not sent. */
function takeAway({ ledger }: Draft, { change }: RecalledInput): void {
  if (ledger.pending?.change === change) ledger.pending = null
}

/** Drops it if the claim that asked for it wants something else by now. */
function recall(draft: Draft): void {
  const { pending } = draft.ledger
  if (pending?.stage !== 'ticket') return
  const by = draft.claims.find(({ id }) => id === pending.by)
  const isOpening = pending.change.kind === 'restore'
  if (by === undefined || !isLive(by) || isOpen(by) !== isOpening) draft.ledger.pending = null
}

function markSent(draft: Draft, change: Pending['change']): void {
  const { ledger } = draft
  recall(draft)
  const { pending } = ledger
  if (pending?.change !== change) return
  const by = draft.claims.find(({ id }) => id === pending.by)
  if (by !== undefined && isRough(draft, by, pending)) {
    if (isSealing(by)) draft.proof(by, { verdict: null })
    ledger.pending = null
    lowerWish(by)
  } else ledger.pending = { ...pending, stage: 'sent' }
}

/**
 * Whether the hold that waited cuts what the caller did not allow: it raises to maint, and a reading since the decision says
 * that maint cuts. The caller allows a seal only over a verdict that still stands, and any other raise only if work may be cut.
 */
function isRough(draft: Draft, claim: Open, { change }: Pending): boolean {
  const reading = draft.claimed(claim).facts.last?.reading
  if (change.kind !== 'hold' || change.to !== 'maint' || reading?.present !== true) return false
  const { policy } = claim
  if (maintEffect(policy, reading) === 'gentle') return false
  if (isSealing(claim)) return policy.seal !== 'always' || !stillIdle(claim)
  return !mayCut(claim)
}

/** Whether it is a seal over a verdict; for an idle member, the seal is put back. */
function isSealing({ proof, phase }: Claim): boolean {
  return proof.verdict !== null && proof.verdict.sealedAt === null && phase !== 'idle'
}

// --- claims come and go

/**
 * Lays a claim. Of two opposite ones the newest wins, and ends the others before anything is sent. An undo ends the
 * claims of its own call alone: under any other the member stays as it is.
 */
function lay(draft: Draft, { claim, left, by }: LaidInput): void {
  const mine: Open = { ...claim }
  if (draft.claims.length === 0) {
    resumeLate(draft)
    forgetOtherViews(draft, claim.view)
  }
  if (claim.goal.kind !== 'watch') forgetLeft(draft)
  const live = draft.claims.filter(isLive)
  if (live.length === 0) forgetRefusal(draft)
  else if (live.every(({ policy }) => policy.until === 'idle')) forgetRefusedRemoval(draft)
  takeBack(draft, mine, left)
  const known = [...draft.view(claim.view).processes.values()]
  mine.proof = expectScopes(mine.proof, known)
  if (by !== undefined) overrule(draft, mine, by.goal)
  else if (isLive(mine))
    for (const other of draft.claims) {
      const isMeant =
        !isUndo(claim.goal) || (claim.ticket !== null && other.ticket === claim.ticket)
      if (isMeant && isLive(other) && isOpposite(claim, other)) overrule(draft, other, claim.goal)
    }
  draft.claims.push(mine)
}

/**
 * What earlier calls have left on a member is its state for the next one, and nobody's to undo but theirs. A call that only
 * watches keeps the record, and changes nothing of that.
 */
function forgetLeft({ ledger, claims, now }: Draft): void {
  const isAlone = claims.every(({ goal }) => goal.kind === 'watch')
  if (!isAlone || ledger.pending !== null || ledger.late.length > 0) return
  Object.assign(ledger, { ...emptyLedger(now), answeredAt: ledger.answeredAt })
}

/** What an earlier call was refused, or lost the answer to, may succeed now. */
function forgetRefusal(draft: Draft): void {
  const { ledger } = draft
  const { refusal } = ledger
  // No look has shown yet whether a part of it was carried out.
  if (refusal !== null && refusal.before !== null && refusal.change.kind === 'hold')
    doubt(draft, refusal.change.to)
  Object.assign(ledger, { losses: 0, loss: null, refusals: 0, refusal: null, notBefore: draft.now })
}

/** Those that hold the member have not asked for its removal. */
function forgetRefusedRemoval({ ledger }: Draft): void {
  if (ledger.refusal?.change.kind === 'remove')
    Object.assign(ledger, { refusals: 0, refusal: null })
}

/**
 * While nobody looked, no look could tell: the time of a lost change begins anew, unless it is over in any case. The first look
 * of a call can be from before that.
 */
function resumeLate({ ledger, now }: Draft): void {
  const isOver = ({ until }: LateChange): boolean => until !== null && until < now
  const over = ledger.late.filter(isOver).map(({ until }) => until ?? now)
  ledger.answeredAt = Math.max(ledger.answeredAt, ...over)
  ledger.late = ledger.late.filter((one) => !isOver(one)).map((one) => ({ ...one, until: null }))
}

/** While nobody looked, what an earlier call saw at work can have ended, and nothing by which it was seen looks again. */
function forgetOtherViews({ views }: Draft, view: number): void {
  for (const other of [...views.keys()]) if (other !== view) views.delete(other)
}

/** Lets go of a member before a later call that wants the opposite sends anything. */
function overrule(draft: Draft, claim: Open, by: Goal): void {
  if (claim.ending.ended?.outcome === 'restored') {
    draft.ending(claim, { holding: false }) // it was opened; what comes after that is the other call's
    return
  }
  const { ref } = draft
  const word = (kind: Goal['kind']): string => (kind === 'open' ? 'made ready' : 'drained')
  const isDrain = claim.goal.kind === 'drain' || (isOpen(claim) && claim.goal.then !== 'end')
  const words = `was ${word(by.kind)} by another call of this process while it was ${word(isDrain ? 'drain' : 'open')}`
  const error = new DrainableError('DRAIN_OVERRULED', `${formatRef(ref)} ${words}`, { ref })
  if (isDrain) draft.lose(claim, error)
  if (!claim.ending.settled) draft.ending(claim, { ended: null })
  draft.proof(claim, { proof: null, verdict: null, sealed: false })
  draft.phase(claim, 'active')
  draft.finish(claim, 'overruled', error)
}

/** Drops a claim: what we changed is undone, unless another claim still wants the member down. */
function undo(draft: Draft, claim: Open, goal: OpenGoal, left?: Left): void {
  takeBack(draft, claim, left)
  if (claim.phase === 'idle') draft.phase(claim, 'draining') // the proof is dropped
  const before = claim.ending.ended
  const isTheirs = before?.outcome === 'overruled' || isTakenBack(draft, claim)
  Object.assign(claim, {
    goal: { ...goal, isTheirs },
    wish: 'none',
    confirmed: 'none',
    overruled: false,
  })
  Object.assign(claim, { floor: 'unasked', yieldAt: null, heldBy: null })
  const { scopes, ended, lost } = claim.proof
  claim.proof = { ...NO_PROOF, scopes: forgetSamples(scopes), ended, lost }
  draft.ending(claim, {
    ended: null,
    settled: false,
    holding: true,
    marks: null,
    terminateUntil: null,
  })
  if (claim.phase === 'removed') {
    draft.finish(claim, 'gone', nothingToOpen(draft, claim, before))
    return
  }
  if (draft.claims.some((other) => other !== claim && isDown(other))) return
  const { ledger } = draft
  forgetRefusal(draft)
  // Another client can have changed the state since the last reading: a new look decides.
  const asked = [...draft.views.values()].map(({ last }) => last?.askedAt ?? -Infinity)
  ledger.answeredAt = Math.max(ledger.answeredAt, ...asked)
}

/** Whether somebody has opened what was held for a claim: nothing of ours is left of it. */
function isTakenBack({ ledger }: Draft, { confirmed }: Claim): boolean {
  const { found } = ledger
  if (owes(ledger) || found === null || found.own === 'unknown') return false
  return confirmed !== 'none' && !atLeast(found.own, confirmed)
}

/** The whole call has its outcome. A member that was opened is no longer looked after. */
function settle(draft: Draft, claim: Open): void {
  const outcome = claim.ending.ended?.outcome
  if (outcome === 'restored') {
    // Another undo that was laid meanwhile may have brought changes of its own.
    const isLast = draft.claims.every(
      ({ goal, ending }) => goal.kind === 'watch' || ending.ended?.outcome === 'restored',
    )
    if (isLast && claim.heldBy === null) forgetOurs(draft)
    draft.ending(claim, { holding: false })
  }
  const isQuiet = outcome === 'idle' || outcome === 'terminated'
  draft.ending(claim, { settled: true, marks: isQuiet ? marksOf(claim) : null })
}

/** The floor refused the first hold: nothing was sent, and the next look decides again. */
function deny(
  draft: Draft,
  claim: Open,
  { error, isFinal }: Extract<Order, { type: 'denied' }>,
): void {
  if (draft.ledger.pending?.by === claim.id) draft.ledger.pending = null
  Object.assign(claim, { wish: 'none', floor: 'unasked', atMinimum: claim.atMinimum || isFinal })
  if (isFinal && claim.held) {
    // It was held, and somebody has opened it: it stays open.
    claim.held = false
    const { ref } = draft
    const words = `${formatRef(ref)} was made ready by another client, and is not drained again: ${error.message}`
    const lost = new DrainableError('IDLE_LOST', words, { ref, cause: error })
    draft.lose(claim, lost)
    if (claim.ending.settled) draft.fault(claim, lost) // it has its outcome, and no other end
  }
  if (isFinal && claim.policy.onMinimum === 'fail') draft.finish(claim, 'refused', error)
}
