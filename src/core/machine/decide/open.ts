import { atLeast } from '../../../provider/admin-state.js'
import type { AdminState, MemberRef, PresentReading } from '../../../provider/contract.js'
import { formatDuration } from '../../../provider/duration.js'
import { DrainableError } from '../../../provider/error.js'
import { formatRef, isSameIdentity } from '../../../provider/member-ref.js'
import { mayBeOurs, noted, ownChange, targetOf } from '../ledger/changes.js'
import type { Draft } from '../draft.js'
import type { OpenGoal } from '../goal.js'
import { owesUndo, whoseHold } from '../ledger/owner.js'
import { isRefused } from '../ledger/result.js'
import { destination } from '../ledger/was.js'
import { anotherIncarnation, incarnationsOf, ownOf, setterOf, type DrainState } from '../state.js'
import { endGone, goneForCertain } from './gone.js'
import { send } from './send.js'
import { storedByUs, storedHold, type Stored } from './stored.js'
import { awaitTaken, untaken } from './taken.js'

/** How often a member is changed before the run gives in to another client that sets it back. */
const MOST_TRIES = 12

/**
 * Goal `open`: takes a member to the wanted state, through drain if it comes out of maint. No checks run in maint,
 * and some products report a server up the moment it leaves maint, so the member stays closed until the first check
 * has a result.
 */
export function decideOpen(draft: Draft, goal: OpenGoal): void {
  const { state } = draft
  if (state.hold.pending !== null) return
  if (state.ending.ended !== null && !isYielding(state, goal)) {
    if (!broughtBack(draft, goal)) return
    draft.ending({ ended: null })
  }
  if (goal.of === 'ours' && !owesUndo(state)) {
    done(draft, goal)
    return
  }
  const { last } = state
  if (last === null || state.unread !== null || last.askedAt <= state.hold.confirmedAt) {
    giveUp(draft, goal)
    return
  }
  const there = goneForCertain(draft)
  if (there === 'absent' || there === 'replaced') endGone(draft, there)
  else if (there === 'unsure' || !last.reading.present || last.reading.own === 'unknown')
    giveUp(draft, goal)
  else step(draft, meet(draft, goal, last.reading.own), last.reading, last.reading.own)
}

/** Whether a drain that has ended and is kept up opens its member because of the floor: its outcome stands. */
function isYielding({ ending }: DrainState, { then }: OpenGoal): boolean {
  return then !== 'end' && ending.holding
}

/**
 * Whether another process has brought back an undone hold from a state file while this run still waits for other
 * members: no other run watches the member.
 */
function broughtBack(draft: Draft, goal: OpenGoal): boolean {
  const { ending, last, unread, hold, found } = draft.state
  if (ending.ended?.outcome !== 'restored' || !ending.holding || unread !== null) return false
  if (last === null || last.askedAt <= Math.max(hold.confirmedAt, ending.ended.at)) return false
  const { reading } = last
  if (
    !reading.present ||
    !isSameIdentity(reading.identity, found?.identity) ||
    reading.own === 'unknown'
  )
    return false
  if (!anotherIncarnation(draft.state, goal.reached)) return false
  const to = destination(draft.state, goal)
  if (to !== null && !atLeast(to, reading.own)) return true
  draft.set({ goal: { ...goal, reached: incarnationsOf(draft.state) } })
  return false
}

/** Notes the state it was first found in. */
function meet(draft: Draft, goal: OpenGoal, own: AdminState): OpenGoal {
  if (goal.wasAdmin !== null) return goal
  const met = { ...goal, wasAdmin: own }
  draft.set({ goal: met })
  return met
}

