import type { ClusterRows } from '../codec/admin.js'
import type { StatNames, Stats } from './stats.js'

/** What clusters that CDS has removed may still hold of the members of a set. */
export interface Gone {
  /** Requests, in flight or waiting for a connection; undefined: the proxy does not show it. */
  readonly count: number | undefined
  /** By name. */
  readonly clusters: readonly string[]
  /** One was listed until a moment ago. */
  readonly isFresh: boolean
}

/** No cluster was removed that may hold any. */
export const NO_GONE: Gone = { count: 0, clusters: [], isFresh: false }

/** A worker may still send to a cluster for a moment that the main thread has removed; milliseconds. */
const LAG = 1_000

interface Known extends StatNames {
  /** Undefined: it was removed before it was looked at, and may have taken any set. */
  readonly service: string | undefined
  /** Whether it was seen in the list. */
  readonly wasListed: boolean
  /** Whether its gauges were ever shown. */
  isShown: boolean
  goneSince: number | undefined
}

/** A cluster that takes a set, of any proxy. */
export interface Namesake extends StatNames {
  readonly cluster: string
}

/**
 * Clusters of one process that are listed no more.
 *
 * Envoy forgets a removed cluster and its hosts at once and lets its requests end. Its statistics stay in `/stats` until they
 * have, and go with the last one (Envoy 1.39.3, 1.40.0). Nothing else shows that work.
 */
export class GoneClusters {
  readonly #known = new Map<string, Known>()

  /**
   * Enters a cluster that has work and is in no configuration, by the name of its statistics.
   *
   * @param service - the set that it took by the last configuration that had it, if there was one
   */
  stray(stat: string, service: string | undefined): void {
    this.#enter(stat, service, { stat, shows: undefined }, true)
  }

  /**
   * The removed ones that may hold work of these sets, to be asked for.
   *
   * @param namesakes - what the clusters of a set are called: one that was removed here before it was looked at may have had
   * any of these names. Asked for where no listed cluster takes the set.
   */
  missing(
    services: readonly string[],
    listed: readonly ClusterRows[],
    namesakes: (service: string) => readonly Namesake[],
  ): readonly string[] {
    for (const service of services) {
      if (listed.some((rows) => rows.service === service)) continue
      for (const namesake of namesakes(service)) {
        this.#enter(namesake.cluster, service, namesake, false)
      }
    }
    const there = new Set(listed.map(({ cluster }) => cluster))
    return [...this.#known]
      .filter(
        ([cluster, { service }]) =>
          !there.has(cluster) && (service === undefined || services.includes(service)),
      )
      .map(([cluster]) => cluster)
  }

  /** What the statistics of a removed cluster go by; undefined: it is none. */
  namesOf(cluster: string): StatNames | undefined {
    return this.#known.get(cluster)
  }

  /**
   * What is left, by set, of one look.
   *
   * @param missing - as {@link GoneClusters.missing} said
   * @param namesOf - what the statistics of a listed cluster go by
   * @param now - by the monotonic clock
   */
  seen(
    services: readonly string[],
    listed: readonly ClusterRows[],
    missing: readonly string[],
    stats: Stats,
    namesOf: (cluster: string) => StatNames,
    now: number,
  ): ReadonlyMap<string, Gone> {
    for (const { cluster, service } of listed) {
      const isShown = activeOf(stats, cluster) !== undefined
      const { stat, shows } = namesOf(cluster)
      const known = { service, stat, shows, isShown, wasListed: true, goneSince: undefined }
      this.#known.set(cluster, known)
    }
    const left = new Map<string, Gone>()
    for (const cluster of missing) {
      const known = this.#known.get(cluster)
      if (known === undefined) continue
      const { count, isFresh } = this.#left(cluster, known, stats, now)
      if (count === 0 && !isFresh) continue
      for (const service of known.service === undefined ? services : [known.service]) {
        const before = left.get(service) ?? NO_GONE
        left.set(service, {
          count: added(count, before.count),
          clusters: [...before.clusters, cluster],
          isFresh: isFresh || before.isFresh,
        })
      }
    }
    return left
  }

  #enter(
    cluster: string,
    service: string | undefined,
    { stat, shows }: StatNames,
    isShown: boolean,
  ): void {
    const [name, same] = [...this.#known].find(([, known]) => known.stat === stat) ?? [cluster]
    if (same === undefined) {
      const known = { service, stat, shows, isShown, wasListed: false, goneSince: undefined }
      this.#known.set(name, known)
      return
    }
    // Of one that was listed, nobody knows better which set it took.
    const isSame = same.service === service || (service === undefined && same.wasListed)
    if (!isSame) this.#known.set(name, { ...same, service: undefined })
  }

  #left(
    cluster: string,
    known: Known,
    stats: Stats,
    now: number,
  ): { readonly count: number | undefined; readonly isFresh: boolean } {
    known.goneSince ??= now
    const active = activeOf(stats, cluster)
    known.isShown ||= active !== undefined
    const count = active ?? (known.isShown || stats.isGone(cluster) ? 0 : undefined)
    const isRecent = now - known.goneSince < LAG
    if (count === 0 && !isRecent) this.#known.delete(cluster)
    return { count, isFresh: known.wasListed && isRecent }
  }
}

function added(one: number | undefined, other: number | undefined): number | undefined {
  return one === undefined || other === undefined ? undefined : one + other
}

function activeOf(stats: Stats, cluster: string): number | undefined {
  return added(
    stats.of(cluster, 'upstream_rq_active'),
    stats.of(cluster, 'upstream_rq_pending_active'),
  )
}
