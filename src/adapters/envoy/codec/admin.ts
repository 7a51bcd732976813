/**
 * What Envoy's admin API answers, as values.
 *
 * `/clusters` has a JSON form (numbers are texts, a zero is absent, a cluster without hosts has no
 * list) and a text form that is four times cheaper for Envoy's main thread: one line per value,
 * `cluster::address::key::value`. An IPv6 address holds `::` itself, so lines are cut from the right.
 *
 * `/config_dump?include_eds` shows the endpoint sets, with three traps: its `health_status` is the
 * computed health (a DRAINING host is UNHEALTHY there), hosts that were removed and only wait for a
 * failing check are still in it, and a locality without a weight has weight 0, which Envoy itself
 * would reject. {@link adoptable} undoes all three with the help of `/clusters`.
 */
import { parseVersion, type Version } from '../../../kit/version.js'
import type { Json } from '../../../provider/contract.js'
import { canonicalMember } from './address.js'
import { AssignmentProblem } from './assignment.js'
import { addressOf, field, isObject, textOf, type JsonObject } from './json.js'
import { toEdsStatus, type EdsStatus } from './status.js'

/** One host of one cluster, as a proxy sees it. */
export interface HostRow {
  readonly member: string
  readonly active: number
  /** Requests bound to this host that wait for a connection. Not counted before Envoy 1.39.3. */
  readonly pending: number | undefined
  readonly connections: number
  /** Requests and connections begun so far. */
  readonly begun: number
  readonly eds: EdsStatus
  readonly failedCheck: boolean
  readonly ejected: boolean
  readonly degraded: boolean
  /** Left out of the panic sum: draining, or new and not checked yet. */
  readonly excluded: boolean
  /** Removed from the set; kept, and given new work, until its active check fails. */
  readonly pendingRemoval: boolean
  readonly priority: number
}

/** One cluster, as a proxy sees it. */
export interface ClusterRows {
  readonly cluster: string
  readonly service: string
  readonly hosts: ReadonlyMap<string, HostRow>
}

/** What a proxy's configuration says about a cluster; undefined where it cannot be read. */
export interface ClusterConfig {
  readonly cluster: string
  /** Name of its endpoint set. */
  readonly service: string
  /** What its statistics go by: `cluster.<stat>.`. */
  readonly stat: string
  readonly activeChecks: boolean
  readonly ignoreHealthOnRemoval: boolean
  readonly closeOnSetChange: boolean
  /** Percent; 50 where it is not set. */
  readonly panicThreshold: number
  readonly failOnPanic: boolean
  /** Milliseconds; 1,000 where it is not set. */
  readonly mergeWindow: number
  readonly connectTimeout: number
  /** Sticky sessions may come back to a draining host. */
  readonly stickyWhileDraining: boolean
}

export interface ServerInfo {
  readonly version: Version
  readonly nodeId: string
  readonly state: string
}

export function parseServerInfo(text: string): ServerInfo {
  const info = parseObject(text, '/server_info')
  const version = parseVersion(textOf(info['version']))
  if (version === undefined) {
    throw new AssignmentProblem('/server_info', 'no version in it, this is not an Envoy admin API')
  }
  const node = info['node']
  const id = isObject(node) ? node['id'] : undefined
  return { version, nodeId: typeof id === 'string' ? id : '', state: textOf(info['state']) }
}

/** The JSON form of `/clusters`. */
export function parseClustersJson(text: string): ClusterRows[] {
  const statuses = parseObject(text, '/clusters')['cluster_statuses'] ?? []
  if (!Array.isArray(statuses)) {
    throw new AssignmentProblem('/clusters', 'expected cluster_statuses to be a list')
  }
  return statuses.filter(isObject).map((status) => {
    const cluster = textOf(status['name'])
    const hosts = Array.isArray(status['host_statuses']) ? status['host_statuses'] : []
    const rows = hosts.filter(isObject).map(parseHost)
    return {
      cluster,
      service: textOf(status['eds_service_name'], cluster),
      hosts: new Map(rows.flatMap((row) => (row === undefined ? [] : [[row.member, row]]))),
    }
  })
}

