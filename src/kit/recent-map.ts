import { systemClock } from '../provider/clock.js'

const SWEEP = 60_000

/** A map that forgets entries that are not used: names that come and go, as pods do, leave nothing behind. */
export class RecentMap<K, V> {
  readonly #now: () => number
  readonly #keep: number
  readonly #entries = new Map<K, { readonly value: V; at: number }>()
  #sweptAt: number

  /**
   * @param now - the monotonic clock, in milliseconds; the real one unless given
   * @param keep - milliseconds after which an entry that was neither read nor written is forgotten
   */
  constructor(now = (): number => systemClock.now(), keep = 3_600_000) {
    this.#now = now
    this.#keep = keep
    this.#sweptAt = now()
  }

  get size(): number {
    return this.#entries.size
  }

  get(key: K): V | undefined {
    const entry = this.#entries.get(key)
    if (entry !== undefined) entry.at = this.#now()
    return entry?.value
  }

  set(key: K, value: V): void {
    const at = this.#now()
    this.#entries.set(key, { value, at })
    const since = at - this.#sweptAt
    if (since < SWEEP) return
    this.#sweptAt = at
    // After a long pause the other entries have not been read yet.
    if (since < this.#keep) this.#sweep(at)
  }

  delete(key: K): void {
    this.#entries.delete(key)
  }

  keys(): K[] {
    return [...this.#entries.keys()]
  }

  #sweep(now: number): void {
    for (const [key, { at }] of this.#entries) {
      if (now - at > this.#keep) this.#entries.delete(key)
    }
  }
}