function step(draft: Draft, goal: OpenGoal, reading: PresentReading, own: AdminState): void {
  const { state } = draft
  const to = destination(state, goal)
  if (to === null) {
    fail(
      draft,
      goal,
      'its state before the drain is not known, so it was left alone; ready() opens it',
    )
    return
  }
  const stored = storedHold(state, goal, reading, to)
  if (own === to && stored === null) {
    arrived(draft, goal, reading, to)
    return
  }
  const theirs = faultOf(state, goal, { own, to, stored })
  if (theirs !== null) {
    leaveAlone(draft, own)
    fail(draft, goal, theirs)
    return
  }
  if (goal.tries >= MOST_TRIES) {
    fail(
      draft,
      goal,
      own === to
        ? `the configuration makes it '${stored ?? own}' at the next reload, even after it was made '${to}' ${goal.tries} times: find out which client writes it`
        : `it is '${own}' again after it was made '${to}': ${setterOf(state)} sets it back, find out which client it is`,
    )
    return
  }
  const next = nextStep(draft, goal, reading, to)
  if (next === null) giveUp(draft, goal)
  else change(draft, goal, own, next)
}

/** Why a state, including the stored one, is not ours to change; null if it is. */
function faultOf(
  state: DrainState,
  goal: OpenGoal,
  { own, to, stored }: { own: AdminState; to: AdminState; stored: Stored | null },
): string | null {
  const ours = storedByUs(state, stored)
  if (own === to) {
    if (goal.of === 'anybody' || ours || stored === null) return null
    return `the configuration makes it '${stored}' at the next reload, set by ${setterOf(state)}; it was left alone, ready() opens it`
  }
  const above = stored !== null && stored !== own && atLeast(stored, own)
  if (ours && above && goal.of === 'ours') return null
  return whoseFault(state, goal, own, to)
}

/** Why a state is not ours to change; null if it is. */
function whoseFault(
  state: DrainState,
  goal: OpenGoal,
  own: AdminState,
  to: AdminState,
): string | null {
  const ownLate = mayBeOurs(state.hold.late, own)
  if (goal.reached !== null && !ownLate && !anotherIncarnation(state, goal.reached))
    return `it is '${own}' again after it was made '${to}': ${setterOf(state)} sets it back, find out which client it is`
  if (goal.of === 'anybody') return null
  const whose = whoseHold(state, own)
  if (whose === 'ours') return null
  return whose === 'theirs'
    ? `it is '${own}', set by ${setterOf(state)}; it was left alone, ready() opens it`
    : `the change to '${own}' was only intended, so it is not known whether the '${own}' found is ours; it was left alone, ready() opens it`
}

/**
 * Leaves a state alone. A change that may have led to it stays in the ledger as intended. A run that inherits the
 * change, because it may still be carried out, does not know more about the state: for it the effect came and went.
 */
function leaveAlone(draft: Draft, own: AdminState): void {
  const { late, changes } = draft.state.hold
  const unsure = late.filter((one) => targetOf(one.change) === own && one.sight !== 'gone')
  const [first] = unsure
  if (first === undefined) return
  draft.hold({
    late: late.map((one) => (unsure.includes(one) ? { ...one, sight: 'gone' } : one)),
    changes: noted(changes, ownChange(first.change, 'intended', first.lostAt)),
  })
}

/** The next state on the way; null while the run waits for a check. */
function nextStep(
  draft: Draft,
  goal: OpenGoal,
  reading: PresentReading,
  to: AdminState,
): AdminState | null {
  if (to !== 'ready') return to
  const needsCheck =
    reading.health !== 'unchecked' || (goal.check !== 'none' && goal.check !== 'passed')
  const ladder = draft.policy.capabilities.ladder
  if (reading.own === 'maint' && ladder.includes('drain') && needsCheck) return 'drain'
  const { health } = reading
  if (health === 'unknown' || (health === 'down' && goal.mustBeHealthy)) return null
  return ownCheckPassed(draft, goal) ? 'ready' : null
}

/** Runs the caller's own health check once, before the member is opened. */
function ownCheckPassed(draft: Draft, goal: OpenGoal): boolean {
  if (goal.check === 'due') {
    draft.set({ goal: { ...goal, check: 'running' } })
    draft.effects.push({ type: 'check' })
  }
  return goal.check === 'none' || goal.check === 'passed'
}

