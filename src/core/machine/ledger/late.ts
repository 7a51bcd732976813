import { atLeast } from '../../../provider/admin-state.js'
import type { AdminState, Change, ChangeResult, Reading } from '../../../provider/contract.js'
import type { DrainableError } from '../../../provider/error.js'
import {
  isTwin,
  lacksEffect,
  lateChange,
  noted,
  ownChange,
  TAKEN_BACK,
  targetOf,
  wasSet,
  type Entry,
} from './changes.js'
import { confirm } from './confirm.js'
import { countCut, cutBy, loseCut } from './cuts.js'
import type { Draft } from '../draft.js'
import { UNDO_LIMIT, type OpenGoal } from '../goal.js'
import { backOff } from '../pace.js'
import {
  anotherIncarnation,
  incarnationsOf,
  loadOf,
  type DrainState,
  type LateChange,
  type SentChange,
} from '../state.js'
import { destination, meetAgain } from './was.js'
import { isSameIdentity } from '../../../provider/member-ref.js'

/**
 * Records a lost answer: the change may have been carried out, or may be carried out later. A hold is sent again as
 * soon as a look shows that it is not in place; a repeat does no harm.
 */
export function loseAnswer(
  draft: Draft,
  sent: SentChange & Pick<LateChange, 'underWay'>,
  error: DrainableError,
): void {
  const { hold } = draft.state
  const losses = hold.losses + 1
  const repeats = sent.change.kind === 'hold' || sent.change.kind === 'restore'
  const pause = repeats && losses > 1 ? backOff(losses - 2) : 0
  // The undo's effect came and went: the present state is another client's, not the one that the undo was to lower.
  const undone = sent.change.kind === 'restore' && sent.sight === 'gone'
  const entry = undone ? ownChange(sent.change, 'applied', draft.now) : undefined
  draft.hold({
    pending: null,
    changes: noted(hold.changes, entry),
    late: undone ? hold.late : [...hold.late, lateChange(sent, draft.now)],
    losses,
    loss: error,
    confirmedAt: draft.now,
    notBefore: Math.max(hold.notBefore, draft.now + pause),
  })
  loseCut(draft, sent.cuts)
}

/**
 * Records that the call of a change that was given up has ended after all. Without an answer, its remaining time
 * begins now. With an answer, it can't be carried out any more, and the next look shows its result.
 */
export function endUnderWay(draft: Draft, change: Change, result: ChangeResult): void {
  const entry = draft.state.hold.late.find(
    (known) => known.change === change && known.underWay === true,
  )
  if (entry === undefined) return
  const { now } = draft
  const rest = { ...entry, underWay: false }
  if (result.status === 'unknown') replace(draft, entry, { ...rest, lostAt: now, until: null })
  else if (result.status === 'unchanged') {
    replace(draft, entry, undefined)
    notOurs(draft, entry)
  } else {
    const seen = result.status === 'applied' ? { lackedAt: entry.lackedAt ?? entry.lostAt } : {}
    const refused = result.status === 'rejected' ? { refused: true } : {}
    if (result.status === 'rejected') notOurs(draft, entry)
    replace(draft, entry, { ...rest, ...seen, ...refused, lostAt: now, until: now })
  }
}

/**
 * Handles an answer of `unchanged` or a refusal: the effect that came and went was another client's. After an answer
 * of `applied`, the effect was ours.
 */
export function notOurs(draft: Draft, { change, sight, before }: SentChange | LateChange): void {
  if (change.kind !== 'hold' || sight !== 'gone' || before === undefined || before === 'unknown')
    return
  const { changes } = draft.state.hold
  draft.hold({ changes: [...changes, { ...TAKEN_BACK, to: before, at: draft.now }] })
}

/** The state before a reading. */
interface Before {
  /** The member's work in flight. */
  readonly load: number
  readonly last: DrainState['last']
  /** The last known incarnation of every process. */
  readonly lived: ReadonlyMap<string, string>
}

/**
 * Applies a reading to the changes whose answer was lost: the effect is there, or they can't be carried out any more,
 * because the balancer has answered for longer than it can hold a request.
 */
