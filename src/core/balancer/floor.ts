import type { MemberRef, PoolReading, Reading, Snapshot } from '../../provider/contract.js'
import { DrainableError } from '../../provider/error.js'
import { formatRef, poolKey, refKey } from '../../provider/member-ref.js'
import { type Claim, type MemberRecord, newRecord } from '../member/record.js'
import { isDown, takesMember } from '../member/wanted.js'
import { hasRead, readingOf, readingsOf, type SeenLook } from './look/look.js'
import type { Wanted } from './owner.js'

/** The records of one balancer, by member. */
export type Records = ReadonlyMap<string, MemberRecord>

/** Why a member can't be taken. */
export interface Denial {
  readonly error: DrainableError
  /**
   * False if the look lacks a member that another claim took after the look began: whether that one still serves decides,
   * and the next look shows it.
   */
  readonly isFinal: boolean
}

/** What the floor of serving members is asked by. */
export interface FloorAsk {
  readonly records: Records
  readonly look: SeenLook
  readonly keepReady: number
  readonly now: number
  /** Claims that are only asking too, and count for nothing yet. */
  readonly asking?: ReadonlySet<number>
}

/**
 * Whether a member may be taken: serving members of its pool, without it and without those that any claim of this process
 * takes, must be enough. A member that a claim takes never counts as serving, whatever a reload did to it.
 *
 * @returns why not, or undefined
 */
export function askFloor(reading: Reading, ask: FloorAsk): Denial | undefined {
  const { look, keepReady } = ask
  const { ref } = reading
  if (keepReady === 0) return undefined
  const isRead = hasRead(look, ref) // a look of another call can lack the member: the next one tells
  if (isRead && !(reading.present && reading.serves)) return undefined
  const { left, unread = 0 } = leftWithout(ref, ask, true) ?? {}
  // A member that was not read may still serve.
  if (isRead && left !== undefined && left - unread >= keepReady) return undefined
  return { error: refusal(ref, look.snapshot, left, ask), isFinal: isRead && unread === 0 }
}

/** Why the pool of a held member has too few serving members; null if it has enough. */
export function brokenFloor({ ref }: Reading, ask: FloorAsk): DrainableError | null {
  const { keepReady } = ask
  if (keepReady === 0) return null
  // A member that was not read has asked the floor itself since the look began, and this one was counted as down.
  const serving = leftWithout(ref, ask, false)?.left
  if (serving === undefined || serving >= keepReady) return null
  return new DrainableError(
    'POOL_AT_MINIMUM',
    `${formatRef(ref)} is made ready again: another client took another member of ${ref.pool} at the same moment, and ${Math.max(0, serving)} were left serving, keepReady is ${keepReady}`,
    { ref },
  )
}

/** The members of the same pools that claims take: a look with them shows whether they are still counted as serving. */
export function companionsOf(
  records: Records,
  refs: readonly MemberRef[],
  now: number,
): readonly MemberRef[] {
  const pools = new Set(refs.map(poolKey))
  const known = new Set(refs.map(refKey))
  return [...records.values()].flatMap((record) => {
    const { ref } = record
    const isOther = pools.has(poolKey(ref)) && !known.has(refKey(ref))
    return isOther && takesMember(record, now) ? [ref] : []
  })
}

/**
 * How many members of the pool would be left serving, and how many of those that are taken the look did not read; undefined
 * if the balancer did not say.
 *
 * @param counted - whether the reading counts this member as serving
 */
function leftWithout(
  ref: MemberRef,
  { records, look, now, asking }: FloorAsk,
  counted: boolean,
): { readonly left: number; readonly unread: number } | undefined {
  const key = poolKey(ref)
  const pool = look.snapshot.pools.find((candidate) => poolKey(candidate) === key)
  if (pool === undefined || pool.unknown !== undefined) return undefined
  const readings = readingsOf(look.snapshot)
  let left = pool.serving - (counted ? 1 : 0)
  let unread = 0
  for (const [member, record] of records) {
    if (member === refKey(ref) || poolKey(record.ref) !== key) continue
    if (!takesMember(record, now, asking)) continue
    const reading = readings.get(member)
    if (reading?.present === true && reading.serves) left -= 1
    else if (!hasRead(look, record.ref)) unread += 1
  }
  return { left, unread }
}

function refusal(
  ref: MemberRef,
  snapshot: Snapshot,
  left: number | undefined,
  { records, keepReady, now }: FloorAsk,
): DrainableError {
  const pool = snapshot.pools.find((candidate) => poolKey(candidate) === poolKey(ref))
  const known =
    left === undefined
      ? `the balancer did not say how many members of ${ref.pool} serve${pool?.unknown === undefined ? '' : ` (${pool.unknown})`}`
      : `${Math.max(0, left)} of ${pool?.total ?? '?'} members of ${ref.pool} would be left serving${left > 0 ? '' : thenOf(pool)}`
  const coming = [...records.values()]
    .filter((one) => poolKey(one.ref) === poolKey(ref) && refKey(one.ref) !== refKey(ref))
    .filter((one) => takesMember(one, now) && !one.claims.some(isDown))
    .map((one) => formatRef(one.ref))
  const why =
    coming.length === 0
      ? ''
      : ` (the hold of ${coming.join(', ')} has no answer and may still be carried out)`
  const advice =
    (left ?? 0) <= 0 ? 'keepReady: 0 lets the last one go' : 'lower keepReady if that is enough'
  return new DrainableError(
    'POOL_AT_MINIMUM',
    `${formatRef(ref)} was not drained: ${known}${why}, keepReady is ${keepReady}; bring another member up, onMinimum: 'wait' waits for it, ${advice}`,
    { ref },
  )
}

/** What the product does with a pool without serving members, if known. */
function thenOf(pool: PoolReading | undefined): string {
  switch (pool?.whenNone) {
    case 'refuse':
      return ' (it then refuses work)'
    case 'spill':
      return ' (its work then goes elsewhere)'
    case 'all':
      return ' (it then uses every member, drained ones too)'
    default:
      return ''
  }
}

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
