import type { LoadScope, MemberRef } from '../../../provider/contract.js'
import { refKey } from '../../../provider/member-ref.js'

/** A member that nobody looked at for that long is forgotten: the next drain of it is another one, ms. */
const FORGET = 60_000
/** A member under drain is looked at again within that time, whatever its cadence, ms. */
const LOOKED_AT = 2_000
/** Ended scopes that are still listed for a member: reloads must not pile up for ever. */
const ENDED_KEPT = 8

/**
 * Which scopes were listed for which member: a scope once listed stays listed until it is positively
 * ended, also when the member itself has gone.
 */
export class ScopeMemory {
  readonly #listed = new Map<string, Map<string, LoadScope>>()
  readonly #lookedAt = new Map<string, number>()

  /** Begins a look at some members. */
  look(refs: readonly MemberRef[], now: number): void {
    for (const [key, at] of this.#lookedAt) {
      if (now - at <= FORGET) continue
      this.#lookedAt.delete(key)
      this.#listed.delete(key)
    }
    for (const ref of refs) this.#lookedAt.set(refKey(ref), now)
  }

  /** Whether that scope was ever listed for that member. */
  knows(ref: MemberRef, scope: string): boolean {
    return this.#listed.get(refKey(ref))?.has(scope) === true
  }

  /**
   * Whether that scope held no work in the last reading of any member that is being looked at. One that
   * nobody looks at any more (its drain is over, it serves again) says nothing new and must not count.
   */
  isSettled(scope: string): boolean {
    const newest = Math.max(...this.#lookedAt.values())
    return [...this.#listed].every(([key, scopes]) => {
      if ((this.#lookedAt.get(key) ?? -Infinity) < newest - LOOKED_AT) return true
      const last = scopes.get(scope)
      return last === undefined || (last.state === 'read' && last.active + last.queued === 0)
    })
  }

  /** Whether that scope is listed for any member. */
  isListed(scope: string): boolean {
    return [...this.#listed.values()].some((scopes) => scopes.has(scope))
  }

  /**
   * The scopes of one reading: those seen now, and those listed before that were not seen.
   *
   * @param ended - whether a scope that was not seen is known to be gone
   */
  complete(
    ref: MemberRef,
    seen: readonly LoadScope[],
    ended: (scope: string) => boolean,
    keep: boolean,
  ): readonly LoadScope[] {
    const known = this.#listed.get(refKey(ref))
    const names = new Set(seen.map(({ scope }) => scope))
    const rest = [...(known?.values() ?? [])]
      .filter(({ scope }) => !names.has(scope))
      .map((last): LoadScope => {
        const state = last.state === 'ended' || ended(last.scope) ? 'ended' : 'unread'
        return { ...last, state }
      })
    const all = [...seen, ...rest]
    const surplus = new Set(rest.filter(({ state }) => state === 'ended').slice(0, -ENDED_KEPT))
    const scopes = all.filter((scope) => !surplus.has(scope))
    if (keep) this.#listed.set(refKey(ref), new Map(scopes.map((scope) => [scope.scope, scope])))
    return scopes
  }
}
