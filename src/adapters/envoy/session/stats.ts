import { malformed } from '../../../kit/json.js'
import { quote } from '../../../provider/quote.js'
import { parseStats } from '../codec/admin.js'
import { statName } from '../codec/config-dump.js'
import type { AdminLink } from './admin-client.js'

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
  'lb_subsets_active',
  'lb_subsets_fallback_panic',
]
/** They move whenever a cluster comes, goes or is changed by CDS. */
const CLUSTERS = ['cluster_added', 'cluster_modified', 'cluster_removed']
/** It moves with every change of the runtime, which may set another panic threshold. */
const RUNTIME = 'load_success'
const SERVER = ['parent_connections', 'uptime']

/** `/stats` of one look, by the clusters' names, whatever names their statistics go by. */
export interface Stats {
  /** Undefined: the proxy does not show it. */
  of(cluster: string, stat: string): number | undefined
  versionOf(cluster: string): string | undefined
  server(stat: string): number | undefined
  /** Another text: the clusters, or the runtime, are not what they were. Undefined: the proxy does not show it. */
  readonly clusters: string | undefined
}

export const NO_STATS: Stats = toStats(new Map(), () => '')

/** @param statOf - what the statistics of a cluster go by */
export async function readStats(
  link: AdminLink,
  from: string,
  names: readonly string[],
  statOf: (cluster: string) => string,
): Promise<Stats> {
  const own = new Map(names.map((name) => [name, statOf(name)]))
  const prefixes = [...own.values()].map(quoted).join('|')
  const filter = [
    `cluster_manager\\.(?:${CLUSTERS.join('|')})`,
    `runtime\\.${RUNTIME}`,
    `server\\.(?:${SERVER.join('|')})`,
    ...(names.length === 0 ? [] : [`cluster\\.(?:${prefixes})\\.(?:${STATS.join('|')})`]),
  ].join('|')
  const text = await link.allowed(`/stats?filter=${encodeURIComponent(`^(?:${filter})$`)}`)
  if (text === undefined) return NO_STATS
  const found = parseStats(text, from)
  for (const [name, value] of found) {
    if (name.endsWith('.version_text') || /^\d{1,15}$/.test(value)) continue
    const source = { provider: 'envoy', what: `${from} /stats` }
    throw malformed(source, `a count for ${quote(name, 80)}`, `'${quote(value)}'`)
  }
  return toStats(found, (cluster) => own.get(cluster) ?? statName(cluster))
}

/** The hosts of the largest cluster; 0 where the proxy does not show it. */
export async function readLargest(link: AdminLink, from: string): Promise<number> {
  const filter = encodeURIComponent('^cluster\\..*\\.membership_total$')
  const text = await link.allowed(`/stats?filter=${filter}`)
  const counts = text === undefined ? [] : [...parseStats(text, from).values()]
  return Math.max(0, ...counts.map(Number).filter(Number.isSafeInteger))
}

/** The clusters that have requests in flight, by what their statistics go by. */
export async function readBusy(link: AdminLink, from: string): Promise<readonly string[]> {
  const filter = encodeURIComponent('^cluster\\..*\\.upstream_rq_(?:pending_)?active$')
  const text = await link.allowed(`/stats?filter=${filter}`)
  if (text === undefined) return []
  const busy = [...parseStats(text, from)].filter(([, value]) => value !== '0')
  return [...new Set(busy.map(([name]) => name.replace(BUSY, '$1')))]
}

const BUSY = /^cluster\.(.*)\.upstream_rq_(?:pending_)?active$/

function toStats(found: ReadonlyMap<string, string>, prefix: (cluster: string) => string): Stats {
  const count = (name: string): number | undefined => {
    const value = found.get(name)
    return value === undefined ? undefined : Number(value)
  }
  const moves = CLUSTERS.map((name) => found.get(`cluster_manager.${name}`))
  return {
    of: (cluster, stat) => count(`cluster.${prefix(cluster)}.${stat}`),
    versionOf: (cluster) => found.get(`cluster.${prefix(cluster)}.version_text`),
    server: (stat) => count(`server.${stat}`),
    clusters: moves.includes(undefined)
      ? undefined
      : [...moves, found.get(`runtime.${RUNTIME}`)].join('/'),
  }
}

/** A name as a regular expression (RE2) that matches it: RE2 refuses a backslash before a letter that is not ASCII. */
export function quoted(name: string): string {
  return name.replace(/[!-/:-@[-^`{-~]/g, '\\$&')
}
