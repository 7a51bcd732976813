import type { Health, PoolReading } from '../../../provider/contract.js'
import type { ClusterRows, HostRow } from '../codec/admin.js'
import type { ClusterConfig } from '../codec/config-dump.js'
import type { Assignment } from '../codec/assignment.js'
import { takesWork, type EdsStatus } from '../codec/status.js'
import type { ProxyView } from '../session/roster.js'
import type { Stats } from '../session/stats.js'
import type { PanicHost } from './panic.js'

/** The clusters of one look that are fed by a set. */
export function rowsOf(view: ProxyView, service: string): readonly ClusterRows[] {
  return (view.reading?.clusters ?? []).filter((rows) => rows.service === service)
}

/** A host before a set comes, by its row or by the set that stands. */
interface Before {
  readonly eds: EdsStatus | undefined
  readonly failing: boolean
  readonly degraded: boolean
}

/**
 * The hosts of a proxy as a set would have them, and the priorities that Envoy counts anew for it: where a host takes work
 * that did not, or the other way round. In others one that goes from not healthy to DRAINING goes on counting as it did,
 * whether its set or a check said so (1.36.2 to 1.40.0; with a failing active check 1.39.3 and 1.40.0).
 */
export function plannedHosts(
  { endpoints }: Assignment,
  before: (member: string) => Before | undefined,
): {
  readonly hosts: readonly (PanicHost & { readonly member: string | undefined })[]
  readonly anew: ReadonlySet<number>
} {
  const anew = new Set<number>()
  const planned = endpoints.map((endpoint) => {
    const { member, status, priority, weight = 1 } = endpoint
    const known = member === undefined ? undefined : before(member)
    const { eds = 'HEALTHY', failing = false } = known ?? {}
    const healthy = takesWork(status) && !failing
    if ((takesWork(eds) && !failing) !== healthy) anew.add(priority)
    const degraded = status === 'DEGRADED' || known?.degraded === true
    const isKept = eds !== 'DRAINING' && (!takesWork(eds) || failing)
    return {
      member,
      priority,
      weight,
      healthy,
      degraded,
      isDraining: status === 'DRAINING',
      isKept,
    }
  })
  const hosts = planned.map(({ isDraining, isKept, ...host }) => ({
    ...host,
    excluded: isDraining && (!isKept || anew.has(host.priority)),
  }))
  return { hosts, anew }
}

export function rowBefore({ eds, failedCheck, ejected, degraded }: HostRow): Before {
  return { eds, failing: failedCheck || ejected, degraded }
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

/** What becomes of requests where no endpoint of a set serves: the same in all clusters that it feeds, or it is not known. */
export function whenNone(views: readonly ProxyView[], service: string): PoolReading['whenNone'] {
  const kinds = new Set(
    views.flatMap(({ proxy, reading }) =>
      [...(proxy?.facts?.configs.values() ?? [])]
        .filter((config) => config.service === service)
        .map(({ cluster, panicThreshold, failOnPanic }) => {
          if (reading?.above.get(cluster)?.isNamed === false) return 'spill'
          return panicThreshold === 0 || failOnPanic ? 'refuse' : 'all'
        }),
    ),
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
