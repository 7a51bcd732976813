import { atLeast, formatRef } from '../../provider/member-ref.js'
import type { AdminState, PresentReading } from '../../provider/contract.js'
import { DrainableError } from '../../provider/error.js'
import type { Draft, Open } from './draft.js'
import { endGone, goneForCertain } from './gone.js'
import { holderBeside, isDown, UNDO_LIMIT, type OpenGoal } from './wanted.js'
import { owes, type LateChange, type SeenReading } from './record.js'
import { isAnother, ownOf, setterOf } from './claimed.js'
import { awaitTaken, lateError, mostlyUnread, tooLate, untaken } from './open-waits.js'
import { destination, isRefused, mayBeOurs, stillLate, targetOf, whose } from './whose.js'

/** How often a member is changed before an opening gives in to another client that sets it back. */
const MOST_TRIES = 12
/** How long after a hold was undone for the floor it is asked again, in milliseconds. */
const ASK_AGAIN = 250

/** What became of a member in a state that is not ours to undo. */
export const LEFT_ALONE = 'it was left alone, ready() opens it'

/** A claim of this goal, whatever else it is. */
export type Opening = Open & { goal: OpenGoal }

export function isOpen(claim: Open): claim is Opening {
  return claim.goal.kind === 'open'
}

/**
 * A claim that opens its member: takes it to the wanted state, through drain if it comes out of maint. No checks run in
 * maint, and some products report a server up the moment it leaves maint, so it stays closed until the first check has a result.
 */
export function decideOpen(draft: Draft, claim: Opening): void {
  const { ledger } = draft
  if (ledger.pending !== null) return
  const isYielding = claim.goal.then !== 'end' && claim.ending.holding
  if (claim.ending.ended !== null && !isYielding) {
    if (!wasBroughtBack(draft, claim)) return
    draft.ending(claim, { ended: null })
  }
  if (claim.goal.of === 'ours') {
    const isOver = !owes(ledger) && !claim.goal.isTheirs && !needsHealth(draft, claim)
    if (isOver) {
      done(draft, claim)
      return
    }
    if (isTakenFurther(draft, claim)) return
    if (isLeftToOthers(draft, claim)) return
  }
  const last = lookThatCounts(draft, claim)
  if (last === null) {
    giveUp(draft, claim)
    return
  }
  const there = goneForCertain(draft, claim)
  if (there === 'absent' || there === 'replaced') endGone(draft, claim, there)
  else if (there === 'unsure' || !last.reading.present || last.reading.own === 'unknown')
    giveUp(draft, claim)
  else advance(draft, claim, last.reading, last.reading.own)
}

/** The newest look, unless others or we may have changed the member since: it is from before the call, or before our last change. */
function lookThatCounts(draft: Draft, claim: Opening): SeenReading | null {
  const { last, unread } = draft.claimed(claim).facts
  if (last === null || unread !== null) return null
  const isNewer = last.askedAt > draft.ledger.answeredAt && last.askedAt >= claim.goal.since
  return isNewer ? last : null
}

/** A later ready() takes it further than this undo would: the undo is over once that one is, and goes on if it fails. */
function isTakenFurther(draft: Draft, claim: Opening): boolean {
  const ready = draft.claims.find(({ goal }) => goal.kind === 'open' && goal.of === 'anybody')
  if (ready === undefined) return false
  const { ended } = ready.ending
  if (ended !== null && ended.outcome !== 'restored') return false
  const isOpened = ended !== null && !stillLate(draft.ledger, ownOf(draft.claimed(claim)))
  if (isOpened && needsHealth(draft, claim)) return false
  if (isOpened) done(draft, claim)
  else giveUp(draft, claim)
  return true
}

/**
 * An undo under another claim is over once that one holds the member. It waits for one that may still hold it, and goes on
 * if that one ends without.
 */
function isLeftToOthers(draft: Draft, claim: Opening): boolean {
  const holder = holderBeside(draft, claim)
  if (holder !== undefined) {
    claim.heldBy = holder.ticket ?? ''
    done(draft, claim)
    if (isOpen(claim)) draft.ending(claim, { holding: false })
    return true
  }
  if (!draft.claims.some((other) => other !== claim && isDown(other))) return false
  giveUp(draft, claim)
  return true
}

/**
 * Whether another process has brought back an undone hold from a state file while its call still waits for other members:
 * nobody else looks after this one.
 */
