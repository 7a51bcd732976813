import type { Parent, ParentTrace } from '../../../kit/envoy/parent.js'

/** The process that a hot restart has replaced, as one look at its child shows it. */
export interface Previous {
  /** That of the old process where it was seen itself. */
  readonly incarnation: string
  /**
   * - `alive`: it may hold work
   * - `empty`: it holds none, and none can come
   * - `ended`: it is gone
   */
  readonly state: 'alive' | 'empty' | 'ended'
  /** Requests of the clusters asked for that the child counts and has not itself; undefined: not known. */
  readonly active: number | undefined
  readonly note: string
  /** Of the look, by the caller's clock. */
  readonly sampledAt: number
}

/** What its child shows of it at one look. */
export interface PreviousTrace extends ParentTrace {
  /** By cluster: requests that the child counts for it and that none of its own hosts has. */
  readonly active: ReadonlyMap<string, number>
}

/** What the process before a hot restart holds of the clusters asked for. */
export class PreviousWork {
  readonly incarnation: string
  readonly #parent: Parent
  /** Clusters it was seen without work for, after no client could come to it any more. */
  readonly #empty = new Set<string>()

  constructor(incarnation: string, parent: Parent) {
    this.incarnation = incarnation
    this.#parent = parent
  }

  /** @param now - before the child was asked, by the monotonic clock */
  seen(trace: PreviousTrace, now: number, sampledAt: number): Previous {
    const { isEnded, isClosed, isDue, note } = this.#parent.seen(trace, now)
    let left = 0
    for (const [cluster, count] of trace.active) {
      if (isClosed && count === 0) this.#empty.add(cluster)
      // Under load the two figures it is made of are from two moments; what was empty once stays so.
      if (!this.#empty.has(cluster)) left += count
    }
    const isEmpty = isClosed && [...trace.active.keys()].every((name) => this.#empty.has(name))
    const state = isEnded ? 'ended' : isEmpty ? 'empty' : 'alive'
    const isKnown = trace.connections !== undefined && !isDue && Number.isFinite(left)
    const requests = state === 'alive' && isKnown ? ` (up to ${left} requests of its clusters)` : ''
    return {
      incarnation: this.incarnation,
      state,
      active: state !== 'alive' ? 0 : isKnown ? left : undefined,
      note: `${note}${requests}`,
      sampledAt,
    }
  }
}
