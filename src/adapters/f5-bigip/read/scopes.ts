import type { LoadScope, MemberRef } from '../../../provider/contract.js'
import { refKey } from '../../../provider/member-ref.js'

/**
 * The scopes listed so far for each member. One that was listed stays listed until it has positively
 * ended, so that work seen on a unit is never forgotten because the unit stopped answering.
 */
export class ScopeMemory {
  readonly #known = new Map<string, Map<string, LoadScope>>()

  /**
   * Adds to the scopes read now those that were listed before and are missing now.
   *
   * @param missing - what became of one that is missing: `ended`, or `unread` with the reason
   */
  complete(
    ref: MemberRef,
    now: readonly LoadScope[],
    missing: (scope: LoadScope) => { readonly state: 'unread' | 'ended'; readonly note: string },
  ): readonly LoadScope[] {
    const known = this.#known.get(refKey(ref)) ?? new Map<string, LoadScope>()
    const names = new Set(now.map((scope) => scope.scope))
    const rest = [...known.values()]
      .filter((scope) => !names.has(scope.scope))
      .map((scope) => ({ ...scope, ...missing(scope) }))
    for (const scope of [...now, ...rest]) known.set(scope.scope, scope)
    this.#known.set(refKey(ref), known)
    return [...now, ...rest]
  }

  /** Names of the scopes listed for a member so far. */
  has(ref: MemberRef): boolean {
    return this.#known.has(refKey(ref))
  }
}
