import { atLeast } from '../../../provider/admin-state.js'
import type { AdminState, Change } from '../../../provider/contract.js'
import { type DrainState, type LateChange, type OwnChange, type SentChange } from '../state.js'

/** The own state that a change leads to; null if it does not change the state. */
export function targetOf(change: Change): AdminState | null {
  return change.kind === 'hold' || change.kind === 'restore' ? change.to : null
}

/** The ledger entry of a change; undefined for a change that affects neither the member's state nor its existence. */
export function ownChange(
  change: Change,
  state: OwnChange['state'],
  at: number,
): OwnChange | undefined {
  if (change.kind === 'add') return undefined
  return { kind: change.kind, to: targetOf(change), state, at }
}

/** Adds an entry to the ledger. A repeat of the newest only updates its time, so a week of put-backs is one entry. */
export function noted(
  changes: readonly OwnChange[],
  entry: OwnChange | undefined,
): readonly OwnChange[] {
  if (entry === undefined) return changes
  const last = changes.at(-1)
  const repeat =
    last !== undefined &&
    last.kind === entry.kind &&
    last.to === entry.to &&
    entry.state !== 'intended' &&
    (last.state === entry.state || entry.state === 'unchanged')
  return repeat ? [...changes.slice(0, -1), { ...last, at: entry.at }] : [...changes, entry]
}

/** The kind and result of a ledger entry, without its state and time. */
export type Entry = Pick<OwnChange, 'kind' | 'state'>

/** The entry for a change of ours that another client was seen to undo. */
export const TAKEN_BACK: Entry = { kind: 'restore', state: 'unchanged' }

/** Whether a hold of ours led to this state. */
export function wasSet(changes: readonly OwnChange[], own: AdminState): boolean {
  return changes.some(({ kind, to, state }) => kind === 'hold' && to === own && state === 'applied')
}

/** All our changes that can be undone, including pending ones: the list in a ticket. */
export function ledgerOf(state: DrainState): readonly OwnChange[] {
  const { changes, pending, late } = state.hold
  // A late change whose effect is already in place adds nothing to undo.
  const news = late.filter(
    ({ change }, i) =>
      !late.slice(0, i).some((other) => sameChange(other.change, change)) &&
      !changes.some(
        (known) =>
          known.kind === change.kind && known.to === targetOf(change) && known.state === 'applied',
      ),
  )
  const open = [
    ...news.map(({ change, lostAt }) => ({ change, at: lostAt })),
    ...(pending === null ? [] : [{ change: pending.change, at: state.hold.confirmedAt }]),
  ]
  return open.reduce(
    (list, { change, at }) => noted(list, ownChange(change, 'intended', at)),
    changes,
  )
}

/** Makes the record of a change whose answer was just lost. */
export function lateChange(
  { change, before, shared, sight, underWay }: SentChange & Pick<LateChange, 'underWay'>,
  at: number,
): LateChange {
  const lacked = lacksEffect(change, before)
  return {
    change,
    lostAt: at,
    until: null,
    lackedAt: lacked ? at : null,
    ...(lacked && before !== 'unknown' ? { before } : {}),
    ...(shared === true ? { shared } : {}),
    ...(sight === undefined ? {} : { sight }),
    ...(underWay === true ? { underWay } : {}),
  }
}

/** Makes the record of a change that is sent while others may still take effect. */
export function sentChange(
  change: Change,
  before: SentChange['before'],
  late: readonly LateChange[],
): SentChange {
  const twins = late.some((entry) => isTwin(entry.change, change))
  return twins ? { change, before, shared: true } : { change, before }
}

/** Whether two holds lead to the same state. */
export function isTwin(one: Change, other: Change): boolean {
  return one.kind === 'hold' && other.kind === 'hold' && one.to === other.to
}

/** Whether a member in this state shows that the change has not been carried out. */
export function lacksEffect(change: Change, own: AdminState | 'unknown'): boolean {
  const to = targetOf(change)
  if (to === null) return true
  if (own === 'unknown') return false
  return change.kind === 'hold' ? !atLeast(own, to) : own !== to
}

/** Whether a change of ours that leads to this state may still be carried out, or has just been. */
export function mayBeOurs(late: readonly LateChange[], own: AdminState | 'unknown'): boolean {
  return late.some(
    ({ change, lackedAt, sight }) =>
      lackedAt !== null && sight !== 'gone' && targetOf(change) === own,
  )
}

/** Whether two changes ask for the same thing. */
export function sameChange(one: Change, other: Change): boolean {
  return (
    one.kind === other.kind &&
    targetOf(one) === targetOf(other) &&
    (one.kind !== 'restore' || other.kind !== 'restore' || one.expect === other.expect)
  )
}
