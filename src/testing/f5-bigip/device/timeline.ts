/** The counters of one member, as `members/stats` names them. */
export interface Counters {
  readonly curConns: number
  readonly totConns: number
  readonly totRequests: number
  readonly maxConns: number
  readonly depth: number
  readonly curSessions: number
}

/** Nothing was counted yet. */
export const NO_COUNTERS: Counters = {
  curConns: 0,
  totConns: 0,
  totRequests: 0,
  maxConns: 0,
  depth: 0,
  curSessions: 0,
}

/**
 * Counters that are read late: with a lag of n ms the device shows what was true at the last full n
 * ms, as it gathers statistics in rounds.
 */
export class Timeline {
  readonly #lag: number
  #steps: { readonly at: number; readonly counters: Counters }[] = [
    { at: 0, counters: NO_COUNTERS },
  ]

  constructor(lag: number) {
    this.#lag = lag
  }

  /** What is true now. */
  get now(): Counters {
    return this.#steps.at(-1)?.counters ?? NO_COUNTERS
  }

  /** What the device shows now. */
  get shown(): Counters {
    if (this.#lag === 0) return this.now
    const round = Math.floor(performance.now() / this.#lag) * this.#lag
    return this.#steps.findLast((step) => step.at <= round)?.counters ?? NO_COUNTERS
  }

  change(by: Partial<Counters>): void {
    const next = { ...this.now, ...by }
    const counters = { ...next, maxConns: Math.max(next.maxConns, next.curConns) }
    const at = performance.now()
    const first = this.#steps.findLastIndex((step) => step.at < at - 2 * this.#lag)
    this.#steps = [...this.#steps.slice(Math.max(0, first)), { at, counters }]
  }

  /** As after a restart of the traffic processes. */
  reset(): void {
    this.#steps = [{ at: 0, counters: NO_COUNTERS }]
  }
}
