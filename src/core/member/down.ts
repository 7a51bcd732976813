import { atLeast, formatRef } from '../../provider/member-ref.js'
import type { AdminState, PresentReading } from '../../provider/contract.js'
import { DrainableError } from '../../provider/error.js'
import { checkDeadline, goOut } from './time/deadline.js'
import type { Draft, Open } from './draft.js'
import { endGone, endUncounted, goneForCertain } from './gone.js'
import { openGoal, UNDO_LIMIT } from './wanted.js'
import { awaitsOthers, lowerSeal, mayCut, raise, remove, sendHold } from './hold.js'
import {
  fallByLook,
  isUnsealed,
  judge,
  loseIdle,
  mayOpenLate,
  prove,
  sayLostWork,
  staysIdle,
} from './idle.js'
import { isLive, maintEffect } from './record.js'
import { inWishedState, isLastLook } from './proof/prove.js'
import { setterOf } from './claimed.js'
import { whyLower } from './whose.js'

/** Waits before another client's state is changed back, in milliseconds. */
const REAPPLY = [250, 1_000, 4_000]
/** The longest random wait before a hold that left too few serving is undone, in milliseconds. */
const YIELD_WAIT = 1_000

/** A claim that wants its member down: compares what was found with that, and asks for at most one change. */
export function decideDown(draft: Draft, claim: Open): void {
  if (!isLive(claim)) return
  const { ledger, input } = draft
  if (ledger.pending?.by === claim.id) {
    fallByLook(draft, claim)
    return
  }
  const { last, unread } = draft.claimed(claim).facts
  // A member that can't be read now is unknown: nothing is sent because of an older reading.
  const isOld =
    last === null ||
    unread !== null ||
    last.askedAt <= ledger.answeredAt ||
    (claim.wish === 'none' && !mayBegin(draft, claim))
  // What the floor has denied is decided again by the next look.
  if (isOld || input.type === 'denied') {
    checkDeadline(draft, claim)
    return
  }
  if (input.type === 'doubt') return // so is an idle that its call doubts
  const there = goneForCertain(draft, claim)
  if (there === 'unsure') doubt(draft, claim)
  else if (there === 'replaced') endGone(draft, claim, there)
  else if (there === 'absent') absent(draft, claim)
  else if (last.reading.present) {
    sayLostWork(draft, claim)
    present(draft, claim, last.reading)
    checkDeadline(draft, claim)
  }
}

/**
 * Whether a first hold is decided now: at a look of its own view, from after its call began. All members of a call ask for
 * their places together then.
 */
function mayBegin(draft: Draft, claim: Open): boolean {
  const look = draft.ownLook(claim)
  return look !== undefined && look.askedAt >= claim.startedAt
}

/**
 * Handles an idle member that was just found absent or replaced: idle is not the outcome before a second look. At the
 * deadline, an absent member is idle as proved, because nothing reaches it. A replacement under its name can be at
 * work, and a caller told that the member is idle would stop it.
 */
function doubt(draft: Draft, claim: Open): void {
  const { ending, phase, deadline, policy } = claim
  if (phase !== 'idle' || ending.settled || policy.until === 'removed') checkDeadline(draft, claim)
  else if (deadline === null || draft.now < deadline) draft.ending(claim, { ended: null })
  else if (draft.claimed(claim).facts.last?.reading.present !== true) finishIdle(draft, claim)
  else {
    loseIdle(draft, claim)
    checkDeadline(draft, claim)
  }
}

function present(draft: Draft, claim: Open, reading: PresentReading): void {
  if (claim.wish === 'none') {
    if (reading.own === 'unknown') return
    claim.wish = firstWish(claim, reading)
    sendHold(draft, claim)
    return
  }
  if (!inWishedState(draft.claimed(claim))) {
    if (reading.own === 'unknown') loseIdle(draft, claim)
    else putBack(draft, claim, reading, reading.own)
    return
  }
  claim.held = true
  if (claim.phase === 'active') draft.phase(claim, 'draining')
  if (yieldsFloor(draft, claim)) return
  escalate(draft, claim, reading)
  if (claim.phase === 'idle' && (!staysIdle(draft, claim) || isUnsealed(claim, reading)))
    loseIdle(draft, claim)
  // By a look of another object: what this one has counted is older than that, and its own next look decides.
  const isOthers = draft.input.type === 'look' && draft.ownLook(claim) === undefined
  if (claim.phase === 'idle' && mayOpenLate(draft.ledger) && !claim.ending.settled)
    hesitate(draft, claim)
  else if (isOthers) return
  else if (claim.phase === 'idle' || judge(draft, claim, reading)) finishIdle(draft, claim)
}

/** Handles an idle member that a lost undo may still open: idle is not the outcome before that is known. */
function hesitate(draft: Draft, claim: Open): void {
  const { deadline } = claim
  if (deadline !== null && draft.now >= deadline) loseIdle(draft, claim)
  else draft.ending(claim, { ended: null })
}

/** Handles an idle member: removes it if the policy says so, otherwise ends the claim. */
function finishIdle(draft: Draft, claim: Open): void {
  if (awaitsOthers(claim) && isLastLook(draft.claimed(claim))) goOut(draft, claim)
  if (claim.ending.ended !== null) return
  if (claim.policy.until === 'removed') remove(draft, claim)
  else draft.end(claim, claim.ending.terminated > 0 ? 'terminated' : 'idle')
}

