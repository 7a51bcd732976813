import type { ClusterRows } from '../codec/admin.js'
import type { Stats } from './stats.js'

/** What clusters that CDS has removed may still hold of the members of a set. */
export interface Gone {
  /** Requests, in flight or waiting for a connection; undefined: the proxy does not show it. */
  readonly count: number | undefined
  /** By name. */
  readonly clusters: readonly string[]
}

/** No cluster was removed that may hold any. */
export const NO_GONE: Gone = { count: 0, clusters: [] }

/** Why what is left can't be told, in words. */
export function hiddenGone({ clusters }: Gone): string {
  return `cluster ${clusters.join(', ')} was removed while it may have had work, and /stats does not tell cluster.${clusters[0] ?? ''}.upstream_rq_active: what is left is not known`
}

/** A worker may still send to a cluster for a moment that the main thread has removed; milliseconds. */
const LAG = 1_000

interface Known {
  /** Undefined: it was removed before it was looked at, and may have taken any set. */
  readonly service: string | undefined
  /** What its statistics go by. */
  readonly stat: string
  /** Whether its gauges were ever shown. */
  isShown: boolean
  goneSince: number | undefined
}

/**
 * Clusters of one process that are listed no more.
 *
 * Envoy forgets a removed cluster and its hosts at once and lets its requests end. Its gauges stay in `/stats` until they have
 * (Envoy 1.39.3, 1.40.0). Where another cluster takes the same set, nothing else shows that work.
 */
export class GoneClusters {
  readonly #known = new Map<string, Known>()

  /** Enters a cluster that has work and is in no configuration, by the name of its statistics. */
  stray(stat: string): void {
    const isKnown = [...this.#known.values()].some((known) => known.stat === stat)
    if (!isKnown) {
      this.#known.set(stat, { service: undefined, stat, isShown: true, goneSince: undefined })
    }
  }

  /** The removed ones that may hold work of these sets, to be asked for. */
  missing(services: readonly string[], listed: readonly ClusterRows[]): readonly string[] {
    const there = new Set(listed.map(({ cluster }) => cluster))
    return [...this.#known]
      .filter(
        ([cluster, { service }]) =>
          !there.has(cluster) && (service === undefined || services.includes(service)),
      )
      .map(([cluster]) => cluster)
  }

  /** What the statistics of a removed cluster go by; undefined: it is none. */
  statOf(cluster: string): string | undefined {
    return this.#known.get(cluster)?.stat
  }

  /**
   * What is left, by set, of one look.
   *
   * @param missing - as {@link GoneClusters.missing} said
   * @param statOf - what the statistics of a listed cluster go by
   * @param now - by the monotonic clock
   */
  seen(
    services: readonly string[],
    listed: readonly ClusterRows[],
    missing: readonly string[],
    stats: Stats,
    statOf: (cluster: string) => string,
    now: number,
  ): ReadonlyMap<string, Gone> {
    for (const { cluster, service } of listed) {
      const isShown = activeOf(stats, cluster) !== undefined
      this.#known.set(cluster, { service, stat: statOf(cluster), isShown, goneSince: undefined })
    }
    const left = new Map<string, Gone>()
    for (const cluster of missing) {
      const known = this.#known.get(cluster)
      const count = known === undefined ? 0 : this.#left(cluster, known, stats, now)
      if (count === 0) continue
      for (const service of known?.service === undefined ? services : [known.service]) {
        const before = left.get(service) ?? NO_GONE
        left.set(service, {
          count: added(count, before.count),
          clusters: [...before.clusters, cluster],
        })
      }
    }
    return left
  }

  #left(cluster: string, known: Known, stats: Stats, now: number): number | undefined {
    known.goneSince ??= now
    const active = activeOf(stats, cluster)
    known.isShown ||= active !== undefined
    // Gauges that were shown and are not any more have gone with the last request.
    const count = active ?? (known.isShown ? 0 : undefined)
    if (count === 0 && now - known.goneSince >= LAG) this.#known.delete(cluster)
    return count
  }
}

function added(one: number | undefined, other: number | undefined): number | undefined {
  return one === undefined || other === undefined ? undefined : one + other
}

function activeOf(stats: Stats, cluster: string): number | undefined {
  const active = stats.of(cluster, 'upstream_rq_active')
  return active === undefined
    ? undefined
    : active + (stats.of(cluster, 'upstream_rq_pending_active') ?? 0)
}
