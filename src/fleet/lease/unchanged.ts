import type { Clock } from '../../provider/clock.js'

/**
 * How long an entry has stood unchanged, by a contender's own monotonic clock: the times that an entry holds were written
 * by another clock, so they say nothing. Kubernetes' own leader election goes by the same rule.
 */
export class Unchanged {
  #seen: { readonly revision: string | number; readonly since: number } | undefined

  /** Whether this revision has now been seen for `ttl` milliseconds. */
  isOver(revision: string | number, ttl: number, clock: Clock): boolean {
    const now = clock.now()
    if (this.#seen?.revision !== revision) this.#seen = { revision, since: now }
    return now - this.#seen.since >= ttl
  }
}
