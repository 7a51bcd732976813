import type { MemberRef } from '../../../provider/contract.js'
import type { Wanted } from '../read/read.js'
import { refsOf } from '../read/renamed.js'
import { refKey } from '../../../provider/member-ref.js'

/** How long a server counts as watched after a look at it, ms: longer than any pause between two looks of a drain. */
const WATCHED = 3_600_000

/**
 * The servers that drains look at. A look at everything goes to them too, so it must see of them what their own looks
 * see: what an old process holds under another name, and work in the row of another server.
 */
export class Watched {
  readonly #seen = new Map<string, MemberRef & { readonly at: number }>()

  /** The servers that this look is for; those of earlier looks if it is for everything. */
  of(wanted: Wanted | 'all', now: number): Wanted {
    if (wanted !== 'all') {
      for (const ref of refsOf(wanted)) this.#seen.set(refKey(ref), { ...ref, at: now })
      return wanted
    }
    const watched = new Map<string, Set<string>>()
    for (const [key, { pool, member, at }] of this.#seen) {
      if (at < now - WATCHED) this.#seen.delete(key)
      else watched.set(pool, (watched.get(pool) ?? new Set()).add(member))
    }
    return watched
  }
}
