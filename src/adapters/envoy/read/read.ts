import type {
  Health,
  LoadScope,
  PoolReading,
  PresentReading,
  Reading,
} from '../../../provider/contract.js'
import { refKey } from '../../../provider/member-ref.js'
import type { Assignment, Endpoint } from '../codec/assignment.js'
import type { ClusterConfig, ClusterRows, HostRow } from '../codec/admin.js'
import type { ProxyView } from '../session/session.js'
import { panickedPriorities, type PanicHost } from './panic.js'
import type { Wanted } from '../provider.js'
import type { Proxy, ProxyFacts } from '../session/proxy.js'
import type { EndpointSink } from '../sources/sink.js'
import { takesWork, toAdminState, type EdsStatus } from '../codec/status.js'
import type { EndpointStore } from '../sources/store.js'

const MERGE_WINDOW = 1_000
const CONNECT_TIMEOUT = 5_000
/** Timers of a busy proxy come late. */
const MARGIN = 100

export interface LensOptions {
  readonly store: EndpointStore
  readonly sink: EndpointSink
  readonly now: () => number
  readonly mergeWindow: number | undefined
  readonly connectTimeout: number | undefined
}

/** What a member's work and state are, put together from the store, the receipts and the proxies. */
export class ClusterLens {
  readonly #options: LensOptions
  /** Cluster name by endpoint set, where exactly one cluster is fed by it. */
  readonly #pools = new Map<string, string>()

  constructor(options: LensOptions) {
    this.#options = options
  }

  /** Which set feeds which cluster; a set may also be called by its own name. */
  services(proxies: readonly Proxy[]): ReadonlyMap<string, string> {
    const services = new Map<string, string>()
    const clusters = new Map<string, Set<string>>()
    for (const proxy of proxies) {
      for (const { cluster, service } of proxy.facts?.configs?.values() ?? []) {
        services.set(cluster, service)
        clusters.set(service, (clusters.get(service) ?? new Set()).add(cluster))
      }
    }
    for (const [service, names] of clusters) {
      const [only] = names
      if (names.size === 1 && only !== undefined) this.#pools.set(service, only)
      else this.#pools.delete(service)
    }
    return services
  }

  poolOf(service: string): string {
    return this.#pools.get(service) ?? service
  }

  connectTimeout(facts: readonly ProxyFacts[]): number {
    const known = facts.flatMap(({ configs }) =>
      [...(configs?.values() ?? [])].map((config) => config.connectTimeout),
    )
    return this.#options.connectTimeout ?? Math.max(CONNECT_TIMEOUT, ...known)
  }

  reading(
    { ref, service, member }: Wanted,
    views: readonly ProxyView[],
    clockOffset: number,
    seen: Map<string, ReadonlyMap<string, number>>,
  ): Reading {
    const endpoint = this.#options.store.endpoint(service, member)
    const key = refKey(ref)
    if (endpoint === undefined) {
      const last = seen.get(key)
      if (last === undefined) return { ref, present: false, scopes: [] }
      const scopes = views.flatMap((view) => this.#orphans(view, service, member, last) ?? [])
      return { ref, present: false, scopes }
    }
    const scopes = this.#scopes(views, service, member, endpoint, clockOffset)
    const before = seen.get(key)
    // What was not read may be any number; the last one that was read is no less than nothing.
    const active = ({ scope, state, active }: LoadScope): number =>
      state === 'unread' ? (before?.get(scope) ?? Infinity) : active
    seen.set(key, new Map(scopes.map((scope) => [scope.scope, active(scope)])))
    return this.#present({ ref, service, member }, endpoint, views, scopes)
  }

  pool(pool: string, service: string, views: readonly ProxyView[]): PoolReading | undefined {
    const set = this.#options.store.set(service)
    if (set === undefined) return undefined
    const down = downMembers(views, service)
    const serving = set.endpoints.filter(
      ({ member, status }) => takesWork(status) && (member === undefined || !down.has(member)),
    )
    return {
      pool,
      serving: serving.length,
      total: set.endpoints.length,
      whenNone: whenNone(set, this.configs(views, service)),
    }
  }

  /** The cluster settings of every proxy that can be read. */
  configs(views: readonly ProxyView[], service: string): ClusterConfig[] {
    return views.flatMap(({ proxy }) =>
      [...(proxy?.facts?.configs?.values() ?? [])].filter((config) => config.service === service),
    )
  }

  /** Hosts in words a person needs, where this set would put a proxy's cluster into panic. */
  panic(set: Assignment, views: readonly ProxyView[], member: string): PanicVerdict | undefined {
    const priority = this.#options.store.endpoint(set.cluster, member)?.priority ?? 0
    const read = views.flatMap((view) => rowsOf(view, set.cluster).map((rows) => ({ view, rows })))
    const tables: { config: ClusterConfig | undefined; rows: ClusterRows | undefined }[] =
      read.length === 0
        ? [{ config: undefined, rows: undefined }]
        : read.map(({ view, rows }) => ({
            config: view.proxy?.facts?.configs?.get(rows.cluster),
            rows,
          }))
    for (const { config, rows } of tables) {
      const hosts = set.endpoints.map((endpoint) => plannedHost(endpoint, rows))
      const threshold = config?.panicThreshold ?? 50
      const panicked = panickedPriorities(hosts, {
        threshold,
        overprovisioning: set.overprovisioning,
        failOnPanic: config?.failOnPanic ?? false,
      })
      if (!panicked.has(priority)) continue
      const counted = hosts.filter((host) => host.priority === priority)
      return {
        cluster: rows?.cluster ?? set.cluster,
        healthy: counted.filter((host) => host.healthy && !host.excluded).length,
        total: counted.length,
        threshold,
      }
    }
    return undefined
  }

  #present(
    { ref, service, member }: Wanted,
    endpoint: Endpoint,
    views: readonly ProxyView[],
    scopes: readonly LoadScope[],
  ): PresentReading {
    const rows = views
      .flatMap((view) => rowsOf(view, service))
      .map(({ hosts }) => hosts.get(member))
    const health = healthOf(endpoint.status, rows, this.configs(views, service))
    const configs = this.configs(views, service)
    const sticky = configs.find((config) => config.stickyWhileDraining)
    return {
      ref,
      present: true,
      identity: endpoint.hostname === undefined ? member : `${member} ${endpoint.hostname}`,
      ...(endpoint.address === undefined ? {} : { address: endpoint.address }),
      ...(endpoint.port === undefined ? {} : { port: endpoint.port }),
      ...(endpoint.weight === undefined ? {} : { weight: endpoint.weight }),
      own: toAdminState(endpoint.status),
      serves: takesWork(endpoint.status) && health !== 'down',
      health,
      scopes,
      native: endpoint.native(),
      ...(sticky === undefined
        ? {}
        : {
            hints: [
              `cluster ${sticky.cluster} lets sticky sessions come back to draining endpoints (override_host_status)`,
            ],
          }),
    }
  }

