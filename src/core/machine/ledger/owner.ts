import { atLeast } from '../../../provider/admin-state.js'
import type { AdminState } from '../../../provider/contract.js'
import { mayBeOurs, targetOf } from './changes.js'
import { anotherIncarnation, type DrainState, type OwnChange } from '../state.js'

/**
 * Why a state is not as wanted:
 *
 * - `unset`: we have not set it yet, or a lost undo of ours came through
 * - `raise`: our first state is there, only the raise above it is not
 * - `forgotten`: the process is not the one that had taken the state
 * - `theirs`: another client set it
 */
export type Cause = 'unset' | 'raise' | 'forgotten' | 'theirs'

/** Why a member under drain is found lower than wanted. */
export function whyLower(state: DrainState, own: AdminState): Cause {
  const { hold, found } = state
  if (mayBeOurs(hold.late, own) && !atLeast(own, 'drain')) return 'unset'
  if (hold.confirmed === 'none') {
    const lowered = found !== null && found.own !== 'unknown' && !atLeast(own, found.own)
    return lowered && hold.changes.length === 0 && !anotherIncarnation(state, hold.incarnations)
      ? 'theirs'
      : 'unset'
  }
  if (atLeast(own, hold.confirmed)) return 'raise'
  // Where a hold came and went while its answer was missing, the ledger says already what another process shows instead.
  const newest = hold.changes.at(-1)
  const mayBeUndo = hold.late.some(({ change }) => change.kind === 'restore')
  const isNoted = newest?.state === 'applied' && newest.to === own && !mayBeUndo
  return isNoted || anotherIncarnation(state, hold.incarnations) ? 'forgotten' : 'theirs'
}

/**
 * Whether a state found while a member is to be opened is ours to undo.
 *
 * - `ours`: we set it, or a change of ours whose answer is missing may have
 * - `unknown`: a change to it was only intended, and it is not known whether it was carried out
 * - `theirs`: another client set it
 *
 * Ready is never ours, unless it is the state that the undo goes back to: an undo of another drain led there, and
 * this one must not close the member again.
 */
export function whoseHold(state: DrainState, own: AdminState): 'ours' | 'unknown' | 'theirs' {
  if (own === 'ready') return 'theirs'
  const { changes, incarnations } = state.hold
  const late = state.hold.late.filter(({ sight }) => sight !== 'gone')
  if (mayBeOurs(late, own)) return 'ours'
  const applied = changes.findLastIndex(isApplied)
  // A state that another client was seen to undo does not come back from a state file: a client that sets it again
  // means it.
  const known = changes.slice(changes.findLastIndex(isTakenBack) + 1)
  const earlier = known.some((change) => isApplied(change) && change.to === own)
  if (earlier && anotherIncarnation(state, incarnations)) return 'ours'
  if (lastInPlace(state) !== undefined) {
    // If a raise above our own state was only intended, both states are ours.
    const raised = [
      ...changes
        .slice(applied)
        .flatMap(({ to, state: known }) => (known === 'unchanged' ? [] : [to])),
      ...late.map(({ change }) => targetOf(change)),
    ]
    return raised.includes(own) ? 'ours' : 'theirs'
  }
  const intended =
    changes.slice(applied + 1).some((change) => change.state === 'intended' && change.to === own) ||
    late.some(({ change }) => targetOf(change) === own)
  return intended ? 'unknown' : 'theirs'
}

/**
 * The state that our newest change led to, unless an undo of ours, or another client's undo that was seen, has
 * removed it.
 */
export function lastInPlace(state: DrainState): AdminState | undefined {
  const { changes } = state.hold
  const applied = changes.findLastIndex(isApplied)
  if (applied < 0 || applied === undoneAt(state)) return undefined
  const takenBack = changes.slice(applied).some(isTakenBack)
  return takenBack ? undefined : (changes[applied]?.to ?? undefined)
}

/** The index of the ledger entry that ends an undo: all changes before it are undone. -1: none. */
export function undoneAt({ hold, found }: DrainState): number {
  return hold.changes.findLastIndex(
    (change) => change.kind === 'restore' && isApplied(change) && change.to === found?.own,
  )
}

/** Whether an entry records that another client was seen to undo ours. */
export function isTakenBack({ kind, state }: OwnChange): boolean {
  return kind === 'restore' && state === 'unchanged'
}

function isApplied(change: OwnChange): boolean {
  return (change.kind === 'hold' || change.kind === 'restore') && change.state === 'applied'
}

/** Whether any change of ours is left to undo. */
export function owesUndo(state: DrainState): boolean {
  const { changes, late, pending } = state.hold
  return (
    pending !== null ||
    late.length > 0 ||
    changes.some((change) => change.state !== 'unchanged' && change.kind !== 'terminate')
  )
}
