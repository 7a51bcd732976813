import type { MemberRef, Reading } from '../../provider/contract.js'
import type { DrainableError } from '../../provider/error.js'
import { refKey } from '../../provider/member-ref.js'
import { newRecord, type Claim, type MemberRecord } from '../member/record.js'
import { isDown } from '../member/wanted.js'
import { askFloor, brokenFloor, type Denial, type FloorAsk } from './floor.js'
import type { SeenLook } from './look/look.js'
import { readingOf } from './look/readings.js'
import type { Wanted } from './owner.js'

/** Why a call can't have the places that it asks for, by member; undefined if it can. */
export function denialOf(
  changes: readonly Wanted[],
  look: SeenLook,
  ask: FloorAsk,
): ((ref: MemberRef) => Denial) | undefined {
  const denials = changes.flatMap(({ change: { ref } }) => {
    const denied = askFloor(readingOf(look.snapshot, ref), ask)
    return denied === undefined ? [] : [[refKey(ref), denied] as const]
  })
  const [first] = denials
  if (first === undefined) return undefined
  const byMember = new Map(denials)
  return (ref) => byMember.get(refKey(ref)) ?? first[1]
}

/** For each claim whose hold is new: whether it left enough. A member that another claim holds too is no news. */
export function floorOf(
  { claims }: MemberRecord,
  reading: Reading,
  askOf: (claim: Claim) => FloorAsk,
): ReadonlyMap<number, DrainableError | null> {
  const fresh = claims.filter((claim) => claim.floor === 'granted' && isDown(claim))
  return new Map(
    fresh.map((claim) => {
      const isShared = claims.some((one) => one !== claim && isDown(one) && one.held)
      return [claim.id, isShared ? null : brokenFloor(reading, askOf(claim))]
    }),
  )
}

/** The members, of those to be taken together, for which there is no place, and why. */
export function shortOf(
  refs: readonly MemberRef[],
  look: SeenLook,
  floor: FloorAsk,
): readonly (Denial & { readonly ref: MemberRef })[] {
  const records = new Map(floor.records)
  const ask = { ...floor, records }
  return refs.flatMap((ref) => {
    const denied = askFloor(readingOf(look.snapshot, ref), ask)
    if (denied !== undefined) return [{ ...denied, ref }]
    const key = refKey(ref)
    records.set(key, reserved(records.get(key) ?? newRecord(ref, 0)))
    return []
  })
}

/** A record whose member is taken, for the count alone. */
function reserved(record: MemberRecord): MemberRecord {
  return { ...record, claims: [...record.claims, RESERVED] }
}

const RESERVED = {
  id: 0,
  goal: { kind: 'drain' },
  held: true,
  ending: { ended: null, holding: true },
} as unknown as Claim
