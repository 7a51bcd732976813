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
  /** `membership_change`: while it stays the same, no host was listed and left out again. Undefined: not shown. */
  readonly changes: number | undefined
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
  const bound = (kind: 'rq' | 'cx', listed: number): Bound | undefined => {
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
  const moved = (stats: Stats): number | undefined => stats.of(cluster, 'membership_change')
  const changes = moved(before) === moved(after) ? moved(after) : undefined
  const connections = bound('cx', sumOf(rows, 'connections'))
  if (connections?.most === 0) return { most: 0, isExact: true, changes }
  const requests = bound('rq', sumOf(rows, 'active'))
  const waiting = now.of(cluster, 'upstream_rq_pending_active')
  if (requests === undefined || waiting === undefined) return undefined
  const most = requests.most + waiting
  return { most, isExact: most === 0 || (requests.isExact && waiting === 0), changes }
}

interface Bound {
  readonly most: number
  readonly isExact: boolean
}

/** A worker may still send to a host for a moment that the main thread no longer lists; milliseconds. */
const LAG = 1_000

/** Nothing is left on others. */
export const NOTHING: Pick<Unlisted, 'most' | 'isExact'> = { most: 0, isExact: true }

/** What was bounded once stays so: nothing new comes to hosts that are not listed. */
export class UnlistedBounds {
  readonly #kept = new Map<string, Kept>()

  /** @param at - of the look, by the monotonic clock */
  seen(cluster: string, found: Unlisted | undefined, at: number): void {
    if (found === undefined) {
      this.#kept.delete(cluster)
      return
    }
    const { changes } = found
    const before = this.#kept.get(cluster)
    const same = changes !== undefined && before?.changes === changes ? before : undefined
    const since = same?.since ?? at
    const isSettled = changes !== undefined && at - since >= LAG
    const most = Math.min(same?.settled ?? Infinity, found.most)
    this.#kept.set(cluster, {
      changes,
      since,
      settled: isSettled ? most : Infinity,
      now: { most, isExact: found.isExact || most === 0 },
    })
  }

  of(cluster: string): Pick<Unlisted, 'most' | 'isExact'> | undefined {
    return this.#kept.get(cluster)?.now
  }

  clear(): void {
    this.#kept.clear()
  }
}

interface Kept {
  readonly changes: number | undefined
  readonly since: number
  readonly settled: number
  readonly now: Pick<Unlisted, 'most' | 'isExact'>
}

/**
 * Of which clusters it is proved that hosts that are not listed hold nothing.
 *
 * A list of hosts tells nothing of that: where CDS changes a cluster or brings it back, and where an endpoint leaves its
 * set and comes back, the rows are those of new objects that count from zero, while the old ones go on with what they
 * have (Envoy 1.39.3, 1.40.0). So it is proved anew whenever the hosts, or the clusters, have changed.
 */
export class ProvedClusters {
  readonly #known = new Map<
    string,
    { readonly mark: string; readonly since: number; proved: boolean }
  >()

  /** @param at - of the look, by the monotonic clock */
  isProved(cluster: string, stats: Stats, at: number): boolean {
    const mark = markOf(cluster, stats)
    const known = this.#known.get(cluster)
    if (known?.mark === mark) return known.proved
    this.#known.set(cluster, { mark, since: at, proved: false })
    return false
  }

  /** What was found of one that is not proved yet. */
  found(cluster: string, { most }: Unlisted, after: Stats, at: number): void {
    const known = this.#known.get(cluster)
    if (known?.mark === markOf(cluster, after)) known.proved = most === 0 && at - known.since >= LAG
  }
}

function markOf(cluster: string, stats: Stats): string {
  return `${stats.clusters} ${stats.of(cluster, 'membership_change')}`
}
