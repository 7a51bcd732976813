import type { ClusterRows } from '../codec/admin.js'
import { NO_GONE } from '../session/gone-clusters.js'
import type { ProxyView } from '../session/roster.js'
import type { Unlisted } from '../session/unlisted.js'

/** What a set may hold in one process on hosts that no list shows. */
export interface Left extends Unlisted {
  /** Clusters that may hold some. */
  readonly clusters: readonly string[]
  /** One was removed a moment ago: more may come. */
  readonly isFresh: boolean
  /** A cluster of which that is not known, because the proxy does not show its statistics. */
  readonly hidden: { readonly cluster: string; readonly isRemoved: boolean } | undefined
}

/** @param listed - the clusters of the set to be asked for, beside those that were removed */
export function leftIn(
  { reading }: ProxyView,
  service: string,
  listed: readonly ClusterRows[],
): Left {
  const gone = reading?.gone.get(service) ?? NO_GONE
  const known = listed.map(({ cluster }) => ({ cluster, left: reading?.unlisted.get(cluster) }))
  const busy = known.filter(({ left }) => left !== undefined && left.most > 0)
  const unknown = known.find(({ left }) => left === undefined)?.cluster
  const removed = gone.count === undefined ? (gone.clusters[0] ?? '') : undefined
  const cluster = removed ?? unknown
  return {
    most: busy.reduce((sum, { left }) => sum + (left?.most ?? 0), gone.count ?? 0),
    isExact: busy.every(({ left }) => left?.isExact === true),
    clusters: [...busy.map((one) => one.cluster), ...gone.clusters],
    isFresh: gone.isFresh,
    hidden: cluster === undefined ? undefined : { cluster, isRemoved: removed !== undefined },
  }
}

/** Why what is left can't be told, in words. */
export function hiddenWords({ cluster, isRemoved }: NonNullable<Left['hidden']>): string {
  const what = isRemoved
    ? `cluster ${cluster} may have been removed there while it had work, and what is left is not known`
    : `what the removed endpoint still holds is not known, or what cluster ${cluster} held before it was changed`
  return `${what}: /stats does not tell cluster.${cluster}.upstream_rq_active, or others of its upstream_rq_* and upstream_cx_*; let stats_config.stats_matcher include them`
}

/** Nothing is left. */
export const NONE: Left = {
  most: 0,
  isExact: true,
  clusters: [],
  isFresh: false,
  hidden: undefined,
}

/** What a drained member waits for, in words. */
export function leftWords({ most, clusters, isFresh }: Left, scope: string): string | undefined {
  const names = clusters.join(', ')
  if (most > 0)
    return `up to ${most} requests of cluster ${names} are on no listed endpoint of ${scope}: the cluster was changed or removed, or an endpoint left its set and came back, while they ran`
  return isFresh
    ? `cluster ${names} was removed there a moment ago, and a worker may still send to it`
    : undefined
}