export function settleLate(draft: Draft, reading: Reading, askedAt: number, before: Before): void {
  for (const entry of draft.state.hold.late) {
    // A look asked for before the effect was known to be missing can show an older state.
    if (askedAt <= Math.max(entry.lostAt, entry.lackedAt ?? entry.lostAt)) continue
    if (!tells(draft, reading)) watch(draft, entry, reading, askedAt)
    else if (isOurs(draft, entry, reading))
      if (entry.refused === true) expired(draft, entry, reading)
      else happened(draft, entry, reading, before)
    else if (entry.until !== null && askedAt >= entry.until) expired(draft, entry, reading)
    else watch(draft, entry, reading, askedAt)
  }
}

/**
 * Whether a reading shows the member's state at all. A reading in which the balancer contradicts itself, or the
 * member is absent or replaced, rules nothing out: one damaged reply would hide a hold.
 */
function tells({ state }: Draft, reading: Reading): boolean {
  if (!reading.present || reading.own === 'unknown') return false
  return isSameIdentity(reading.identity, state.found?.identity)
}

function watch(draft: Draft, entry: LateChange, reading: Reading, askedAt: number): void {
  const bound = entry.until ?? draft.now + draft.policy.capabilities.lateBound
  const until = entry.underWay === true ? null : bound
  const before = seenWithout(draft, reading, entry.change)
  const seen = before === undefined ? {} : { lackedAt: askedAt, before, ...withoutSight(entry) }
  if (before !== undefined) cameAndWent(draft, entry, before)
  replace(draft, entry, { ...entry, until, ...seen })
}

/**
 * Handles a hold whose effect was seen and is gone. In another process it was forgotten, and a state file can bring
 * it back: as after an undo, it is ours in any process except those that show the member without it. In the same
 * process another client has undone it.
 */
function cameAndWent(
  draft: Draft,
  { change, sight }: Pick<SentChange, 'change' | 'sight'>,
  before: AdminState,
): void {
  if (change.kind !== 'hold' || sight !== 'shown') return
  const { state, now } = draft
  const forgotten = anotherIncarnation(state, state.hold.incarnations)
  const changes = noted(state.hold.changes, ownChange(change, 'applied', now))
  draft.hold({
    changes: noted(changes, {
      ...(forgotten ? inAnother(state, before) : TAKEN_BACK),
      to: before,
      at: now,
    }),
    ...(forgotten ? { incarnations: incarnationsOf(state) } : {}),
  })
}

/**
 * What another process shows instead: the state before ours, the first state that we had set, or another client's
 * state.
 */
function inAnother({ found, hold }: DrainState, own: AdminState): Entry {
  if (own === 'ready' || own === found?.own) return { kind: 'restore', state: 'applied' }
  return wasSet(hold.changes, own) ? { kind: 'hold', state: 'applied' } : TAKEN_BACK
}

/** The member's state in a reading, if it lacks a change's effect. */
function seenWithout(draft: Draft, reading: Reading, change: Change): AdminState | undefined {
  if (!tells(draft, reading) || !reading.present || reading.own === 'unknown') return undefined
  return lacksEffect(change, reading.own) ? reading.own : undefined
}

/** The record of a change whose effect came and is gone: it was carried out. */
function withoutSight({ sight }: Pick<LateChange, 'sight'>): Pick<LateChange, 'sight'> {
  return sight === undefined ? {} : { sight: 'gone' }
}

/**
 * Applies a reading to the pending change, which was decided on an older one: it shows whether the effect is there
 * already. The answer can be late by as long as a call can take.
 */
export function followPending(draft: Draft, reading: Reading): void {
  const { pending } = draft.state.hold
  if (pending === null || targetOf(pending.change) === null || !tells(draft, reading)) return
  const before = seenWithout(draft, reading, pending.change)
  if (before !== undefined) {
    cameAndWent(draft, pending, before)
    const cuts = pending.cuts === undefined ? {} : { cuts: loadOf(draft.state) }
    draft.hold({ pending: { ...pending, before, ...withoutSight(pending), ...cuts } })
  } else if (pending.shared !== true && lacksEffect(pending.change, pending.before))
    draft.hold({ pending: { ...pending, sight: pending.sight ?? 'shown' } })
}

/** Records, like a reading, which late changes were not in place after an applied undo: it took them back. */
export function showsWithout(draft: Draft, own: AdminState): void {
  const late = draft.state.hold.late.map((entry) =>
    lacksEffect(entry.change, own)
      ? { ...entry, lackedAt: draft.now, before: own, ...withoutSight(entry) }
      : entry,
  )
  draft.hold({ late })
}