function change(draft: Draft, goal: OpenGoal, own: AdminState, to: AdminState): void {
  const { ref, found } = draft.state
  const native = found?.native ?? null
  const restore = {
    kind: 'restore' as const,
    ref,
    ...draft.identity,
    expect: own,
    to,
    ...(native === null || goal.of === 'anybody' ? {} : { native }),
  }
  if (isRefused(draft.state, restore)) {
    draft.finish('refused', draft.state.hold.refusal?.error ?? null)
    return
  }
  const repeat = draft.state.hold.losses + draft.state.hold.refusals > 0
  if (!send(draft, restore)) giveUp(draft, goal)
  else draft.set({ goal: { ...goal, takenBy: null, tries: goal.tries + (repeat ? 0 : 1) } })
}

/**
 * Handles a member in the wanted state: waits for a change of ours that may be carried out late, for every process to
 * take it, and for a check.
 */
function arrived(draft: Draft, goal: OpenGoal, reading: PresentReading, to: AdminState): void {
  const { state } = draft
  const { inherited, hints = [] } = reading
  if (goal.reached === null || anotherIncarnation(state, goal.reached))
    draft.set({ goal: { ...goal, reached: incarnationsOf(state) } })
  if (goal.of === 'anybody' && (inherited === 'drain' || inherited === 'maint')) {
    const said = hints.length === 0 ? '' : `: ${hints.join('; ')}`
    fail(draft, goal, `it is ready itself, but inherits '${inherited}'${said}`)
    return
  }
  if (stillLate(state, reading.own)) {
    giveUp(draft, goal)
    return
  }
  const { goal: met } = draft.state
  if (met.kind !== 'open') return
  const rest = untaken(reading, to)
  if (rest.length > 0) {
    awaitTaken(draft, met, rest)
    return
  }
  const now = { ...met, takenBy: null }
  draft.set({ goal: now })
  if (now.mustBeHealthy && !isHealthy(draft, now, reading)) giveUp(draft, now)
  else done(draft, now)
}

/** Whether the balancer's check passed, and the caller's own. */
function isHealthy(draft: Draft, goal: OpenGoal, { health }: PresentReading): boolean {
  return ownCheckPassed(draft, goal) && (health === 'up' || health === 'unchecked')
}

/**
 * Whether a change of ours whose answer was lost may still change this state. A hold may, even if another client
 * holds the same state: that client can let go first.
 */
export function stillLate(state: DrainState, own: AdminState | 'unknown'): boolean {
  return state.hold.late.some(({ change }) => {
    const to = targetOf(change)
    return to !== null && (change.kind === 'hold' || to !== own)
  })
}

/**
 * Ends the undo: none of our changes is left. The ledger is kept while the run goes on looking, for
 * {@link broughtBack}.
 */
function done(draft: Draft, goal: OpenGoal): void {
  if (draft.state.phase !== 'removed') draft.phase('active')
  if (goal.then === 'end') {
    draft.end('restored')
    return
  }
  forgetChanges(draft)
  if (goal.then === 'refuse') {
    draft.finish('refused', goal.because)
    return
  }
  draft.hold({ atMinimum: true, notBefore: draft.now + ASK_AGAIN })
  draft.set({ goal: { kind: 'drain' } })
}

/** Clears the ledger of changes that were undone. */
export function forgetChanges(draft: Draft): void {
  draft.hold({ changes: [], incarnations: null, refusal: null })
}

/** How long after a hold was undone for the floor it is asked again, in milliseconds. */
const ASK_AGAIN = 250

function fail(draft: Draft, goal: OpenGoal, words: string): void {
  const { ref } = draft.state
  const error = new DrainableError('CONFLICT', `${formatRef(ref)}: ${words}`, {
    ref,
    retryable: false,
  })
  // An undo because of the floor: no caller waits for it, and other members of the drain can go on.
  if (goal.then !== 'end') draft.fault(error)
  draft.finish('overruled', error)
}

