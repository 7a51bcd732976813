/** What was reached, counted: a model that finds nothing must show that it was there. */
export class Figures {
  readonly #counts = new Map<string, number>()

  add(what: string, n = 1): void {
    this.#counts.set(what, (this.#counts.get(what) ?? 0) + n)
  }

  get(what: string): number {
    return this.#counts.get(what) ?? 0
  }

  take(other: Figures): void {
    for (const [what, n] of other.#counts) this.add(what, n)
  }

  /** Names and counts, by name. */
  entries(): readonly (readonly [string, number])[] {
    return [...this.#counts].sort(([a], [b]) => (a < b ? -1 : 1))
  }
}