function wasBroughtBack(draft: Draft, claim: Opening): boolean {
  const { ending, goal } = claim
  const { last, unread, incarnations } = draft.claimed(claim).facts
  if (ending.ended?.outcome !== 'restored' || !ending.holding || unread !== null) return false
  if (last === null || last.askedAt <= Math.max(draft.ledger.answeredAt, ending.ended.at))
    return false
  const told = draft.tells(last.reading)
  if (told === undefined || !isAnother(incarnations, goal.reached)) return false
  const to = destination(draft.ledger, goal)
  if (to !== null && !atLeast(to, told.own)) return true
  claim.goal = { ...goal, reached: incarnations }
  return false
}

function advance(draft: Draft, claim: Opening, reading: PresentReading, own: AdminState): void {
  claim.goal = { ...claim.goal, wasAdmin: claim.goal.wasAdmin ?? own }
  const to = destination(draft.ledger, claim.goal)
  if (to === null) {
    fail(draft, claim, `its state before the drain is not known; ${LEFT_ALONE}`)
    return
  }
  if (claim.goal.isTheirs && !owes(draft.ledger)) {
    if (own === 'ready' && needsHealth(draft, claim)) arrived(draft, claim, reading, to)
    else if (own === 'ready') done(draft, claim)
    else fail(draft, claim, theirWords(draft, claim, own))
    return
  }
  const stored = storedSince(draft, claim, reading, to)
  const at = own === to ? (stored ?? own) : own
  if (at === to) {
    arrived(draft, claim, reading, to)
    return
  }
  const theirs = faultOf(draft, claim, { at, own, to, stored })
  if (theirs !== null) {
    leaveAlone(draft, at)
    fail(draft, claim, theirs)
  } else if (claim.goal.tries >= MOST_TRIES)
    fail(draft, claim, setBack(draft, claim, { at, own, to, stored }))
  else {
    const next = nextStep(draft, claim, reading, to)
    if (next === null) giveUp(draft, claim)
    else change(draft, claim, own, next)
  }
}

/** The state that the stored configuration gives it at the next reload; undefined where that is none, or as it was found. */
function storedSince(
  { ledger: { found } }: Draft,
  { goal }: Opening,
  { stored, native }: PresentReading,
  to: AdminState,
): PresentReading['stored'] {
  if (to !== 'ready') return undefined
  const isAsFound = JSON.stringify(native ?? null) === JSON.stringify(found?.native ?? null)
  return goal.of === 'ours' && isAsFound ? undefined : stored
}

/** Where it is, by the stored configuration once it is open, and at present, and where it is to be. */
interface Way {
  readonly at: AdminState
  readonly own: AdminState
  readonly to: AdminState
  readonly stored: PresentReading['stored']
}

/** Why a state is not ours to change; null if it is. */
function faultOf(draft: Draft, claim: Opening, way: Way): string | null {
  const { at, own, stored } = way
  const { ledger } = draft
  const { goal } = claim
  const claimed = draft.claimed(claim)
  const isStored = at !== own
  const isBack = goal.reached !== null && !isAnother(claimed.facts.incarnations, goal.reached)
  if (!isStored && isBack && !mayBeOurs(ledger.late, at)) return setBack(draft, claim, way)
  if (goal.of === 'anybody') return null
  // What is stored may lie above what is running: each state that we had set can be there, and what runs is a part of it.
  const known = [ledger.set, ...ledger.earlier, ...ledger.doubted]
  const isAbove = stored !== undefined && stored !== own && atLeast(stored, own)
  if (isAbove && known.some((one) => one !== null && atLeast(one, stored))) return null
  const of = whose(claimed, at)
  if (of === 'ours') return null
  if (of === 'unknown')
    return `the change to '${at}' was only intended, so it is not known whether the '${at}' found is ours; ${LEFT_ALONE}`
  return isStored
    ? `the configuration makes it '${at}' at the next reload, set by ${setterOf(claimed)}; ${LEFT_ALONE}`
    : theirWords(draft, claim, at)
}

function theirWords(draft: Draft, claim: Opening, own: AdminState): string {
  return `it is '${own}', set by ${setterOf(draft.claimed(claim))}; ${LEFT_ALONE}`
}

