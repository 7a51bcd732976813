import type { ServerInfo } from '../../../kit/envoy/answers.js'

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
export interface ParentTrace {
  /** `isUp`: its listeners are up, and the process before it takes no more connections. */
  readonly age: ServerInfo['uptime'] & { readonly isUp: boolean }
  /** `server.parent_connections`, downstream; undefined: not shown, or not merged. */
  readonly connections: number | undefined
  /** `server.uptime`: when the statistics of the old process were last added, by the uptime of all epochs. */
  readonly mergedAt: number | undefined
  /** By cluster: requests that the child counts for it and that none of its own hosts has. */
  readonly active: ReadonlyMap<string, number>
}

/** A child may take that long until its listeners are up; seconds. */
const START = 60
/** Signals and exits take a moment; milliseconds. */
const MARGIN = 2_000

/**
 * The life of a parent after a hot restart, told from its child alone: its admin API is closed.
 *
 * It goes on with its connections until its child ends it, `--parent-shutdown-time-s` after the child's
 * listeners came up (default 15 minutes). Earlier it is proved empty by the child's statistics: they add
 * those of the parent at every flush (5 s), and `server.uptime` says when that was. Envoy 1.39.3, 1.40.0.
 */
export class Parent {
  readonly incarnation: string
  readonly #epoch: number
  readonly #shutdown: number
  #upSince: number | undefined
  /** Uptime of all epochs at the first look that saw the child's listeners up. */
  #upAt = Infinity
  #ended = false
  /** No client is connected to it, and none can come. */
  #closed = false
  /** Clusters it was seen without work for, after no client could come to it any more. */
  readonly #empty = new Set<string>()

  constructor(incarnation: string, epoch: number, shutdown: number) {
    this.incarnation = incarnation
    this.#epoch = epoch
    this.#shutdown = shutdown
  }

  /** @param now - before the child was asked, by the monotonic clock */
  // eslint-disable-next-line complexity -- the signs of an end, each of which stands alone
  seen(trace: ParentTrace, now: number, sampledAt: number): Previous {
    const { age, connections, mergedAt, active } = trace
    if (age.isUp && this.#upSince === undefined) {
      this.#upSince = now
      this.#upAt = age.all
    }
    // From then on it may have been ended over its work: nothing that it no longer shows has finished.
    const isDue = age.current + 1 >= this.#shutdown / 1_000
    // The first figures may be from before the old listeners closed: a second's rounding included.
    const isGone = mergedAt !== undefined && mergedAt > this.#upAt + 1 && connections === 0
    this.#closed ||= isGone && !isDue
    this.#ended ||= age.isUp && ((isGone && isDue) || this.#isOver(trace, now))
    let left = 0
    for (const [cluster, count] of active) {
      if (this.#closed && count === 0) this.#empty.add(cluster)
      // Under load the two figures it is made of are from two moments; what was empty once stays so.
      if (!this.#empty.has(cluster)) left += count
    }
    const isKnown = connections !== undefined && !isDue && Number.isFinite(left)
    const isEmpty = this.#closed && [...active.keys()].every((name) => this.#empty.has(name))
    const state = this.#ended ? 'ended' : isEmpty ? 'empty' : 'alive'
    return {
      incarnation: this.incarnation,
      state,
      active: state !== 'alive' ? 0 : isKnown ? left : undefined,
      note: this.#words(state, left, connections, now),
      sampledAt,
    }
  }

  #isOver({ age, connections, mergedAt }: ParentTrace, now: number): boolean {
    if (this.#upSince !== undefined && now - this.#upSince >= this.#shutdown + MARGIN) return true
    // A child that was up long before we came.
    const over = this.#shutdown / 1_000 + START
    const merged = mergedAt !== undefined && mergedAt >= age.all - age.current + over
    return age.current >= over && merged && connections === 0
  }

  #words(
    state: Previous['state'],
    active: number,
    connections: number | undefined,
    now: number,
  ): string {
    const what = `the process before a hot restart (epoch ${this.#epoch})`
    if (state === 'ended') return `${what} has ended`
    if (state === 'empty') return `${what} has no work left`
    const left = this.#shutdown - (now - (this.#upSince ?? now))
    const end = `it ends in ${Math.max(0, Math.ceil(left / 1_000))} s at the latest`
    return connections === undefined
      ? `${what} may still hold work, /stats does not tell server.parent_connections; ${end}`
      : `${what} has ${connections} connections and up to ${active} requests; ${end}`
  }
}