/** Ends an opening that has taken too long. */
function giveUp(draft: Draft, goal: OpenGoal): void {
  const { state } = draft
  const { until, lateUntil } = goal
  const waitsForLate = goal.reached !== null && awaitsLate(draft)
  if (waitsForLate && state.unread === null) {
    if (lateUntil !== null && draft.now >= lateUntil) draft.finish('refused', lateError(draft))
    return
  }
  if (until === null || draft.now < until) return
  if (state.unread !== null)
    draft.finish('unreachable', state.hold.refusal?.error ?? state.unread.error)
  else if (state.hold.refusal !== null) draft.finish('refused', state.hold.refusal.error)
  else draft.finish('refused', state.hold.loss ?? tooLate(draft, goal))
}

/** Ends an opening whose time is over if no look came back in time. */
export function openOverdue(draft: Draft, goal: OpenGoal, error: DrainableError): void {
  const { state } = draft
  const { until, lateUntil, reached } = goal
  const waitsForLate = reached !== null && awaitsLate(draft)
  const waitedFor = waitsForLate || state.hold.pending?.change.kind === 'restore'
  if (waitedFor && lateUntil !== null && draft.now >= lateUntil)
    draft.finish('refused', lateError(draft))
  else if (until !== null && draft.now >= until && !(waitsForLate && answers(state, until)))
    draft.finish('unreachable', state.hold.refusal?.error ?? error)
}

/**
 * Whether to wait for a change whose answer was lost. If the balancer contradicts itself about the state, no reading
 * can rule the change out: only time ends the wait.
 */
function awaitsLate({ state, now }: Draft): boolean {
  const own = ownOf(state)
  if (!stillLate(state, own)) return false
  return own !== 'unknown' || state.hold.late.some(({ until }) => until === null || now < until)
}

/** Whether the balancer still answers, so that the wait is not for an answer. */
function answers({ last }: DrainState, until: number): boolean {
  return last !== null && last.askedAt >= until
}

/** The error for a change that may still be carried out when no caller waits any longer. */
function lateError(draft: Draft): DrainableError {
  const { ref, hold } = draft.state
  const bound = draft.now + draft.policy.capabilities.lateBound
  const untils = hold.late.map((late) => late.until ?? bound)
  const until = Math.max(...untils, ...(hold.pending === null ? [] : [bound]))
  const what =
    hold.pending === null
      ? 'was opened, but a change of ours whose answer was lost'
      : 'was not seen opened: the change that opens it has no answer yet, and'
  return new DrainableError(
    'CONFLICT',
    `${formatRef(ref)} ${what} may still be carried out until ${draft.iso(until)}: restore the ticket after that`,
    { ref },
  )
}

function tooLate(draft: Draft, goal: OpenGoal): DrainableError {
  const { state } = draft
  const { ref } = state
  const own = ownOf(state)
  const took = formatDuration(draft.now - state.startedAt)
  const name = formatRef(ref)
  if (state.last === null)
    return new DrainableError(
      'CALL_TIMEOUT',
      `${name}: no answer from the balancer within ${took}`,
      { ref },
    )
  if (state.vanished !== null) {
    const seen = state.vanished.identity === null ? 'absent' : 'another member'
    const words = `it was ${seen} at the last look, not long enough to be sure that it is gone; it was left alone`
    return new DrainableError('CONFLICT', `${name}: ${words}`, { ref })
  }
  if (own === 'unknown') {
    const words = `the balancer contradicts itself about the state of this member for ${took}, so nothing was changed`
    return new DrainableError('CONFLICT', `${name}: ${words}`, { ref })
  }
  if (goal.check === 'running') return checkUnanswered(ref, draft.now - state.startedAt)
  const reading = state.last.reading
  const health = reading.present ? reading.health : 'unknown'
  return new DrainableError(
    'HEALTH_TIMEOUT',
    `${name} is '${own}' and no check passed within ${took} (health: ${health}), see what its health check says`,
    { ref },
  )
}

/** The error for a member whose health check by the caller gave no answer in that time, in milliseconds. */
export function checkUnanswered(ref: MemberRef, limit: number): DrainableError {
  return new DrainableError(
    'HEALTH_TIMEOUT',
    `${formatRef(ref)}: the caller's health check gave no answer within ${formatDuration(limit)}; it stays as it is, set a longer timeout to wait longer`,
    { ref },
  )
}