function replace(draft: Draft, entry: LateChange, by: LateChange | undefined): void {
  const late = draft.state.hold.late.flatMap((known) =>
    known === entry ? (by === undefined ? [] : [by]) : [known],
  )
  draft.hold({ late })
}

/**
 * Whether a visible effect came from exactly this change: it was not there before, and no repeat of ours that was
 * confirmed since can have made it.
 */
function isOurs(draft: Draft, entry: LateChange, reading: Reading): boolean {
  const { change, lackedAt, sight } = entry
  if (lackedAt === null || sight === 'gone' || !shows(draft, reading, change)) return false
  const own = reading.present ? reading.own : null
  return !draft.state.hold.changes.some(
    ({ at, state, to }) =>
      at >= lackedAt && state === 'applied' && (to === targetOf(change) || to === own),
  )
}

/**
 * Another run of this process sends a hold, or may have: which of two was carried out does not show, nor who changed what
 * was seen before that.
 */
export function shareHolds(state: DrainState): DrainState {
  const { late, pending } = state.hold
  const share = <T extends LateChange | SentChange>(entry: T): T =>
    entry.change.kind === 'hold' ? { ...entry, shared: true } : entry
  return {
    ...state,
    sighted: null,
    hold: {
      ...state.hold,
      late: late.map(share),
      pending: pending === null ? null : share(pending),
    },
  }
}

/** Whether a reading shows the effect of a change. Absence needs a second look and is decided there. */
function shows(draft: Draft, reading: Reading, change: Change): boolean {
  if (!reading.present) return false
  // If the state is higher than asked for, another client has raised it too.
  if (change.kind === 'hold')
    return draft.state.goal.kind === 'drain'
      ? atLeast(reading.own, change.to)
      : reading.own === change.to
  return change.kind === 'restore' && reading.own === change.to
}

/**
 * Records that a late change of ours was carried out: no other change was seen in between. If something else can have
 * caused the effect (a hold of this process, a client that raised the member further, or the state file of a process
 * that has begun since), the change can still take effect: it stays until it expires.
 */
function happened(
  draft: Draft,
  entry: LateChange,
  reading: Reading,
  { load, last, lived }: Before,
): void {
  const { pending } = draft.state.hold
  const raised = reading.present && reading.own !== targetOf(entry.change)
  const twin = pending !== null && isTwin(pending.change, entry.change)
  const unsure =
    entry.shared === true ||
    twin ||
    raised ||
    (last !== null && anotherIncarnation(draft.state, lived))
  replace(draft, entry, unsure ? { ...entry, lackedAt: null } : undefined)
  const cuts = cutBy(draft.state, draft.policy, entry.change)
  if (cuts !== undefined) countCut(draft, load)
  // The member was seen without the effect: below drain there is only ready.
  const below = targetOf(entry.change) === 'drain' ? 'ready' : 'unknown'
  meetAgain(draft, entry.change, entry.before ?? below)
  confirm(draft, entry.change, 'applied')
  const { goal } = draft.state
  const to = targetOf(entry.change)
  if (goal.kind === 'open' && to !== destination(draft.state, goal))
    draft.set({ goal: ledAway(goal, draft.now) })
  // A lost undo took effect during the next drain: the member must be held again; no other client did it.
  if (entry.change.kind === 'restore') draft.hold({ confirmed: 'none' })
}

/**
 * Adjusts the goal after a late change of ours led the member away from it; no other client did that. A member that
 * was open must be opened again: the wait for the late change can have taken all of the undo's time.
 */
function ledAway(goal: OpenGoal, now: number): OpenGoal {
  const { reached, until } = goal
  const anew = reached !== null && until !== null
  return { ...goal, reached: null, until: anew ? Math.max(until, now + UNDO_LIMIT) : until }
}

/**
 * Handles a late change that can't be carried out any more. If its effect was there all the time, it is not known
 * which client made it.
 */
function expired(draft: Draft, entry: LateChange, reading: Reading): void {
  replace(draft, entry, undefined)
  const known = draft.state.hold.changes
  const to = targetOf(entry.change)
  if (entry.sight === 'gone' || !shows(draft, reading, entry.change)) return
  if (known.some((change) => change.state === 'applied' && change.to === to)) return
  draft.hold({ changes: noted(known, ownChange(entry.change, 'intended', entry.lostAt)) })
}