/** The first hold: maint only if it is gentle, or the caller allowed the cut. */
function firstWish(claim: Open, reading: PresentReading): 'drain' | 'maint' {
  const { policy } = claim
  return maintEffect(policy, reading) === 'gentle' || mayCut(claim) ? policy.hold : 'drain'
}

/** Handles an own state that is lower than wanted: never set, forgotten by a reload, or set by another client. */
function putBack(draft: Draft, claim: Open, reading: PresentReading, own: AdminState): void {
  // What a process has forgotten is kept as found while a claim was held; one that never was does not know of that.
  const isFirst = !claim.held && draft.claims.some(({ held }) => held)
  const cause = isFirst ? 'unset' : whyLower(draft.claimed(claim), own)
  if (cause === 'theirs') meetTheirs(draft, own)
  else lowerSeal(claim, reading)
  if (atLeast(own, claim.wish)) {
    loseIdle(draft, claim) // what it closed over is proved anew, then it is sealed again
    return
  }
  // If a reload forgot a held idle, it is put back; it is lost only if work is seen.
  const isForgotten = cause === 'forgotten' || (cause === 'unset' && claim.held)
  const isKept = isForgotten && (claim.wish === 'maint' || claim.policy.seal === 'never')
  if (!isKept || !staysIdle(draft, claim)) loseIdle(draft, claim)
  if (cause !== 'theirs' || claim.overruled) sendHold(draft, claim)
  else overruled(draft, claim, reading, own)
}

/** What another client set before any hold of ours changed the member is where an undo goes. */
function meetTheirs({ ledger }: Draft, own: AdminState): void {
  const { found, set, earlier } = ledger
  if (
    found !== null &&
    set === null &&
    earlier.length === 0 &&
    !atLeast(own, found.own === 'unknown' ? 'none' : found.own)
  )
    ledger.found = { ...found, own }
}

function overruled(draft: Draft, claim: Open, reading: PresentReading, own: AdminState): void {
  const wait = REAPPLY[claim.overrules]
  const reset = claim.policy.onOverrule === 'reapply' && wait !== undefined
  const { wish } = claim
  if (wish === 'none') return
  draft.emit(claim, { type: 'overruled', ...draft.stamp, expected: wish, found: own, reset })
  claim.overruled = true
  claim.overrules += 1
  if (reset) {
    claim.floor = 'unasked' // its place was opened: whether there is one is asked again
    lowerSeal(claim, reading)
    draft.ledger.notBefore = draft.now + wait
    return
  }
  const { ref } = draft
  const remedy =
    claim.policy.onOverrule === 'reapply'
      ? `the drain was put back ${REAPPLY.length} times`
      : "onOverrule: 'reapply' puts the drain back"
  const words = `${formatRef(ref)} was set to '${own}' by ${setterOf(draft.claimed(claim))} while '${wish}' was wanted, find out which client it was; ${remedy}`
  const error = new DrainableError('DRAIN_OVERRULED', words, { ref })
  draft.lose(claim, error)
  draft.phase(claim, 'active')
  draft.finish(claim, 'overruled', error)
}

/** Raises a drain that persistent clients keep busy. One that is in maint already has nothing to raise, until a reload forgets that. */
function escalate(draft: Draft, claim: Open, reading: PresentReading): void {
  const { escalateAfter } = claim.policy
  if (escalateAfter === null || claim.escalated || reading.own === 'maint') return
  if (claim.ending.ended !== null || claim.phase === 'idle') return
  if (draft.now < claim.startedAt + escalateAfter || draft.now < draft.ledger.notBefore) return
  claim.escalated = true
  raise(draft, claim, reading)
}

/**
 * Checks, at the first look after the first hold, whether another controller took the last place at the same moment.
 * If so, our hold is undone after a random wait, so that two controllers don't both give way; nothing else is decided
 * before that.
 *
 * @returns whether this is still undecided, or the hold is being undone
 */
function yieldsFloor(draft: Draft, claim: Open): boolean {
  const { ledger } = draft
  if (claim.floor !== 'granted') return false
  const look = draft.ownLook(claim)
  if (look === undefined) return claim.yieldAt !== null
  const broken = look.floor?.get(claim.id) ?? null
  if (broken === null || ledger.set === null || ledger.found?.serves !== true) {
    Object.assign(claim, { floor: 'kept', yieldAt: null })
    return false
  }
  if (claim.yieldAt === null) {
    claim.yieldAt = draft.now + look.random * YIELD_WAIT
    return true
  }
  if (draft.now < claim.yieldAt) return true
  draft.fault(claim, broken)
  // A drain that has ended does not ask for its place again.
  const isOver = claim.policy.onMinimum === 'fail' || claim.ending.ended !== null
  const then = isOver ? 'refuse' : 'wait'
  const goal = {
    of: 'ours',
    since: draft.now,
    until: draft.now + UNDO_LIMIT,
    lateUntil: null,
    then,
    because: broken,
  } as const
  Object.assign(claim, { floor: 'unasked', yieldAt: null, wish: 'none', confirmed: 'none' })
  claim.goal = openGoal(goal)
  return true
}

/** Handles a member that is no longer in the configuration. An old process can still be busy for it. */
function absent(draft: Draft, claim: Open): void {
  endUncounted(draft, claim)
  const isBusy = claim.held && claim.proof.scopes.size > 0 && claim.ending.ended === null
  if (isBusy && prove(draft, claim) === null) checkDeadline(draft, claim)
  else endGone(draft, claim, 'absent')
}
