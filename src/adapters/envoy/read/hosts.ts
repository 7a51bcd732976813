import type { Health, PoolReading } from '../../../provider/contract.js'
import type { ClusterRows, HostRow } from '../codec/admin.js'
import type { ClusterConfig } from '../codec/config-dump.js'
import type { Assignment, Endpoint } from '../codec/assignment.js'
import { takesWork, type EdsStatus } from '../codec/status.js'
import { NO_GONE, type Gone } from '../session/gone-clusters.js'
import type { ProxyView } from '../session/roster.js'
import type { Stats } from '../session/stats.js'
import type { PanicHost } from './panic.js'

/** The clusters of one look that are fed by a set. */
export function rowsOf(view: ProxyView, service: string): readonly ClusterRows[] {
  return (view.reading?.clusters ?? []).filter((rows) => rows.service === service)
}

/** What clusters that are listed no more may hold of a set. */
export function goneOf(view: ProxyView, service: string): Gone {
  return view.reading?.gone.get(service) ?? NO_GONE
}

/** @param counted - members without a row that Envoy counts as before, see `EndpointStore.countedAsBefore` */
export function plannedHost(
  endpoint: Endpoint,
  rows: ClusterRows | undefined,
  counted: ReadonlySet<string>,
): PanicHost {
  const row = endpoint.member === undefined ? undefined : rows?.hosts.get(endpoint.member)
  const failing = row !== undefined && (row.failedCheck || row.ejected)
  // From not healthy to DRAINING nothing is rebuilt, whether the set or a check said so: Envoy goes on counting it as it
  // did (1.36.2 to 1.40.0; with a failing active check 1.39.3 and 1.40.0).
  const isKept =
    row === undefined
      ? endpoint.member !== undefined && counted.has(endpoint.member)
      : row.eds !== 'DRAINING' && (row.eds === 'UNHEALTHY' || failing)
  return {
    priority: endpoint.priority,
    healthy: takesWork(endpoint.status) && !failing,
    degraded: endpoint.status === 'DEGRADED' || row?.degraded === true,
    excluded: endpoint.status === 'DRAINING' && !isKept,
    weight: endpoint.weight ?? 1,
  }
}

export function rowHost(row: HostRow): PanicHost {
  return {
    priority: row.priority,
    healthy: takesWork(row.eds) && !row.failedCheck && !row.ejected,
    degraded: row.degraded,
    excluded: row.excluded,
    weight: row.weight,
  }
}

export function healthOf(
  status: EdsStatus | undefined,
  rows: readonly (HostRow | undefined)[],
  configs: readonly ClusterConfig[],
  hasAdmin: boolean,
): Health {
  if (status === 'UNHEALTHY' || status === 'TIMEOUT') return 'down'
  if (rows.some((row) => row?.failedCheck === true || row?.ejected === true)) return 'down'
  // Without an admin API it can't be told, now or later.
  if (configs.length === 0) return rows.length === 0 && hasAdmin ? 'unknown' : 'unchecked'
  if (!configs.some((config) => config.activeChecks)) return 'unchecked'
  return rows.length === 0 || rows.includes(undefined) ? 'unknown' : 'up'
}

export function downMembers(views: readonly ProxyView[], service: string): ReadonlySet<string> {
  const down = new Set<string>()
  for (const { hosts } of views.flatMap((view) => rowsOf(view, service))) {
    for (const row of hosts.values()) if (row.failedCheck || row.ejected) down.add(row.member)
  }
  return down
}

export function whenNone(
  set: Assignment,
  configs: readonly ClusterConfig[],
): PoolReading['whenNone'] {
  if (configs.length === 0) return 'unknown'
  const kinds = new Set(
    configs.map((config) => (config.panicThreshold === 0 || config.failOnPanic ? 'refuse' : 'all')),
  )
  const [only] = kinds
  return kinds.size === 1 && only !== undefined ? only : 'unknown'
}

/**
 * Before 1.39.3 only the cluster counts requests that wait for a connection: they may all be waiting
 * for this host if it has a connection without a request, which then may be one that is being made.
 */
export function queuedAt({ cluster, hosts }: ClusterRows, member: string, stats: Stats): number {
  const row = hosts.get(member)
  if (row === undefined) return 0
  if (row.pending !== undefined) return row.pending
  if (row.connections <= row.active) return 0
  return stats.of(cluster, 'upstream_rq_pending_active') ?? 0
}
