import type { SeenLook } from '../core/balancer/look/look.js'
import type { Wanted } from './wanted.js'

/** When something of ours ended, by member: a look from before that does not show it. */
export class Touched {
  readonly #at = new Map<string, number>()
  readonly #skipped = new Set<string>()

  note(key: string, now: number): void {
    this.#at.set(key, now)
  }

  /** A plan by this look is about to be carried out. */
  begin({ askedAt }: SeenLook): void {
    this.#skipped.clear()
    for (const [key, at] of this.#at) if (at < askedAt) this.#at.delete(key)
  }

  /** Whether a look is too old for a member, which is then left to the next one. */
  isStale(key: string, { look }: Pick<Wanted, 'look'>): boolean {
    const at = this.#at.get(key)
    const isStale = at !== undefined && at >= look.askedAt
    if (isStale) this.#skipped.add(key)
    return isStale
  }

  /** Whether the last plan has left a member to the next look. */
  get hasSkipped(): boolean {
    return this.#skipped.size > 0
  }
}
