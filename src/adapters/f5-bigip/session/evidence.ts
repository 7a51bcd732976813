import type { Clock } from '../../../provider/clock.js'

interface Taken {
  readonly key: string
  readonly at: number
  readonly times: number
}

/**
 * When the pools of a node are read beside the node's own counters, that show nothing: twice for one
 * state and one count of arrivals, at least as far apart as statistics can lag. What comes after that
 * moves the count of arrivals, and the pools are read again.
 */
export class Evidence {
  readonly #freshness: number
  readonly #taken = new Map<string, Taken>()

  constructor(freshness: number) {
    this.#freshness = freshness
  }

  isDue(node: string, key: string, { clock }: { readonly clock: Clock }): boolean {
    const taken = this.#taken.get(node)
    if (taken?.key !== key) return true
    return taken.times < 2 && clock.now() >= taken.at + this.#freshness
  }

  note(node: string, key: string, { clock }: { readonly clock: Clock }): void {
    const known = this.#taken.get(node)
    const times = known?.key === key ? known.times + 1 : 1
    this.#taken.set(node, { key, at: clock.now(), times })
  }
}