function parseHost(host: JsonObject): HostRow | undefined {
  const { member } = addressOf(host['address'])
  if (member === undefined) return undefined
  const stats = new Map<string, number>()
  for (const stat of Array.isArray(host['stats']) ? host['stats'] : []) {
    if (isObject(stat)) stats.set(textOf(stat['name']), Number(stat['value'] ?? 0))
  }
  const health = isObject(host['health_status']) ? host['health_status'] : {}
  const flag = (name: string): boolean => health[name] === true
  const eds = toEdsStatus(textOf(health['eds_health_status'], 'HEALTHY')) ?? 'UNKNOWN'
  return toRow(member, stats, {
    eds,
    failedCheck: flag('failed_active_health_check'),
    ejected: flag('failed_outlier_check'),
    degraded: flag('failed_active_degraded_check'),
    unchecked: flag('pending_active_hc') || flag('excluded_via_immediate_hc_fail'),
    pendingRemoval: flag('pending_dynamic_removal'),
    priority: Number(host['priority'] ?? 0),
  })
}

interface Flags {
  readonly eds: EdsStatus
  readonly failedCheck: boolean
  readonly ejected: boolean
  readonly degraded: boolean
  readonly unchecked: boolean
  readonly pendingRemoval: boolean
  readonly priority: number
}

function toRow(member: string, stats: ReadonlyMap<string, number>, flags: Flags): HostRow {
  const stat = (name: string): number => stats.get(name) ?? 0
  const active = stats.get('rq_active')
  const begun = stats.get('rq_total')
  if (active === undefined || begun === undefined) {
    throw new AssignmentProblem(`/clusters: ${member}`, 'no rq_active and rq_total')
  }
  return {
    member,
    active,
    pending: stats.get('rq_pending_active'),
    connections: stat('cx_active'),
    begun: begun + stat('cx_total'),
    eds: flags.eds,
    failedCheck: flags.failedCheck,
    ejected: flags.ejected,
    degraded: flags.degraded || flags.eds === 'DEGRADED',
    excluded: flags.eds === 'DRAINING' || flags.unchecked,
    pendingRemoval: flags.pendingRemoval,
    priority: flags.priority,
  }
}

const STATS = new Set([
  'rq_active',
  'rq_total',
  'rq_pending_active',
  'cx_active',
  'cx_total',
  'health_flags',
  'priority',
])

/** Any of these begins the lines of a host; circuit breakers and outlier settings look alike otherwise. */
const HOST_STATS = new Set([...STATS, 'cx_connect_fail', 'rq_error', 'rq_success', 'rq_timeout'])

/** The text form of `/clusters`, in pieces, for the clusters asked for. */
export class ClustersTextDecoder {
  readonly #clusters = new Map<string, Map<string, HostRow>>()
  readonly #services = new Map<string, string>()
  readonly #wanted: ReadonlySet<string> | undefined
  #rest = ''
  /** The host whose lines come in: what they all begin with, and what they said so far. */
  #head = ''
  #host: { hosts: Map<string, HostRow>; member: string; values: Map<string, string> } | undefined

  constructor(wanted?: Iterable<string>) {
    this.#wanted = wanted === undefined ? undefined : new Set(wanted)
  }

  push(chunk: string): void {
    const text = this.#rest + chunk
    let start = 0
    for (let end = text.indexOf('\n'); end !== -1; end = text.indexOf('\n', start)) {
      this.#line(text, start, end)
      start = end + 1
    }
    this.#rest = text.slice(start)
  }