function setBack(draft: Draft, claim: Opening, { at, own, to }: Way): string {
  const { tries } = claim.goal
  if (at !== own)
    return `the configuration makes it '${at}' at the next reload, even after it was made '${to}' ${tries} times: find out which client writes it`
  return `it is '${at}' again after it was made '${to}': ${setterOf(draft.claimed(claim))} sets it back, or the balancer has not done what it confirmed; find out which`
}

/** A lost change that may have led to a state that is left alone stays in doubt. */
function leaveAlone({ ledger }: Draft, own: AdminState): void {
  if (!ledger.late.some(({ change }) => targetOf(change) === own)) return
  ledger.late = ledger.late.map((one) =>
    targetOf(one.change) === own ? { ...one, lacked: null } : one,
  )
  ledger.doubted = [...new Set([...ledger.doubted, own])]
}

/** The next state on the way; null while a check is waited for. */
function nextStep(
  draft: Draft,
  claim: Opening,
  { own, health }: PresentReading,
  to: AdminState,
): AdminState | null {
  if (to !== 'ready') return to
  const { check, mustBeHealthy } = claim.goal
  const needsCheck = health !== 'unchecked' || (check !== 'none' && check !== 'passed')
  const { ladder } = claim.policy.capabilities
  if (own === 'maint' && ladder.includes('drain') && needsCheck) return 'drain'
  if (health === 'unknown' || (health === 'down' && mustBeHealthy)) return null
  return hasPassedOwnCheck(draft, claim) ? 'ready' : null
}

/** Runs the caller's own health check once, before the member is opened. */
function hasPassedOwnCheck(draft: Draft, claim: Opening): boolean {
  const { check } = claim.goal
  if (check === 'due') {
    claim.goal = { ...claim.goal, check: 'running' }
    draft.effects.push({ type: 'check', claim: claim.id })
  }
  return check === 'none' || check === 'passed'
}

/**
 * Sends the next step. One that may still come is waited for, and not repeated; so is a lost removal: opened before it is carried
 * out, the member would have clients again.
 */
function change(draft: Draft, claim: Opening, own: AdminState, to: AdminState): void {
  const { ledger, ref } = draft
  const native = ledger.found?.native ?? null
  const restore = {
    kind: 'restore' as const,
    ref,
    ...draft.identity,
    expect: own,
    to,
    ...(native === null || claim.goal.of === 'anybody' ? {} : { native }),
  }
  if (isRefused(ledger, restore)) {
    draft.finish(claim, 'refused', ledger.refusal?.error ?? null)
    return
  }
  const mayCome = ledger.late.some(isAwaited)
  const isRepeat = ledger.losses + ledger.refusals > 0
  const { until, tries } = claim.goal
  const isOver = until !== null && draft.now >= until
  // Each that is lost is waited for: without an end here the next would follow for ever.
  if (mayCome || (isOver && ledger.losses > 1) || !draft.send(claim, restore)) {
    giveUp(draft, claim)
    return
  }
  // The wait for the one that was lost has taken the time of its repeat.
  const anew = isOver && ledger.losses === 1 ? draft.now + UNDO_LIMIT : until
  claim.goal = { ...claim.goal, until: anew, takenBy: null, tries: tries + (isRepeat ? 0 : 1) }
}

/** Handles a member in the wanted state: waits for a lost change of ours, for every process to take it, and for a check. */
function arrived(draft: Draft, claim: Opening, reading: PresentReading, to: AdminState): void {
  const { inherited, hints = [], health } = reading
  const { incarnations } = draft.claimed(claim).facts
  const { reached } = claim.goal
  if (reached === null || isAnother(incarnations, reached))
    claim.goal = { ...claim.goal, reached: incarnations }
  if (claim.goal.of === 'anybody' && (inherited === 'drain' || inherited === 'maint')) {
    const said = hints.length === 0 ? '' : `: ${hints.join('; ')}`
    fail(draft, claim, `it is ready itself, but inherits '${inherited}'${said}`)
    return
  }
  if (stillLate(draft.ledger, reading.own)) {
    giveUp(draft, claim)
    return
  }
  const rest = untaken(reading, to)
  if (rest.length > 0) {
    awaitTaken(draft, claim, rest)
    return
  }
  claim.goal = { ...claim.goal, takenBy: null }
  const isUp = health === 'up' || health === 'unchecked'
  const isMeant = !needsHealth(draft, claim) || (isUp && hasPassedOwnCheck(draft, claim))
  if (isMeant) done(draft, claim)
  else giveUp(draft, claim)
}

