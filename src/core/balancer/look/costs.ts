/** At least so many looks are compared, and all of this time, in milliseconds. */
const COMPARED = 3
const RECENT = 250

interface Cost {
  readonly at: number
  readonly took: number
}

/**
 * What a look takes at present: the least of the recent ones. A look that waited for a change of ours, or for a
 * processor on a busy machine, does not show the cost of a look.
 */
export class Costs {
  #recent: readonly Cost[] = []

  /**
   * @param at - when the look ended
   * @param took - how long it took, in milliseconds
   */
  add(at: number, took: number): void {
    const kept = this.#recent.filter(
      (cost, index, all) => index > all.length - COMPARED || cost.at > at - RECENT,
    )
    this.#recent = [...kept, { at, took }]
  }

  /** 0 before the first look. */
  get lowest(): number {
    return this.#recent.length === 0 ? 0 : Math.min(...this.#recent.map(({ took }) => took))
  }
}
