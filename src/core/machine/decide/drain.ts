import { atLeast } from '../../../provider/admin-state.js'
import type { AdminState, PresentReading } from '../../../provider/contract.js'
import { DrainableError } from '../../../provider/error.js'
import { formatRef } from '../../../provider/member-ref.js'
import type { Draft } from '../draft.js'
import { openGoal, UNDO_LIMIT } from '../goal.js'
import { admitCut } from '../ledger/cuts.js'
import { whyLower } from '../ledger/owner.js'
import { maintEffect } from '../policy.js'
import { inWishedState, marksOf } from '../proof.js'
import { meetLower } from '../ledger/was.js'
import { lowerWish } from '../rough.js'
import { isLetGo, setterOf, type DrainState } from '../state.js'
import { checkDeadline } from './deadline.js'
import { closeDoor, isUnsealed } from './door.js'
import { endGone, endUncounted, goneForCertain } from './gone.js'
import { fallByWork, loseIdle, prove, sayLostWork, staysIdle } from './idle.js'
import { escalate } from './raise.js'
import { remove } from './remove.js'
import { sendHold } from './send.js'

/** Waits before another client's state is changed back, in milliseconds. */
const REAPPLY = [250, 1_000, 4_000]
/** The longest random wait before a hold that left too few serving is undone, in milliseconds. */
const YIELD_WAIT = 1_000

/** Goal `drain`: compares the reading with the wanted state, and asks for at most one change. */
export function decideDrain(draft: Draft): void {
  const { state } = draft
  if (isLetGo(state)) return
  // A member that can't be read now is unknown: nothing is sent because of an older reading.
  const unseen = state.last === null || state.unread !== null
  if (state.hold.pending !== null) {
    // An unanswered change stops sending, and nothing else.
    if (draft.input.type === 'reading') fallByWork(draft)
    return
  }
  // What the floor has denied is decided again by the next look.
  const isDenied = draft.input.type === 'denied'
  if (unseen || isDenied || state.last.askedAt <= state.hold.confirmedAt) {
    checkDeadline(draft)
    return
  }
  const there = goneForCertain(draft)
  if (there === 'unsure') doubt(draft)
  else if (there === 'replaced') endGone(draft, there)
  else if (there === 'absent') absent(draft)
  else if (state.last.reading.present) present(draft, state.last.reading)
}

/**
 * Handles an idle member that was just found absent or replaced: idle is not the outcome before a second look. At the
 * deadline, an absent member is idle as proved, because nothing reaches it. A replacement under its name can be at
 * work, and a caller told that the member is idle would stop it.
 */
function doubt(draft: Draft): void {
  const { ending, phase, deadline, last } = draft.state
  if (phase !== 'idle' || ending.settled || draft.policy.until === 'removed') checkDeadline(draft)
  else if (deadline === null || draft.now < deadline) draft.ending({ ended: null })
  else if (last?.reading.present !== true) finishIdle(draft)
  else {
    loseIdle(draft)
    checkDeadline(draft)
  }
}

function present(draft: Draft, reading: PresentReading): void {
  sayLostWork(draft)
  if (draft.state.hold.wish === 'none') {
    if (reading.own !== 'unknown') {
      draft.hold({ wish: firstWish(draft, reading) })
      sendHold(draft)
    }
    checkDeadline(draft)
    return
  }
  if (!inWishedState(draft.state)) {
    if (reading.own === 'unknown') loseIdle(draft)
    else putBack(draft, reading, reading.own)
    checkDeadline(draft)
    return
  }
  if (draft.state.phase === 'active') draft.phase('draining')
  if (yieldsFloor(draft)) {
    checkDeadline(draft)
    return
  }
  escalate(draft, reading)
  if (draft.state.phase === 'idle' && (!staysIdle(draft) || isUnsealed(draft.state, reading)))
    loseIdle(draft)
  if (draft.state.phase !== 'idle') judge(draft, reading)
  else if (mayOpenLate(draft.state) && !draft.state.ending.settled) hesitate(draft)
  else finishIdle(draft)
  checkDeadline(draft)
}

/** Handles an idle member that an undo may still open: idle is not the outcome before the undo's result is known. */
function hesitate(draft: Draft): void {
  const { deadline } = draft.state
  if (deadline !== null && draft.now >= deadline) loseIdle(draft)
  else draft.ending({ ended: null })
}

/** Applies the idle rule, the verdict and the seal. */
function judge(draft: Draft, reading: PresentReading): void {
  const fresh = draft.state.proof.verdict === null
  if (fresh) {
    const proof = prove(draft)
    if (proof === null || mayOpenLate(draft.state)) return
    const scopes = marksOf(draft.state)
    draft.proof({ verdict: { at: draft.now, proof, scopes, sealedAt: null } })
  }
  if (closeDoor(draft, reading, fresh)) finishIdle(draft)
}

/** Handles an idle member: removes it if the policy says so, otherwise ends the run. */
function finishIdle(draft: Draft): void {
  const { state, policy } = draft
  if (state.ending.ended !== null) return
  if (policy.until === 'removed') {
    remove(draft)
    return
  }
  admitCut(draft)
  draft.end(draft.state.ending.terminated > 0 ? 'terminated' : 'idle')
}

