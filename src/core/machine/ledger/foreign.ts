import { atLeast } from '../../../provider/admin-state.js'
import type { AdminState, Reading } from '../../../provider/contract.js'
import { noted, TAKEN_BACK, targetOf, wasSet, type Entry } from './changes.js'
import type { Draft } from '../draft.js'
import type { Sight } from '../input.js'
import { lastInPlace } from './owner.js'
import {
  anotherIncarnation,
  incarnationsOf,
  isLetGo,
  type DrainState,
  type LateChange,
} from '../state.js'
import { isSameIdentity } from '../../../provider/member-ref.js'

/**
 * Records what other clients did to a state that we had set, so that it can be told from the same state set again
 * later by another client:
 *
 * - found lower in the same process: another client undid ours. Recorded as an `unchanged` restore; a state set after
 *   that is theirs.
 * - found lower in another process, but as we had set it before: a state file brought that back, and it is still
 *   ours.
 * - found as we had set it last in another process: ours there too. A higher state there is theirs, even if we had
 *   set that before.
 * - found as we had set it, after a look that saw it open in a process that had forgotten ours, and without a
 *   put-back that could have done it: another client set that. As long as a process lives nothing brings ours back.
 *   So it is where another run of this process saw that.
 */
export function noteForeign(draft: Draft, reading: Reading, askedAt: number, before: Before): void {
  const { state } = draft
  const { hold, found } = state
  if (!reading.present || reading.own === 'unknown') return
  if (!isSameIdentity(reading.identity, found?.identity)) return
  if (hold.pending !== null || askedAt <= hold.confirmedAt) return
  const { own, identity } = reading
  // Handled like a look of another call: nothing is put back.
  if (isLetGo(state)) {
    const incarnations = incarnationsOf(state)
    const sight = { own, identity, askedAt, at: draft.now, incarnations }
    draft.set({ hold: seenElsewhere(state, sight).hold })
  } else noteLooked(draft, own, askedAt, before)
}

/** The state before a reading was taken in. */
interface Before {
  readonly last: DrainState['last']
  /** The last known incarnation of every process: a process that could not be read for a moment is not a new one. */
  readonly lived: ReadonlyMap<string, string>
  /** Changes without an answer, and refused changes that may be half done. */
  readonly late: readonly LateChange[]
}

/** The same of a run that looks after its member. */
function noteLooked(draft: Draft, own: AdminState, askedAt: number, before: Before): void {
  const { state } = draft
  const { sighted, hold } = state
  const isOlder = sighted !== null && askedAt > sighted.at
  if (isOlder) draft.set({ sighted: null })
  const set = lastInPlace(state)
  if (set === undefined) return
  const isSame = !anotherIncarnation(state, hold.incarnations)
  const open = !isSame && wasSeenOpen(state, own, before)
  const was = isOlder && wasLower(state, sighted, own, before) ? sighted.own : open ? 'ready' : null
  noteFound(draft, own, { set, isSame, was })
}

/** What is known of a member that is found in a state. */
interface Known {
  /** Where our newest change led. */
  readonly set: AdminState
  /** Whether the processes that had taken that are still there, and no other. */
  readonly isSame: boolean
  /** The lower state that it was seen in last, in the processes that are there now, and that no change of ours has raised; null: none. */
  readonly was: AdminState | null
}

function noteFound(draft: Draft, own: AdminState, { set, isSame, was }: Known): void {
  const { state } = draft
  const lower = !atLeast(own, set)
  if (was !== null && !lower) note(draft, broughtBack(state, was) ?? TAKEN_BACK, was)
  else if (isSame || was !== null) {
    if (lower) note(draft, takenBack(state, own), own)
  } else if (lower) {
    const entry = broughtBack(state, own)
    if (entry !== null) note(draft, entry, own)
  } else if (own === set) draft.hold({ incarnations: incarnationsOf(state) })
}

function note(draft: Draft, entry: Entry, to: AdminState): void {
  const { changes } = draft.state.hold
  draft.hold({ changes: noted(changes, { ...entry, to, at: draft.now }) })
}

