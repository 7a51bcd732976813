import { sumOf, type ClusterRows } from '../codec/admin.js'
import type { Stats } from './stats.js'

/**
 * What hosts that a cluster no longer lists may still hold: Envoy forgets them at once, and the cluster goes on counting
 * their work.
 */
export interface Unlisted {
  /** Requests, in flight or waiting for a connection: an upper bound. */
  readonly most: number
  /** Whether it is their number: nothing came and went while it was read. */
  readonly isExact: boolean
}

/** Statistics in the order in which they were read: `now` before the rows, `after` after them. */
export interface Readings {
  readonly before: Stats
  readonly now: Stats
  readonly rows: ClusterRows
  readonly after: Stats
}

/**
 * The cluster's gauge and the rows are of two moments, and under traffic their difference means nothing: the one falls and
 * the other rises in between. So each is bounded: of what the rows show as active, all but what began between `before` and
 * `after` was active at the moment of the gauge too; what the gauge has beyond that may be of hosts that are not listed.
 *
 * The same for connections, which come and go far less often than requests: without a connection there is no request.
 *
 * @returns undefined where the proxy does not show what is needed
 */
export function unlistedOf({ before, now, rows, after }: Readings): Unlisted | undefined {
  const { cluster } = rows
  const bound = (kind: 'rq' | 'cx', listed: number): Unlisted | undefined => {
    const active = now.of(cluster, `upstream_${kind}_active`)
    const first = before.of(cluster, `upstream_${kind}_total`)
    const last = after.of(cluster, `upstream_${kind}_total`)
    if (active === undefined || first === undefined || last === undefined) return undefined
    const begun = Math.max(0, last - first)
    return {
      most: Math.max(0, active - Math.max(0, listed - begun)),
      isExact: begun === 0 && after.of(cluster, `upstream_${kind}_active`) === active,
    }
  }
  const connections = bound('cx', sumOf(rows, 'connections'))
  if (connections?.most === 0) return NOTHING
  const requests = bound('rq', sumOf(rows, 'active'))
  const waiting = now.of(cluster, 'upstream_rq_pending_active')
  if (requests === undefined || waiting === undefined) return undefined
  const most = requests.most + waiting
  return { most, isExact: most === 0 || (requests.isExact && waiting === 0) }
}

/** A worker may still send to a host for a moment that the main thread no longer lists; milliseconds. */
const LAG = 1_000

/** Nothing is left on others. */
export const NOTHING: Unlisted = { most: 0, isExact: true }

interface Kept {
  /** While it stays the same, no host and no cluster came or went. Undefined: that is not shown. */
  readonly mark: string | undefined
  readonly since: number
  /** The least bound since workers know of it. */
  settled: number
}

/**
 * What was bounded once stays so: nothing new comes to hosts that are not listed.
 *
 * A list of hosts alone tells nothing: where CDS changes a cluster or brings it back, and where an endpoint leaves its set
 * and comes back, the rows are those of new objects that count from zero, while the old ones go on with what they have (Envoy
 * 1.39.3, 1.40.0). So a bound holds until the hosts, or the clusters, change.
 */
export class UnlistedBounds {
  readonly #kept = new Map<string, Kept>()

  /** Whether nothing can be left. @param at - of the look, by the monotonic clock */
  isProved(cluster: string, stats: Stats, at: number): boolean {
    return this.#of(cluster, stats, at).settled === 0
  }

  /** The least bound that holds by now. @param stats - read after what was found */
  seen(cluster: string, found: Unlisted, stats: Stats, at: number): Unlisted {
    const before = this.#kept.get(cluster)
    const kept = this.#of(cluster, stats, at)
    // It changed while this look was under way: when, only the next one tells.
    if (before !== undefined && before !== kept) this.#kept.delete(cluster)
    const most = Math.min(kept.settled, found.most)
    if (at - kept.since >= LAG) kept.settled = most
    return { most, isExact: found.isExact || most === 0 }
  }

  #of(cluster: string, stats: Stats, at: number): Kept {
    const changes = stats.of(cluster, 'membership_change')
    const mark = changes === undefined ? undefined : `${stats.clusters} ${changes}`
    let kept = this.#kept.get(cluster)
    if (kept === undefined || mark === undefined || kept.mark !== mark) {
      kept = { mark, since: at, settled: Infinity }
      this.#kept.set(cluster, kept)
    }
    return kept
  }
}