  finish(): ClusterRows[] {
    if (this.#rest !== '') this.push('\n')
    this.#flush()
    return [...this.#clusters].map(([cluster, hosts]) => ({
      cluster,
      service: this.#services.get(cluster) ?? cluster,
      hosts,
    }))
  }

  #line(text: string, start: number, end: number): void {
    if (this.#head === '' || !text.startsWith(this.#head, start)) {
      if (!this.#begin(text, start, end)) return
    }
    if (this.#host === undefined) return
    const key = start + this.#head.length
    const value = text.indexOf('::', key)
    if (value === -1 || value >= end) return
    const name = text.slice(key, value)
    if (STATS.has(name)) this.#host.values.set(name, text.slice(value + 2, end))
  }

  /** A line of another host, or of none. */
  #begin(text: string, start: number, end: number): boolean {
    const value = text.lastIndexOf('::', end - 1)
    const key = value <= start ? -1 : text.lastIndexOf('::', value - 1)
    if (key === -1 || key < start) return false
    const name = text.slice(key + 2, value)
    const subject = text.slice(start, key)
    if (name === 'eds_service_name' || name === 'added_via_api') {
      if (name === 'eds_service_name') this.#services.set(subject, text.slice(value + 2, end))
      this.#hosts(subject)
      return false
    }
    const cut = subject.indexOf('::')
    if (cut === -1 || !HOST_STATS.has(name)) return false
    this.#flush()
    this.#head = `${subject}::`
    const hosts = this.#hosts(subject.slice(0, cut))
    const member = canonicalMember(subject.slice(cut + 2))
    this.#host = hosts === undefined ? undefined : { hosts, member, values: new Map() }
    return true
  }

  #flush(): void {
    if (this.#host === undefined) return
    const { hosts, member, values } = this.#host
    hosts.set(member, toTextRow(member, values))
    this.#host = undefined
  }

  #hosts(cluster: string): Map<string, HostRow> | undefined {
    if (this.#wanted?.has(cluster) === false) return undefined
    let hosts = this.#clusters.get(cluster)
    if (hosts === undefined) this.#clusters.set(cluster, (hosts = new Map<string, HostRow>()))
    return hosts
  }
}

function toTextRow(member: string, values: ReadonlyMap<string, string>): HostRow {
  const flags = new Set((values.get('health_flags') ?? '').split('/'))
  const eds: EdsStatus = flags.has('eds_status_draining')
    ? 'DRAINING'
    : flags.has('failed_eds_health')
      ? 'UNHEALTHY'
      : flags.has('degraded_eds_health')
        ? 'DEGRADED'
        : 'HEALTHY'
  const stats = new Map<string, number>()
  for (const [name, value] of values) if (name !== 'health_flags') stats.set(name, Number(value))
  return toRow(member, stats, {
    eds,
    failedCheck: flags.has('failed_active_hc'),
    ejected: flags.has('failed_outlier_check'),
    degraded: flags.has('degraded_active_hc'),
    unchecked: flags.has('pending_active_hc') || flags.has('excluded_via_immediate_hc_fail'),
    pendingRemoval: flags.has('pending_dynamic_removal'),
    priority: stats.get('priority') ?? 0,
  })
}

/** `/stats` in its text form: `name: value`, texts in quotes. */
export function parseStats(text: string): Map<string, string> {
  const stats = new Map<string, string>()
  for (const line of text.split('\n')) {
    const cut = line.indexOf(': ')
    if (cut === -1) continue
    const value = line.slice(cut + 2).trim()
    stats.set(line.slice(0, cut), /^".*"$/.test(value) ? value.slice(1, -1) : value)
  }
  return stats
}

/** `/config_dump?resource=static_clusters` or `dynamic_active_clusters`: those fed by EDS. */
export function parseClusterConfigs(text: string): ClusterConfig[] {
  return configsOf(text)
    .map((config) => config['cluster'])
    .filter(isObject)
    .filter((cluster) => cluster['type'] === 'EDS')
    .map(toClusterConfig)
}