  #scopes(
    views: readonly ProxyView[],
    service: string,
    member: string,
    endpoint: Endpoint,
    clockOffset: number,
  ): LoadScope[] {
    const scopes = views.flatMap(
      (view) =>
        this.#loadScope(view, service, member, endpoint, clockOffset) ??
        this.#readScope(view, service, member, endpoint, clockOffset) ??
        [],
    )
    if (scopes.some((scope) => scope.state !== 'ended')) return scopes
    const nobody = views.some((view) => view.state === 'read')
      ? `no proxy lists a cluster fed by the endpoint set '${service}'`
      : 'no proxy is known yet'
    return [...scopes, { ...blank('no proxy', clockOffset + this.#options.now()), note: nobody }]
  }

  #readScope(
    view: ProxyView,
    service: string,
    member: string,
    endpoint: Endpoint,
    clockOffset: number,
  ): LoadScope | undefined {
    const now = clockOffset + this.#options.now()
    const note = view.note === undefined ? {} : { note: view.note }
    if (view.state === 'ended') {
      return { ...blank(view.scope, now), state: 'ended', inForce: true, ...note }
    }
    const { reading } = view
    if (view.state === 'unread' || reading === undefined) {
      return { ...blank(view.scope, now, view.proxy?.facts?.incarnation), ...note }
    }
    const clusters = rowsOf(view, service)
    if (clusters.length === 0) return undefined // this proxy does not know the cluster
    const rows = clusters.flatMap(({ hosts }) => hosts.get(member) ?? [])
    const force = this.#inForce(view, clusters, service, member, endpoint)
    const why =
      force ?? (rows.length < clusters.length ? 'it does not list the endpoint yet' : undefined)
    return {
      scope: view.scope,
      incarnation: reading.incarnation,
      state: 'read',
      sampledAt: reading.sampledAt,
      active: sum(rows, (row) => row.active),
      queued: sum(clusters, (rows) => queuedAt(rows, member, reading.stats)),
      pooled: sum(rows, (row) => Math.max(0, row.connections - row.active)),
      arrivals: sum(rows, (row) => row.begun),
      inForce: why === undefined,
      ...(why === undefined ? {} : { note: why }),
    }
  }

  #loadScope(
    view: ProxyView,
    service: string,
    member: string,
    endpoint: Endpoint,
    clockOffset: number,
  ): LoadScope | undefined {
    const { load } = view
    if (view.state !== 'read' || load === undefined) return undefined
    const counts = load.of(service, member)
    if (counts === undefined) {
      const now = clockOffset + this.#options.now()
      return {
        ...blank(view.scope, now),
        note: 'its load report does not list the cluster by endpoint',
      }
    }
    const why = this.#taken(view, service, member, this.#window(view, service)).why
    return {
      scope: view.scope,
      incarnation: load.incarnation,
      state: 'read',
      sampledAt: counts.sampledAt + clockOffset,
      active: counts.active,
      queued: 0,
      arrivals: counts.arrivals,
      inForce: why === undefined && endpoint.status !== undefined,
      ...(why === undefined ? {} : { note: why }),
    }
  }

  /** Why a proxy has not taken the endpoint's state yet; undefined: it has. */
  #inForce(
    view: ProxyView,
    clusters: readonly ClusterRows[],
    service: string,
    member: string,
    endpoint: Endpoint,
  ): string | undefined {
    for (const { cluster, hosts } of clusters) {
      const row = hosts.get(member)
      if (row === undefined) return 'it does not list the endpoint yet'
      const shown = shownAs(endpoint.status)
      const since = view.tracker.shownSince(cluster, member, shown)
      const window = this.#window(view, service, cluster)
      const { why, at } = this.#taken(view, service, member, 0, cluster)
      if (why !== undefined) return why
      if (since === undefined) return `it shows the endpoint as ${row.eds}`
      // A row may have looked like this before: nothing is in force sooner than it was published.
      const { store, now } = this.#options
      const published = store.publishedAt(service, store.seqOf(service, member))
      const left = window === 0 ? 0 : Math.max(since, at ?? since, published) + window - now()
      if (left > 0)
        return `inside the merge window of cluster ${cluster} for ${Math.ceil(left)} ms more`
      if (
        endpoint.status === 'DRAINING' &&
        this.#panics(view, cluster, hosts, row.priority, service)
      ) {
        return `cluster ${cluster} is in panic mode: Envoy sends traffic to drained endpoints too`
      }
    }
    return undefined
  }

  /** By the receipt of the sink, where it has receipts: when the publication was taken. */
  #taken(
    view: ProxyView,
    service: string,
    member: string,
    window: number,
    cluster?: string,
  ): { why?: string; at?: number } {
    const { sink, store, now } = this.#options
    const seq = store.seqOf(service, member)
    if (sink.kind === 'file' && cluster !== undefined) {
      const { versions, at: published } = store.versionsFrom(service, seq)
      const at = view.tracker.takenAt(cluster, versions, published)
      // A file without version_info leaves no receipt; then the row speaks alone.
      if (at !== undefined || versions.has('')) return at === undefined ? {} : { at }
      return {
        why: view.tracker.isRefusing(cluster)
          ? 'it refused the file (update_rejected or update_failure went up), its log says why'
          : 'it has not read the file yet',
      }
    }
    if (sink.receipts === undefined) return {}
    const receipt = sink.receipts(service).find(({ node }) => node === view.node)
    if (receipt === undefined) return { why: 'it has not asked for this endpoint set' }
    const at = receipt.ackedAt(seq)
    if (at === undefined) {
      if (receipt.state === 'nacked') return { why: `it refused the set: "${receipt.error ?? ''}"` }
      return {
        why:
          receipt.state === 'disconnected'
            ? 'its stream is gone'
            : 'it has not acknowledged the set',
      }
    }
    const left = at + window - now()
    return left > 0 ? { why: `inside the merge window for ${Math.ceil(left)} ms more`, at } : { at }
  }

  /** Milliseconds between the acknowledgement of a change of health and its effect. */
  #window(view: ProxyView, service: string, cluster?: string): number {
    const facts = view.proxy?.facts
    if (facts?.immediate === true) return 0
    const version = view.load?.version
    if (facts === undefined && version !== undefined && (version.major > 1 || version.minor >= 40))
      return 0
    const configs = [...(facts?.configs?.values() ?? [])].filter(
      (config) =>
        config.service === service && (cluster === undefined || config.cluster === cluster),
    )
    const windows = configs.map((config) => config.mergeWindow)
    const window =
      windows.length > 0 ? Math.max(...windows) : (this.#options.mergeWindow ?? MERGE_WINDOW)
    return window === 0 ? 0 : window + MARGIN
  }

  #panics(
    view: ProxyView,
    cluster: string,
    hosts: ReadonlyMap<string, HostRow>,
    priority: number,
    service: string,
  ): boolean {
    const config = view.proxy?.facts?.configs?.get(cluster)
    const panicked = panickedPriorities([...hosts.values()].map(rowHost), {
      threshold: config?.panicThreshold ?? 50,
      overprovisioning: this.#options.store.set(service)?.overprovisioning ?? 140,
      failOnPanic: config?.failOnPanic ?? false,
    })
    return panicked.has(priority)
  }

  /** What is left of a member that vanished: the cluster still counts what no listed host accounts for. */
  #orphans(
    view: ProxyView,
    service: string,
    member: string,
    last: ReadonlyMap<string, number>,
  ): LoadScope | undefined {
    const was = last.get(view.scope)
    if (was === undefined) return undefined
    const now = this.#options.now()
    if (view.state === 'ended') return { ...blank(view.scope, now), state: 'ended' }
    const { reading } = view
    if (reading === undefined) return { ...blank(view.scope, now), note: view.note ?? 'not read' }
    const clusters = rowsOf(view, service)
    const uncounted = clusters.find(
      ({ cluster, hosts }) =>
        !hosts.has(member) && !reading.stats.has(`cluster.${cluster}.upstream_rq_active`),
    )
    if (was > 0 && uncounted !== undefined) {
      const note = `/stats does not tell cluster.${uncounted.cluster}.upstream_rq_active, what the removed endpoint still holds is not known: allow /stats in admin.allow_paths`
      return { ...blank(view.scope, now, reading.incarnation), note }
    }
    const left = clusters.reduce((total, { cluster, hosts }) => {
      const row = hosts.get(member)
      if (row !== undefined) return total + row.active + (row.pending ?? 0)
      const all = Number(reading.stats.get(`cluster.${cluster}.upstream_rq_active`) ?? 0)
      return total + Math.max(0, all - sum([...hosts.values()], (host) => host.active))
    }, 0)
    return {
      scope: view.scope,
      incarnation: reading.incarnation,
      state: 'read',
      sampledAt: reading.sampledAt,
      active: was === 0 ? 0 : Math.min(was, left),
      queued: 0,
      inForce: clusters.every(({ hosts }) => !hosts.has(member)),
    }
  }
}

