import { atLeast } from '../../../provider/admin-state.js'
import type { AdminState, Reading } from '../../../provider/contract.js'
import { noted, targetOf } from './changes.js'
import type { Draft } from '../draft.js'
import { lastInPlace } from './owner.js'
import { anotherIncarnation, incarnationsIn, type DrainState, type OwnChange } from '../state.js'

/**
 * Keeps the ledger in step with what others made of the state that we had set, so that it is told apart
 * from the same state set again later, by whomever:
 *
 * - found lower in the same process: another client took ours back. Noted as a restore that found it so
 *   (`unchanged`); what is set after that is theirs.
 * - found lower in another process, but as we had set it before: a state file brought that back, and it is
 *   ours still.
 * - found as we had set it, after a look that saw it open in a process that had forgotten ours, and without a
 *   put-back that could have done it: another client set that. As long as a process lives nothing brings ours back.
 */
export function noteForeign(
  draft: Draft,
  reading: Reading,
  askedAt: number,
  before: DrainState['last'],
): void {
  const { state } = draft
  const { hold, found } = state
  if (!reading.present || reading.own === 'unknown' || reading.identity !== found?.identity) return
  if (hold.pending !== null || askedAt <= hold.confirmedAt) return
  const { own } = reading
  const set = lastInPlace(state)
  if (set === undefined) return
  const another = anotherIncarnation(state, hold.incarnations)
  if (atLeast(own, set)) {
    if (another && wasSeenOpen(state, before)) note(draft, TAKEN_BACK, 'ready')
    return
  }
  const entry = another ? broughtBack(state, own) : takenBack(state, own)
  if (entry !== null) note(draft, entry, own)
}

function note(draft: Draft, entry: Entry, to: AdminState): void {
  const { changes } = draft.state.hold
  draft.hold({ changes: noted(changes, { ...entry, to, at: draft.now }) })
}

/** What another run of this process saw of a member. */
export interface Sight {
  readonly own: AdminState
  readonly identity: string
  readonly askedAt: number
  readonly at: number
  /** Of every process that can hold work for it. */
  readonly incarnations: ReadonlyMap<string, string>
}

/**
 * The same by what another run of this process has seen, most often the call that opened the member. What is found
 * set after that is not ours. A run that looks for itself learns so of what lies between two of its looks: only that
 * it was found lower in the very processes that had taken ours, as its own looks tell apart all else.
 */
// eslint-disable-next-line complexity -- every condition under which another call's look tells nothing
export function seenElsewhere(state: DrainState, sight: Sight): DrainState {
  const { goal, ending, hold, found } = state
  const { own, askedAt, at, incarnations } = sight
  const looks = goal.kind === 'drain' && (ending.ended === null || ending.holding)
  if (hold.changes.length === 0 || hold.pending !== null) return state
  if (askedAt <= hold.confirmedAt || sight.identity !== found?.identity) return state
  const set = lastInPlace(state)
  const lower = set !== undefined && !atLeast(own, set)
  if (lower && takenBack(state, own) === null) return state
  if (looks && !(lower && inSameProcesses(state, incarnations))) return state
  // Where it is open in a process that had not taken ours, no state file has brought ours back there.
  if (!lower && own !== 'ready') return state
  const entry = { kind: 'restore', to: own, state: 'unchanged', at } as const
  return {
    ...state,
    hold: {
      ...hold,
      changes: lower ? noted(hold.changes, entry) : hold.changes,
      incarnations: hold.incarnations === null ? null : incarnations,
    },
  }
}

/** Whether these are the very processes that had taken ours. */
function inSameProcesses({ hold }: DrainState, seen: ReadonlyMap<string, string>): boolean {
  const { incarnations: known } = hold
  return known !== null && [...seen].every(([name, one]) => known.get(name) === one)
}

type Entry = Pick<OwnChange, 'kind' | 'state'>

const TAKEN_BACK: Entry = { kind: 'restore', state: 'unchanged' }

/** Whether the look before saw the member open, later than any answer to us. What a late hold may have set was settled by then. */
function wasSeenOpen(state: DrainState, before: DrainState['last']): boolean {
  const { goal, hold, found } = state
  if (before?.reading.present !== true || before.reading.own !== 'ready') return false
  // A process that has begun since may have ours from a state file.
  if (anotherIncarnation(state, incarnationsIn(before.reading.scopes))) return false
  // An undo counts its looks from the newest one of the drain on.
  const since = goal.kind === 'open' ? hold.confirmedAt - 1 : hold.confirmedAt
  return before.reading.identity === found?.identity && before.askedAt > since
}

function takenBack({ hold }: DrainState, own: AdminState): Entry | null {
  // An undo of ours whose answer is missing may have done that.
  const ours = hold.late.some(({ change }) => change.kind === 'restore' && targetOf(change) === own)
  return ours ? null : TAKEN_BACK
}

function broughtBack({ hold, goal }: DrainState, own: AdminState): Entry | null {
  const known = hold.changes.some(
    ({ kind, to, state }) => kind === 'hold' && to === own && state === 'applied',
  )
  return known && goal.kind === 'drain' ? { kind: 'hold', state: 'applied' } : null
}