/**
 * The same by what another run of this process has seen, most often the call that opened the member. What is found
 * set after that is not ours. A run that looks for itself learns so of what lies between two of its looks. Found lower in
 * the very processes that had taken ours, it was taken back; found lower in another one, its own next look tells more.
 */
// eslint-disable-next-line complexity -- every condition under which another call's look tells nothing
export function seenElsewhere(state: DrainState, sight: Sight): DrainState {
  const { goal, hold, found } = state
  const { own, askedAt, at } = sight
  if (hold.changes.length === 0 || hold.pending !== null) return state
  if (askedAt <= hold.confirmedAt || !isSameIdentity(sight.identity, found?.identity)) return state
  const incarnations = withKnown(state, sight.incarnations)
  const isSame = inSameProcesses(state, incarnations)
  const set = lastInPlace(state)
  const lower = set !== undefined && !atLeast(own, set)
  if (goal.kind === 'drain' && !isLetGo(state) && !(lower && isSame)) {
    const tells = lower && hold.incarnations !== null
    return tells ? { ...state, sighted: { ...sight, incarnations } } : state
  }
  // Where it is open, or as we left it, in a process that had not taken ours, what is set there later comes from no
  // state file.
  const asLeft = own === set && hold.incarnations !== null && !isSame
  if (!lower && own !== 'ready' && !asLeft) return state
  const back = isSame ? null : broughtBack(state, own)
  const entry = { ...(back ?? takenBack(state, own)), to: own, at }
  return {
    ...state,
    hold: {
      ...hold,
      changes: lower ? noted(hold.changes, entry) : hold.changes,
      incarnations: hold.incarnations === null ? null : incarnations,
    },
  }
}

/** A process that could not be read just then is what this run has read it as last. */
function withKnown(
  state: DrainState,
  seen: ReadonlyMap<string, string>,
): ReadonlyMap<string, string> {
  const known = incarnationsOf(state)
  return new Map([...seen].map(([name, one]) => [name, one === '' ? (known.get(name) ?? '') : one]))
}

/** Whether these are the very processes that had taken ours. */
function inSameProcesses({ hold }: DrainState, seen: ReadonlyMap<string, string>): boolean {
  const { incarnations: known } = hold
  return known !== null && [...seen].every(([name, one]) => known.get(name) === one)
}

/**
 * Whether the look before saw the member open in the present processes, and no unanswered or refused change of ours
 * can have led to the present state.
 */
function wasSeenOpen(state: DrainState, own: AdminState, { last, lived, late }: Before): boolean {
  if (last?.reading.present !== true || last.reading.own !== 'ready' || own === 'ready')
    return false
  // A process that has begun since can have our state from a state file.
  if (anotherIncarnation(state, lived)) return false
  return isSameIdentity(last.reading.identity, state.found?.identity) && !late.some(mayShowAs(own))
}

/**
 * Whether another run of this process saw the member lower than it is now, in the processes that are there now, and no
 * change of ours can have made it what it is since.
 */
function wasLower(
  state: DrainState,
  sight: Sight,
  own: AdminState,
  { late }: Pick<Before, 'late'>,
): boolean {
  if (sight.askedAt <= state.hold.confirmedAt || atLeast(sight.own, own)) return false
  return !anotherIncarnation(state, sight.incarnations) && !late.some(mayShowAs(own))
}

/** Whether a change may show as a state: one that was refused as its very own, one without an answer as one on the way, too. */
function mayShowAs(own: AdminState): (late: LateChange) => boolean {
  return ({ change, refused }) => {
    const to = targetOf(change) ?? 'none'
    return refused === true ? to === own : atLeast(to, own)
  }
}

/**
 * The entry for a state that was undone: an unanswered undo of ours can have done it too; either way our state is
 * gone.
 */
function takenBack({ hold }: DrainState, own: AdminState): Entry {
  const ours = hold.late.some(({ change }) => change.kind === 'restore' && targetOf(change) === own)
  return ours ? { kind: 'restore', state: 'applied' } : TAKEN_BACK
}

function broughtBack({ hold, goal }: DrainState, own: AdminState): Entry | null {
  return wasSet(hold.changes, own) && goal.kind === 'drain'
    ? { kind: 'hold', state: 'applied' }
    : null
}
