import type { MemberRef, PoolReading, Reading, Snapshot } from '../../../provider/contract.js'
import { DrainableError } from '../../../provider/error.js'
import { formatRef, poolKey, refKey } from '../../../provider/member-ref.js'
import type { Membership } from './balancer.js'
import { hasRead, type SeenLook } from '../look/look.js'
import { readingsOf } from '../look/readings.js'

/** The floor has no place for a member. */
export interface Denial {
  readonly error: DrainableError
  /**
   * False if the look lacks a member that another run took after the look began: whether that one still serves decides,
   * and the next look shows it.
   */
  readonly isFinal: boolean
}

/**
 * The floor of serving members of each pool, for all runs of this process on one balancer. A member that any of them
 * holds, or wants to hold, never counts as serving, whatever a reload did to it.
 */
export class Floor {
  readonly #membership: Pick<Membership, 'others' | 'coming'>
  readonly #down: Map<string, MemberRef>
  readonly #keepReady: number

  /** @param down - the members that this run holds or wants to hold: its stake shows them to others */
  constructor(
    membership: Pick<Membership, 'others' | 'coming'>,
    down: Map<string, MemberRef>,
    keepReady: number,
  ) {
    this.#membership = membership
    this.#down = down
    this.#keepReady = keepReady
  }

  /**
   * Asks whether a member can be taken. If so, its place is taken synchronously, so that no other run can take the
   * same place.
   *
   * @returns why not, or undefined
   */
  ask(reading: Reading, look: SeenLook): Denial | undefined {
    const { ref } = reading
    // Asked again at the first hold: another process can have taken a place since.
    const serves = reading.present && reading.serves
    const { left, unread = 0 } = this.#left(ref, look) ?? {}
    // A member that was not read may still serve.
    if (serves && this.#keepReady > 0 && (left === undefined || left - unread < this.#keepReady))
      return { error: this.#refusal(ref, look.snapshot, left), isFinal: unread === 0 }
    this.#down.set(refKey(ref), ref)
    return undefined
  }

  /** Takes a place without asking: the member is down already, or was allowed before. */
  enter(ref: MemberRef): void {
    this.#down.set(refKey(ref), ref)
  }

  /** Gives the member's place back. */
  withdraw(ref: MemberRef): void {
    this.#down.delete(refKey(ref))
  }

  /** Why the pool of a held member has too few serving members; null if it has enough. */
  broken({ ref }: Reading, look: SeenLook): DrainableError | null {
    const others = this.#membership.others()
    if (this.#keepReady === 0 || others.some((other) => other.down.has(refKey(ref)))) return null
    // A member that was not read has asked the floor itself since the look began, and this one was counted as down.
    const serving = this.#left(ref, look, false)?.left
    if (serving === undefined || serving >= this.#keepReady) return null
    return new DrainableError(
      'POOL_AT_MINIMUM',
      `${formatRef(ref)} is made ready again: another client took another member of ${ref.pool} at the same moment, and ${Math.max(0, serving)} were left serving, keepReady is ${this.#keepReady}`,
      { ref },
    )
  }

  /**
   * Members of the same pools that other runs hold: a look that includes them shows whether they are still counted as
   * serving.
   */
  companions(refs: Iterable<MemberRef>): readonly MemberRef[] {
    const pools = new Set([...refs].map(poolKey))
    const known = new Set([...refs].map(refKey))
    return [...this.#wished()]
      .filter(([key, ref]) => pools.has(poolKey(ref)) && !known.has(key))
      .map(([, ref]) => ref)
  }

  #wished(): ReadonlyMap<string, MemberRef> {
    const all = new Map(this.#down)
    for (const other of this.#membership.others())
      for (const [key, ref] of other.down) all.set(key, ref)
    for (const ref of this.#membership.coming()) all.set(refKey(ref), ref)
    return all
  }

  /**
   * How many members of the pool would be left serving without this one and without those that any run of this
   * process holds, and how many of those the look did not read; undefined if the balancer did not say.
   *
   * @param counted - whether the reading counts this member as serving
   */
  #left(ref: MemberRef, look: SeenLook, counted = true): Left | undefined {
    const key = poolKey(ref)
    const pool = look.snapshot.pools.find((candidate) => poolKey(candidate) === key)
    if (pool === undefined || pool.unknown !== undefined) return undefined
    const readings = readingsOf(look.snapshot)
    let left = pool.serving - (counted ? 1 : 0)
    let unread = 0
    for (const [member, wished] of this.#wished()) {
      if (member === refKey(ref) || poolKey(wished) !== key) continue
      const reading = readings.get(member)
      if (reading?.present === true && reading.serves) left -= 1
      else if (!hasRead(look, wished)) unread += 1
    }
    return { left, unread }
  }

  #refusal(ref: MemberRef, snapshot: Snapshot, left: number | undefined): DrainableError {
    const pool = snapshot.pools.find((candidate) => poolKey(candidate) === poolKey(ref))
    const known =
      left === undefined
        ? `the balancer did not say how many members of ${ref.pool} serve${pool?.unknown === undefined ? '' : ` (${pool.unknown})`}`
        : `${Math.max(0, left)} of ${pool?.total ?? '?'} members of ${ref.pool} would be left serving${left > 0 ? '' : thenOf(pool)}`
    const coming = this.#membership
      .coming()
      .filter((other) => poolKey(other) === poolKey(ref) && refKey(other) !== refKey(ref))
      .map(formatRef)
    const why =
      coming.length === 0
        ? ''
        : ` (the hold of ${coming.join(', ')} has no answer and may still be carried out)`
    const advice =
      (left ?? 0) <= 0 ? 'keepReady: 0 lets the last one go' : 'lower keepReady if that is enough'
    return new DrainableError(
      'POOL_AT_MINIMUM',
      `${formatRef(ref)} was not drained: ${known}${why}, keepReady is ${this.#keepReady}; bring another member up, onMinimum: 'wait' waits for it, ${advice}`,
      { ref },
    )
  }
}

/** What a look says of the serving members of a pool. */
interface Left {
  readonly left: number
  readonly unread: number
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