function toClusterConfig(cluster: JsonObject): ClusterConfig {
  const at = (value: Json | undefined, ...path: string[]): Json | undefined =>
    path.reduce<Json | undefined>((found, key) => (isObject(found) ? found[key] : undefined), value)
  const name = textOf(cluster['name'])
  const service = at(cluster, 'eds_cluster_config', 'service_name')
  const common = cluster['common_lb_config']
  const alternative = textOf(cluster['alt_stat_name'])
  const threshold = at(common, 'healthy_panic_threshold')
  const checks = cluster['health_checks']
  const statuses = at(common, 'override_host_status', 'statuses')
  return {
    cluster: name,
    service: typeof service === 'string' && service !== '' ? service : name,
    stat: statName(alternative === '' ? name : alternative),
    activeChecks: Array.isArray(checks) && checks.length > 0,
    ignoreHealthOnRemoval: cluster['ignore_health_on_host_removal'] === true,
    closeOnSetChange: at(common, 'close_connections_on_host_set_change') === true,
    // A threshold that is there without a value is 0: proto3 leaves a zero out.
    panicThreshold: isObject(threshold) ? Number(threshold['value'] ?? 0) : 50,
    failOnPanic: at(common, 'zone_aware_lb_config', 'fail_traffic_on_panic') === true,
    mergeWindow: seconds(at(common, 'update_merge_window')) ?? 1_000,
    connectTimeout: seconds(cluster['connect_timeout']) ?? 5_000,
    stickyWhileDraining: Array.isArray(statuses) && statuses.includes('DRAINING'),
  }
}

/** A cluster's name as its statistics have it: Envoy allows no colon there. */
export function statName(cluster: string): string {
  return cluster.replace(/:\/{0,2}/g, '_')
}

/** The moment the process read its configuration, as it prints it: it tells one start from another. */
export function parseBootStamp(text: string): string | undefined {
  const stamps = configsOf(text).flatMap((config) =>
    typeof config['last_updated'] === 'string' ? [config['last_updated']] : [],
  )
  return stamps.sort()[0]
}

/** The endpoint sets in `/config_dump?include_eds`, as they stand there. */
export function parseEndpointsDump(text: string): JsonObject[] {
  return configsOf(text)
    .map((config) => config['endpoint_config'])
    .filter(isObject)
}

/**
 * An endpoint set of `/config_dump` as its owner wrote it, as far as a proxy still knows: statuses by
 * `/clusters`, removed hosts left out, localities without the weight they never had.
 */
export function adoptable(dump: JsonObject, rows: ReadonlyMap<string, HostRow>): JsonObject {
  const groups = field(dump, 'endpoints')
  if (!Array.isArray(groups)) return dump
  return {
    ...dump,
    endpoints: groups.filter(isObject).flatMap((group) => {
      const all = field(group, 'lb_endpoints')
      const kept = (Array.isArray(all) ? all : []).filter(isObject).flatMap((endpoint) => {
        const inner = endpoint['endpoint']
        const { member } = addressOf(isObject(inner) ? inner['address'] : undefined)
        const row = member === undefined ? undefined : rows.get(member)
        if (row?.pendingRemoval === true) return []
        return [row === undefined ? endpoint : { ...endpoint, health_status: row.eds }]
      })
      if (kept.length === 0) return []
      const { load_balancing_weight: weight, ...rest } = group
      const none = weight === 0 || weight === undefined
      return [{ ...rest, ...(none ? {} : { load_balancing_weight: weight }), lb_endpoints: kept }]
    }),
  }
}

function configsOf(text: string): JsonObject[] {
  const configs = parseObject(text, '/config_dump')['configs'] ?? []
  return Array.isArray(configs) ? configs.filter(isObject) : []
}

function parseObject(text: string, what: string): JsonObject {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    value = undefined
  }
  if (isObject(value)) return value
  throw new AssignmentProblem(what, `expected JSON, found '${text.slice(0, 200)}'`)
}

/** A proto3 JSON duration: `0.250s`. */
function seconds(value: Json | undefined): number | undefined {
  if (typeof value !== 'string' || !value.endsWith('s')) return undefined
  const ms = Number(value.slice(0, -1)) * 1_000
  return Number.isFinite(ms) ? ms : undefined
}
