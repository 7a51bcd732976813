import { atLeast } from '../../../provider/admin-state.js'
import type { AdminState, Reading } from '../../../provider/contract.js'
import { noted, TAKEN_BACK, targetOf, wasSet, type Entry } from './changes.js'
import type { Draft } from '../draft.js'
import type { Sight } from '../input.js'
import { lastInPlace } from './owner.js'
import {
  anotherIncarnation,
  incarnationsIn,
  incarnationsOf,
  isLetGo,
  type DrainState,
  type LateChange,
} from '../state.js'

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
 *   put-back that could have done it: another client set that. Nothing brings our state back while a process lives.
 */
export function noteForeign(draft: Draft, reading: Reading, askedAt: number, before: Before): void {
  const { state } = draft
  const { hold, found } = state
  if (!reading.present || reading.own === 'unknown' || reading.identity !== found?.identity) return
  if (hold.pending !== null || askedAt <= hold.confirmedAt) return
  const { own, identity, scopes } = reading
  // Handled like a look of another call: nothing is put back.
  if (isLetGo(state)) {
    const incarnations = incarnationsIn(scopes)
    const sight = { own, identity, askedAt, at: draft.now, incarnations }
    draft.set({ hold: seenElsewhere(state, sight).hold })
  } else noteLooked(draft, own, before)
}

/** The state before a reading was taken in. */
interface Before {
  readonly last: DrainState['last']
  /** The last known incarnation of every process: a process that could not be read for a moment is not a new one. */
  readonly lived: ReadonlyMap<string, string>
  /** Changes without an answer, and refused changes that may be half done. */
  readonly late: readonly LateChange[]
}

/** Does the same for a run that still watches its member. */
function noteLooked(draft: Draft, own: AdminState, before: Before): void {
  const { state } = draft
  const set = lastInPlace(state)
  if (set === undefined) return
  const lower = !atLeast(own, set)
  if (!anotherIncarnation(state, state.hold.incarnations)) {
    if (lower) note(draft, takenBack(state, own), own)
  } else if (wasSeenOpen(state, own, before)) {
    if (lower) note(draft, takenBack(state, own), own)
    else note(draft, TAKEN_BACK, 'ready')
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
 * Does the same for a look of another run of this process, most often the call that opened the member. A state set
 * after that is not ours. A run with looks of its own learns from it what happened between two of them: only that the
 * member was found lower in exactly the processes that had taken our state; its own looks show everything else.
 */
// eslint-disable-next-line complexity -- every condition under which another call's look tells nothing
export function seenElsewhere(state: DrainState, sight: Sight): DrainState {
  const { goal, hold, found } = state
  const { own, askedAt, at, incarnations } = sight
  const looks = goal.kind === 'drain' && !isLetGo(state)
  if (hold.changes.length === 0 || hold.pending !== null) return state
  if (askedAt <= hold.confirmedAt || sight.identity !== found?.identity) return state
  const set = lastInPlace(state)
  const lower = set !== undefined && !atLeast(own, set)
  if (looks && !(lower && inSameProcesses(state, incarnations))) return state
  // If the member is open, or as we left it, in a process that had not taken ours, a state set there later does not
  // come from a state file.
  const asLeft = own === set && hold.incarnations !== null && !inSameProcesses(state, incarnations)
  if (!lower && own !== 'ready' && !asLeft) return state
  const back = inSameProcesses(state, incarnations) ? null : broughtBack(state, own)
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

/** Whether these are exactly the processes that had taken our state. */
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
  return last.reading.identity === state.found?.identity && !late.some(mayShowAs(own))
}

/**
 * Whether a change can show as this state: a refused change only as exactly its own state, an unanswered one also as
 * a state on the way to it.
 */
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