/** Numbers for a person. */
export interface PanicVerdict {
  readonly cluster: string
  readonly healthy: number
  readonly total: number
  readonly threshold: number
}

/** The clusters of one look that are fed by a set. */
export function rowsOf(view: ProxyView, service: string): readonly ClusterRows[] {
  return (view.reading?.clusters ?? []).filter((rows) => rows.service === service)
}

function blank(scope: string, sampledAt: number, incarnation = 'unknown'): LoadScope {
  return {
    scope,
    incarnation,
    state: 'unread',
    sampledAt,
    active: 0,
    queued: 0,
    inForce: false,
  }
}

/** The admin API shows a few statuses as others. */
function shownAs(status: EdsStatus | undefined): EdsStatus {
  if (status === undefined || status === 'UNKNOWN') return 'HEALTHY'
  return status === 'TIMEOUT' ? 'UNHEALTHY' : status
}

function plannedHost(endpoint: Endpoint, rows: ClusterRows | undefined): PanicHost {
  const row = endpoint.member === undefined ? undefined : rows?.hosts.get(endpoint.member)
  const failing = row !== undefined && (row.failedCheck || row.ejected)
  return {
    priority: endpoint.priority,
    healthy: takesWork(endpoint.status) && !failing,
    degraded: endpoint.status === 'DEGRADED' || row?.degraded === true,
    excluded: endpoint.status === 'DRAINING',
  }
}

