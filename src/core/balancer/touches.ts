/** How many members are remembered that had a claim. */
const MOST = 10_000

/** For each member a count that moves when a claim is laid on it, and when a change of it is answered. */
export class Touches {
  readonly #last = new Map<string, number>()
  #count = 0
  /** The count of the newest member that is not remembered any more: the others may be as new. */
  #forgotten = 0

  of(key: string): number {
    return this.#last.get(key) ?? this.#forgotten
  }

  touch(key: string): void {
    this.#last.delete(key)
    this.#last.set(key, (this.#count += 1))
    const [oldest] = this.#last
    if (this.#last.size <= MOST || oldest === undefined) return
    this.#forgotten = oldest[1]
    this.#last.delete(oldest[0])
  }
}
