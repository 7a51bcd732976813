import type { MemberRef } from '../provider/contract.js'
import { poolKey, refKey } from '../provider/member-ref.js'

/**
 * Members that are about to be drained, or were a moment ago, and still count as serving in what was
 * read: without them two drains started in one tick would both see room in the pool.
 */
export class Reservations {
  readonly #until = new Map<string, { readonly pool: string; readonly from: number }>()

  /** Reserves a member's place; held until {@link release}. */
  take(ref: MemberRef, now: number): void {
    this.#until.set(refKey(ref), { pool: poolKey(ref), from: now })
  }

  /** The member is read as not serving any more, or stays after all. */
  release(ref: MemberRef): void {
    this.#until.delete(refKey(ref))
  }

  has(ref: MemberRef): boolean {
    return this.#until.has(refKey(ref))
  }

  /** How many members of the pool are reserved. */
  count(pool: { readonly pool: string; readonly balancer?: string }): number {
    const key = poolKey(pool)
    let count = 0
    for (const taken of this.#until.values()) if (taken.pool === key) count += 1
    return count
  }
}