function rowHost(row: HostRow): PanicHost {
  return {
    priority: row.priority,
    healthy: takesWork(row.eds) && !row.failedCheck && !row.ejected,
    degraded: row.degraded,
    excluded: row.excluded,
  }
}

function healthOf(
  status: EdsStatus | undefined,
  rows: readonly (HostRow | undefined)[],
  configs: readonly ClusterConfig[],
): Health {
  if (status === 'UNHEALTHY' || status === 'TIMEOUT') return 'down'
  if (rows.some((row) => row?.failedCheck === true || row?.ejected === true)) return 'down'
  if (configs.length === 0) return rows.length === 0 ? 'unknown' : 'unchecked'
  if (!configs.some((config) => config.activeChecks)) return 'unchecked'
  return rows.length === 0 || rows.includes(undefined) ? 'unknown' : 'up'
}

function downMembers(views: readonly ProxyView[], service: string): ReadonlySet<string> {
  const down = new Set<string>()
  for (const { hosts } of views.flatMap((view) => rowsOf(view, service))) {
    for (const row of hosts.values()) if (row.failedCheck || row.ejected) down.add(row.member)
  }
  return down
}

function whenNone(set: Assignment, configs: readonly ClusterConfig[]): PoolReading['whenNone'] {
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
function queuedAt(
  { cluster, hosts }: ClusterRows,
  member: string,
  stats: ReadonlyMap<string, string>,
): number {
  const row = hosts.get(member)
  if (row === undefined) return 0
  if (row.pending !== undefined) return row.pending
  if (row.connections <= row.active) return 0
  return Number(stats.get(`cluster.${cluster}.upstream_rq_pending_active`) ?? 0)
}

function sum<T>(items: readonly T[], of: (item: T) => number): number {
  return items.reduce((total, item) => total + of(item), 0)
}
