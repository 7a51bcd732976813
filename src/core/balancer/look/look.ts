import type { MemberRef, Reading, Snapshot } from '../../../provider/contract.js'
import type { DrainableError } from '../../../provider/error.js'
import { refKey } from '../../../provider/member-ref.js'

/** The result of one look: either the snapshot or an error. */
export type Look =
  | (LookTimes & {
      readonly snapshot: Snapshot
      /** The members that it was asked for: one of them that it does not list is absent. */
      readonly refs: readonly MemberRef[] | 'all'
      readonly error?: never
    })
  | (LookTimes & { readonly snapshot?: never; readonly error: DrainableError })

/** A look with a snapshot. */
export type SeenLook = Extract<Look, { readonly snapshot: Snapshot }>

/** Whether a look says what a member is: it was asked for it. */
export function hasRead({ snapshot, refs }: SeenLook, ref: MemberRef): boolean {
  const key = refKey(ref)
  return refs === 'all' || readingsOf(snapshot).has(key) || refs.some((one) => refKey(one) === key)
}

interface LookTimes {
  readonly askedAt: number
  readonly at: number
  /** How long the answer took; 0 for a push. */
  readonly took: number
}

/** A subscriber to looks at some members. */
export interface Subscriber {
  /** Called for each look. */
  readonly refs: () => readonly MemberRef[] | 'all'
  /** Called with every look that included its members. */
  readonly see: (look: Look) => void
  /** When it gives up for good. @default never */
  readonly until?: () => number
  /** Whether it should not keep the process alive. */
  readonly background: boolean
}

const indexes = new WeakMap<Snapshot, ReadonlyMap<string, Reading>>()

/** Keeps an index that was made already: the check of a snapshot goes through all readings. */
export function keepIndex(snapshot: Snapshot, index: ReadonlyMap<string, Reading>): void {
  indexes.set(snapshot, index)
}

/** A snapshot's readings by member; made once per snapshot for all drains. */
export function readingsOf(snapshot: Snapshot): ReadonlyMap<string, Reading> {
  let index = indexes.get(snapshot)
  if (index === undefined) {
    index = new Map(snapshot.readings.map((reading) => [refKey(reading.ref), reading]))
    indexes.set(snapshot, index)
  }
  return index
}

/** The reading of a requested member: a member that is not listed is absent. */
export function readingOf(snapshot: Snapshot, ref: MemberRef): Reading {
  return readingsOf(snapshot).get(refKey(ref)) ?? { ref, present: false, scopes: [] }
}
