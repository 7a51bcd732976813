import { wallOf, type Clock } from '../provider/clock.js'

/** Since when each member has been held back, for the reason it has now. */
export class Since {
  readonly #clock: Clock
  #known = new Map<string, { readonly reason: string; readonly at: string }>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** What is held back now: a reason that has not changed keeps its time. */
  note(held: Iterable<readonly [string, string]>): void {
    const at = new Date(wallOf(this.#clock)).toISOString()
    const now = new Map<string, { readonly reason: string; readonly at: string }>()
    for (const [key, reason] of held) {
      const before = this.#known.get(key)
      now.set(key, before?.reason === reason ? before : { reason, at })
    }
    this.#known = now
  }

  /** ISO 8601; undefined for what is not held back. */
  of(key: string): string | undefined {
    return this.#known.get(key)?.at
  }
}