/** A member that goes back to drain or maint gets no clients: nobody asks how it is. */
function needsHealth({ ledger }: Draft, { goal }: Opening): boolean {
  return goal.mustBeHealthy && destination(ledger, goal) === 'ready'
}

/** Nothing of ours is left. The ledger is kept while its call goes on looking, for {@link wasBroughtBack}. */
function done(draft: Draft, claim: Opening): void {
  const { then, because } = claim.goal
  draft.phase(claim, 'active')
  if (then === 'end') {
    draft.end(claim, 'restored')
    return
  }
  if (claim.heldBy === null) forgetOurs(draft)
  if (then === 'refuse') {
    draft.finish(claim, 'refused', because)
    return
  }
  Object.assign(claim, { atMinimum: true, heldBy: null, goal: { kind: 'drain' } })
  draft.ledger.notBefore = draft.now + ASK_AGAIN
}

/** Clears the ledger of changes that were undone. */
export function forgetOurs({ ledger }: Draft): void {
  Object.assign(ledger, { set: null, earlier: [], doubted: [], refusal: null })
}

function fail(draft: Draft, claim: Opening, words: string): void {
  const { ref } = draft
  const data = { ref, retryable: false }
  const error = new DrainableError('CONFLICT', `${formatRef(ref)}: ${words}`, data)
  // An undo because of the floor: no caller waits for it, and other members of the drain can go on.
  if (claim.goal.then !== 'end') draft.fault(claim, error)
  draft.finish(claim, 'overruled', error)
}

/** Ends an opening that has taken too long. */
function giveUp(draft: Draft, claim: Opening): void {
  const { until, lateUntil } = claim.goal
  const { ledger } = draft
  const { unread } = draft.claimed(claim).facts
  countUnread(claim, unread?.error, draft.now)
  if (awaitsLate(draft, claim) && unread === null) {
    if (lateUntil !== null && draft.now >= lateUntil)
      draft.finish(claim, 'refused', lateError(draft, claim))
    return
  }
  if (until === null || draft.now < until) return
  const barred = mostlyUnread(draft, claim)
  if (unread !== null) draft.finish(claim, 'unreachable', ledger.refusal?.error ?? unread.error)
  else if (ledger.refusal !== null) draft.finish(claim, 'refused', ledger.refusal.error)
  else if (ledger.loss === null && barred !== null) draft.finish(claim, 'unreachable', barred)
  else draft.finish(claim, 'refused', ledger.loss ?? tooLate(draft, claim))
}

/** Counts for how long the balancer could not be read. @param error - why it can't be now */
function countUnread(claim: Opening, error: DrainableError | undefined, now: number): void {
  const { unread } = claim.goal
  const { from = null, before = 0 } = unread ?? {}
  if (error !== undefined)
    claim.goal = { ...claim.goal, unread: { error, from: from ?? now, before } }
  else if (unread !== null && from !== null)
    claim.goal = { ...claim.goal, unread: { ...unread, from: null, before: before + now - from } }
}

/** Ends an opening whose time is over if no look came back in time. */
export function openOverdue(draft: Draft, claim: Opening, error: DrainableError): void {
  const { until, lateUntil } = claim.goal
  const { ledger, now } = draft
  const { last } = draft.claimed(claim).facts
  const waits = awaitsLate(draft, claim)
  const isWaitedFor = waits || ledger.pending !== null
  if (isWaitedFor && lateUntil !== null && now >= lateUntil)
    draft.finish(claim, 'refused', lateError(draft, claim))
  else if (until !== null && now >= until && !(waits && last !== null && last.askedAt >= until))
    draft.finish(claim, 'unreachable', ledger.refusal?.error ?? error)
}

/**
 * Whether to wait for a change whose answer was lost. If the balancer contradicts itself about the state, no reading
 * can rule the change out: only time ends the wait.
 */
function awaitsLate(draft: Draft, claim: Opening): boolean {
  const { ledger, now } = draft
  const own = ownOf(draft.claimed(claim))
  const isLate = stillLate(ledger, own) || ledger.late.some(isAwaited)
  if (!isLate) return false
  return own !== 'unknown' || ledger.late.some(({ until }) => until === null || now < until)
}

/** Whether a lost change is waited for whatever the state is. */
function isAwaited({ change }: LateChange): boolean {
  return change.kind === 'restore' || change.kind === 'remove'
}
