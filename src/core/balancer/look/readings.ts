import type { MemberRef, Reading, Snapshot } from '../../../provider/contract.js'
import { refKey } from '../../../provider/member-ref.js'

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
