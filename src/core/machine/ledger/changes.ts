import { atLeast } from '../../../provider/admin-state.js'
import type { AdminState, Change } from '../../../provider/contract.js'
import { type DrainState, type LateChange, type OwnChange, type SentChange } from '../state.js'

/** The own state that a change leads to; null where it does not touch the state. */
export function targetOf(change: Change): AdminState | null {
  return change.kind === 'hold' || change.kind === 'restore' ? change.to : null
}

/** A change as the ledger notes it; undefined for what is no change of a member's state or being. */
export function ownChange(
  change: Change,
  state: OwnChange['state'],
  at: number,
): OwnChange | undefined {
  if (change.kind === 'add') return undefined
  return { kind: change.kind, to: targetOf(change), state, at }
}

/** The ledger with one more entry. A repeat of the newest only moves its time: a week of put-backs is one entry. */
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

/** What an entry of the ledger says, without the state and the moment that it says it of. */
export type Entry = Pick<OwnChange, 'kind' | 'state'>

/** Another client was seen to have taken ours back. */
export const TAKEN_BACK: Entry = { kind: 'restore', state: 'unchanged' }

/** Whether a hold of ours led to this state. */
export function wasSet(changes: readonly OwnChange[], own: AdminState): boolean {
  return changes.some(({ kind, to, state }) => kind === 'hold' && to === own && state === 'applied')
}

/** Everything of ours that may be undone, what is still on its way included: what a ticket lists. */
export function ledgerOf(state: DrainState): readonly OwnChange[] {
  const { changes, pending, late } = state.hold
  // One that is in place already adds nothing to undo.
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

/** A change whose answer was lost just now. */
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

/** A change that goes out beside others of which it is not known whether they are still to come. */
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

/** Whether a change of ours that leads to this state may still be carried out, or was just now. */
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
