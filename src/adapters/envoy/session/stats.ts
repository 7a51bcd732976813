import { countOf, parseStatLines } from '../../../kit/envoy/answers.js'
import { sourceOf } from '../codec/answer.js'
import type { StatsMatcher } from '../codec/stats-matcher.js'
import type { AdminLink } from '../../../kit/envoy/admin.js'

/** What is read of a cluster's statistics. */
const STATS = [
  'version_text',
  'update_rejected',
  'update_failure',
  'upstream_rq_active',
  'upstream_rq_total',
  'upstream_rq_pending_active',
  'upstream_cx_active',
  'upstream_cx_total',
  'membership_change',
  'membership_total',
  'membership_healthy',
  'membership_degraded',
  'membership_excluded',
  'lb_healthy_panic',
  'lb_subsets_fallback_panic',
  'redis_cluster.upstream_cx_drained',
]
/** They move whenever a cluster comes, goes or is changed by CDS. */
const CLUSTERS = ['cluster_added', 'cluster_modified', 'cluster_removed']
/** It moves with every change of the runtime, which may set another panic threshold. */
const RUNTIME = 'load_success'
const SERVER = ['parent_connections', 'uptime']
/** How often any worker stood still, by the times of its watchdog. */
const WORKERS = ['watchdog_miss', 'watchdog_mega_miss']

/**
 * With `deferred_stat_options` a cluster has no statistics of traffic before its first request there. This one, which is
 * hidden otherwise, is 0 until then. Envoy 1.39.3, 1.40.0.
 */
const BEGUN = 'ClusterTrafficStats.initialized'
/** Statistics of traffic begin with it. */
const TRAFFIC = 'upstream_'
/** A cluster has them as long as a request holds it. */
const LASTING = ['membership_total', 'membership_change', 'upstream_rq_active']

/** What the statistics of a cluster go by, and which of them are made. */
export interface StatNames {
  readonly stat: string
  /** Undefined: it is not known. */
  readonly shows: StatsMatcher | undefined
}

/** `/stats` of one look, by the clusters' names, whatever names their statistics go by. */
export interface Stats {
  /** Undefined: the proxy does not show it. 0 for traffic of which a cluster has no statistics yet. */
  of(cluster: string, stat: string): number | undefined
  /** Whether it has no statistics any more although they would be shown: no request holds it. */
  isGone(cluster: string): boolean
  versionOf(cluster: string): string | undefined
  server(stat: string): number | undefined
  /** Of all its workers together. */
  workers(stat: string): number | undefined
  /** Another text: the clusters, or the runtime, are not what they were. Undefined: the proxy does not show it. */
  readonly clusters: string | undefined
}

/** @param own - the clusters to ask for */
export async function readStats(
  link: AdminLink,
  from: string,
  own: ReadonlyMap<string, StatNames> = new Map(),
): Promise<Stats> {
  const prefixes = [...own.values()].map(({ stat }) => quoted(stat)).join('|')
  const stats = [...STATS, BEGUN].map(quoted).join('|')
  const filter = [
    `cluster_manager\\.(?:${CLUSTERS.join('|')})`,
    `runtime\\.${RUNTIME}`,
    `server\\.(?:${SERVER.join('|')})`,
    `workers\\.(?:${WORKERS.join('|')})`,
    ...(own.size === 0 ? [] : [`cluster\\.(?:${prefixes})\\.(?:${stats})`]),
  ].join('|')
  const path = `/stats?hidden=include&filter=${encodeURIComponent(`^(?:${filter})$`)}`
  const text = await link.get(path)
  const source = sourceOf('/stats', from)
  const found = parseStatLines(text, source)
  for (const [name, value] of found) {
    if (!name.endsWith('.version_text')) countOf(name, value, source)
  }
  return toStats(found, own)
}

/** The clusters that have requests in flight, by what their statistics go by. */
export async function readBusy(link: AdminLink, from: string): Promise<readonly string[]> {
  const filter = encodeURIComponent('^cluster\\..*\\.upstream_rq_(?:pending_)?active$')
  const text = await link.get(`/stats?filter=${filter}`)
  const busy = [...parseStatLines(text, sourceOf('/stats', from))].filter(
    ([, value]) => value !== '0',
  )
  return [...new Set(busy.map(([name]) => name.replace(BUSY, '$1')))]
}

const BUSY = /^cluster\.(.*)\.upstream_rq_(?:pending_)?active$/

function toStats(found: ReadonlyMap<string, string>, own: ReadonlyMap<string, StatNames>): Stats {
  const count = (name: string): number | undefined => {
    const value = found.get(name)
    return value === undefined ? undefined : Number(value)
  }
  const nameOf = (cluster: string, stat: string): string =>
    `cluster.${own.get(cluster)?.stat ?? ''}.${stat}`
  const shows = (cluster: string, stat: string): boolean =>
    own.get(cluster)?.shows?.(nameOf(cluster, stat)) === true
  const isLacking = (cluster: string, stat: string): boolean =>
    shows(cluster, stat) && !found.has(nameOf(cluster, stat))
  const isThere = (cluster: string): boolean =>
    STATS.some((stat) => found.has(nameOf(cluster, stat)))
  const isDeferred = (cluster: string, stat: string): boolean => {
    if (!stat.startsWith(TRAFFIC)) return false
    const begun = found.get(nameOf(cluster, BEGUN))
    return begun === undefined ? isLacking(cluster, stat) && isThere(cluster) : begun === '0'
  }
  const moves = CLUSTERS.map((name) => found.get(`cluster_manager.${name}`))
  return {
    of: (cluster, stat) =>
      count(nameOf(cluster, stat)) ?? (isDeferred(cluster, stat) ? 0 : undefined),
    isGone: (cluster) => LASTING.some((stat) => isLacking(cluster, stat)),
    versionOf: (cluster) => found.get(nameOf(cluster, 'version_text')),
    server: (stat) => count(`server.${stat}`),
    workers: (stat) => count(`workers.${stat}`),
    clusters: moves.includes(undefined)
      ? undefined
      : [...moves, found.get(`runtime.${RUNTIME}`)].join('/'),
  }
}

/** A name as a regular expression (RE2) that matches it: RE2 refuses a backslash before a letter that is not ASCII. */
export function quoted(name: string): string {
  return name.replace(/[!-/:-@[-^`{-~]/g, '\\$&')
}