/**
 * Whether an undo whose answer was lost, or an undo of another run of this process, may still open the member: then
 * it would not stay idle.
 */
function mayOpenLate(state: DrainState): boolean {
  if (state.last?.mayOpen === true) return true
  return state.hold.late.some(({ change }) => change.kind === 'restore')
}

/** The first hold: maint only if it is gentle, or the caller allowed the cut. */
function firstWish(draft: Draft, reading: PresentReading): 'drain' | 'maint' {
  const { hold: wished, onTimeout } = draft.policy
  const allowed = maintEffect(draft.policy, reading) === 'gentle' || onTimeout === 'terminate'
  return allowed ? wished : 'drain'
}

/**
 * Handles an own state that is lower than wanted: never set, forgotten by a reload, or overruled by another client.
 */
function putBack(draft: Draft, reading: PresentReading, own: AdminState): void {
  const cause = whyLower(draft.state, own)
  if (cause === 'theirs') meetLower(draft, own)
  if (cause !== 'theirs') lowerSeal(draft, reading)
  if (atLeast(own, draft.state.hold.wish)) {
    loseIdle(draft) // what it closed over is proved anew, then it is sealed again
    return
  }
  const { state, policy } = draft
  // If a reload forgot a held idle, it is put back; it is lost only if work is seen.
  const kept = cause === 'forgotten' && (state.hold.wish === 'maint' || policy.seal === 'never')
  if (!kept || !staysIdle(draft)) loseIdle(draft)
  if (cause !== 'theirs') {
    sendHold(draft)
    return
  }
  if (state.hold.wish === 'none') return
  if (!state.hold.overruled) {
    const wait = REAPPLY[state.hold.overrules]
    const reset = policy.onOverrule === 'reapply' && wait !== undefined
    const expected = state.hold.wish
    draft.emit({ type: 'overruled', ...draft.stamp, expected, found: own, reset })
    draft.hold({ overruled: true, overrules: state.hold.overrules + 1 })
    if (!reset) {
      const error = overruledError(state, own)
      draft.lose(error)
      draft.phase('active')
      draft.finish('overruled', error)
      return
    }
    lowerSeal(draft, reading)
    draft.hold({ notBefore: draft.now + wait })
    return
  }
  sendHold(draft)
}

/**
 * If maint cuts, a seal is not put straight back over live work (drain, prove and seal again), and any other maint
 * only if the caller allowed the cut.
 */
function lowerSeal(draft: Draft, reading: PresentReading): void {
  const { state, policy } = draft
  const worded =
    policy.onTimeout === 'terminate' && (policy.hold === 'maint' || state.hold.escalated)
  if (state.hold.wish !== 'maint' || worded) return
  if (maintEffect(policy, reading) !== 'gentle') lowerWish(draft)
}

function overruledError(state: DrainState, own: string): DrainableError {
  return new DrainableError(
    'DRAIN_OVERRULED',
    `${formatRef(state.ref)} was set to '${own}' by ${setterOf(state)} while '${state.hold.wish}' was wanted, find out which client it was; onOverrule: 'reapply' puts the drain back`,
    { ref: state.ref },
  )
}

/**
 * Checks, at the first look after the first hold, whether another controller took the last place at the same moment.
 * If so, our hold is undone after a random wait, so that two controllers don't both give way; nothing else is decided
 * before that.
 *
 * @returns whether this is still undecided, or the hold is being undone
 */
function yieldsFloor(draft: Draft): boolean {
  const { input, state } = draft
  const { hold } = state
  if (hold.floor !== 'granted' || input.type !== 'reading') return false
  const broken = input.floor ?? null
  const ours = hold.changes.some((change) => change.kind === 'hold' && change.state === 'applied')
  if (broken === null || !ours || state.found?.serves !== true) {
    draft.hold({ floor: 'kept', yieldAt: null })
    return false
  }
  if (hold.yieldAt === null) {
    draft.hold({ yieldAt: draft.now + (input.random ?? 0) * YIELD_WAIT })
    return true
  }
  if (draft.now < hold.yieldAt) return true
  draft.fault(broken)
  draft.hold({ floor: 'unasked', yieldAt: null, wish: 'none', confirmed: 'none' })
  draft.set({
    goal: openGoal({
      of: 'ours',
      until: draft.now + UNDO_LIMIT,
      lateUntil: null,
      // A drain that has ended does not ask for its place again.
      then: draft.policy.onMinimum === 'fail' || state.ending.ended !== null ? 'refuse' : 'wait',
      because: broken,
    }),
  })
  return true
}

/** Handles a member that is no longer in the configuration. An old process can still be busy for it. */
function absent(draft: Draft): void {
  endUncounted(draft)
  const { state } = draft
  const held = state.hold.confirmed !== 'none'
  const busy = held && state.proof.scopes.size > 0
  if (busy && prove(draft) === null && state.ending.ended === null) {
    checkDeadline(draft)
    return
  }
  endGone(draft, 'absent')
}
