import { setImmediate as breathe } from 'node:timers/promises'
import type { Clock } from '../../../provider/clock.js'
import { DrainableError, isDrainableError } from '../../../provider/error.js'
import { quote } from '../../../provider/quote.js'
import { malformed, type JsonObject } from '../../../kit/json.js'
import { isAtLeast } from '../../../kit/version.js'
import { AdminClient } from './admin-client.js'
import { AssignmentProblem } from '../codec/assignment.js'
import {
  ClustersTextDecoder,
  parseClustersJson,
  parseServerInfo,
  isSwitchedOff,
  parseStats,
  parseUptime,
  type ClusterRows,
  type ServerInfo,
} from '../codec/admin.js'
import {
  adoptable,
  parseBootStamp,
  parseClusterConfigs,
  parseEndpointsDump,
  statName,
  type ClusterConfig,
} from '../codec/config-dump.js'

/** Hosts from which on the text form is read: four times cheaper for Envoy, and cut into slices here. */
const TEXT_FROM = 500
const SLICE = 128 * 1024
/** What is read of a cluster's statistics. */
const STATS = [
  'version_text',
  'update_rejected',
  'update_failure',
  'upstream_rq_active',
  'upstream_rq_pending_active',
  'membership_total',
]
const TIMEOUT = 3_000
const TIMEOUT_FAILING = 500
/** Clusters that come and go by CDS are looked for again after this long. */
const CONFIG_AGE = 30_000

/** What one look at a proxy showed. */
export interface ProxyReading {
  /** By the caller's clock: before the first request was sent. */
  readonly sampledAt: number
  /** By the monotonic clock: when everything was in. */
  readonly at: number
  readonly incarnation: string
  /** The clusters asked for, by name. */
  readonly clusters: readonly ClusterRows[]
  /** `/stats` of those clusters. */
  readonly stats: ReadonlyMap<string, string>
}

/** What is known of one start of a proxy. */
export interface ProxyFacts {
  readonly incarnation: string
  readonly info: ServerInfo
  /** EDS clusters by cluster name; undefined: `/config_dump` is not allowed. */
  readonly configs: ReadonlyMap<string, ClusterConfig> | undefined
  /** Changes of health take effect with the acknowledgement, not a merge window later. */
  readonly immediate: boolean
  readonly readAt: number
}

/** One proxy, through its admin API. */
export class Proxy {
  readonly name: string
  readonly #client: AdminClient
  readonly #now: () => number
  #facts: ProxyFacts | undefined
  #hosts = 0
  #failing = false
  #start: { low: number; high: number; name: string } | undefined

  constructor(address: string, now: () => number) {
    this.#client = new AdminClient(address)
    this.name = this.#client.name
    this.#now = now
  }

  /** What the last look showed; undefined before the first. */
  get facts(): ProxyFacts | undefined {
    return this.#facts
  }

  /** Version, node id, cluster settings: asked once per start, and when a cluster is missing. */
  async learn(signal: AbortSignal, services: readonly string[] = []): Promise<ProxyFacts> {
    const known = this.#facts
    if (known !== undefined && !this.#isStale(known, services)) return known
    return this.#guard(() => this.#learn(signal))
  }

  /**
   * Counts of every cluster that is fed by one of these sets.
   *
   * The process's start is read before and after the counts (the one after is the next look's one
   * before): numbers of two processes never mix.
   */
  async read(
    services: readonly string[],
    signal: AbortSignal,
    clock: Clock,
  ): Promise<ProxyReading> {
    const facts = await this.learn(signal, services)
    return this.#guard(async () => {
      const first = await this.#readOnce(facts, services, signal, clock)
      if (first !== undefined) return first
      const again = await this.#readOnce(await this.#learn(signal), services, signal, clock)
      if (again !== undefined) return again
      throw new DrainableError('CONNECTION_LOST', `${this.name} restarts again and again`, {
        provider: 'envoy',
      })
    })
  }

  /** The sets as this proxy holds them, as their owner would have written them. */
  async dump(signal: AbortSignal): Promise<JsonObject[]> {
    return this.#guard(async () => {
      const texts = await Promise.all(
        ['static', 'dynamic'].map((kind) =>
          this.#get(`/config_dump?include_eds&resource=${kind}_endpoint_configs`, signal),
        ),
      )
      const dumps = texts.flatMap((text) => this.#decode(() => parseEndpointsDump(text, this.name)))
      const facts = await this.#learn(signal)
      const rows = await this.#clusters(undefined, signal)
      const byService = new Map(rows.map((row) => [row.service, row.hosts]))
      const fed = new Set([...(facts.configs?.values() ?? [])].map((config) => config.service))
      return dumps.flatMap((dump) => {
        const name = dump.at('cluster_name').neededText()
        if (facts.configs !== undefined && !fed.has(name)) return [] // not fed by EDS
        const hosts = byService.get(name)
        const set = dump.object()
        return hosts === undefined || set === undefined ? [] : [adoptable(set, hosts)]
      })
    })
  }

  close(): Promise<void> {
    return this.#client.close()
  }

  async #readOnce(
    facts: ProxyFacts,
    services: readonly string[],
    signal: AbortSignal,
    clock: Clock,
  ): Promise<ProxyReading | undefined> {
    const names = clustersOf(facts, services)
    const sampledAt = clock.now()
    const [clusters, stats] = await Promise.all([
      this.#clusters(names, signal),
      this.#stats(facts, names, signal),
    ])
    const incarnation = await this.#incarnation(signal)
    if (incarnation !== facts.incarnation) {
      this.#facts = undefined
      return undefined
    }
    return {
      sampledAt,
      at: this.#now(),
      incarnation,
      clusters: clusters.filter((cluster) => services.includes(cluster.service)),
      stats,
    }
  }

  async #learn(signal: AbortSignal): Promise<ProxyFacts> {
    const incarnation = await this.#incarnation(signal)
    const text = await this.#get('/server_info', signal)
    const info = this.#decode(() => parseServerInfo(text, this.name))
    const configs = await this.#configs(signal)
    const immediate = isAtLeast(info.version, 1, 40) && (await this.#isBatchAware(signal))
    this.#facts = { incarnation, info, configs, immediate, readAt: this.#now() }
    return this.#facts
  }

  /** When this process read its bootstrap, to the millisecond; its uptime where that is not allowed. */
  async #incarnation(signal: AbortSignal): Promise<string> {
    const path = '/config_dump?resource=static_clusters&mask=last_updated'
    const text = await this.#allowed(path, signal)
    const stamp =
      text === undefined ? undefined : this.#decode(() => parseBootStamp(text, this.name))
    return stamp ?? (await this.#startByUptime(signal))
  }

  /** Uptime comes in whole seconds: starts are told apart where no moment fits both readings. */
  async #startByUptime(signal: AbortSignal): Promise<string> {
    const before = Date.now()
    const text = await this.#get('/server_info', signal)
    const uptime = parseUptime(text, this.name) * 1_000
    const [low, high] = [before - uptime - 1_000, Date.now() - uptime]
    const known = this.#start
    const fits = known !== undefined && low <= known.high && high >= known.low
    this.#start = fits
      ? { ...known, low: Math.max(low, known.low), high: Math.min(high, known.high) }
      : { low, high, name: new Date(low).toISOString() }
    return this.#start.name
  }

  async #configs(signal: AbortSignal): Promise<ReadonlyMap<string, ClusterConfig> | undefined> {
    const configs: ClusterConfig[] = []
    for (const kind of ['static_clusters', 'dynamic_active_clusters']) {
      const text = await this.#allowed(`/config_dump?resource=${kind}`, signal)
      if (text === undefined) return undefined
      configs.push(...this.#decode(() => parseClusterConfigs(text, this.name)))
    }
    return new Map(configs.map((config) => [config.cluster, config]))
  }

  /** Whether nobody switched the immediate updates of 1.40 off. */
  async #isBatchAware(signal: AbortSignal): Promise<boolean> {
    const text = await this.#allowed('/runtime', signal)
    return text === undefined || !isSwitchedOff(text, 'enable_batch_aware_update', this.name)
  }

  async #clusters(
    names: readonly string[] | undefined,
    signal: AbortSignal,
  ): Promise<ClusterRows[]> {
    if (names?.length === 0) return []
    // Before 1.38.3 the filter is ignored: then everything comes, and is filtered here.
    const filter =
      names === undefined
        ? ''
        : `&filter=${encodeURIComponent(`^(?:${names.map(quoted).join('|')})$`)}`
    const rows = await (this.#hosts >= TEXT_FROM
      ? this.#clustersText(names, filter, signal)
      : this.#clustersJson(names, filter, signal))
    this.#hosts = rows.reduce((sum, row) => sum + row.hosts.size, 0)
    return rows
  }

  async #clustersJson(
    names: readonly string[] | undefined,
    filter: string,
    signal: AbortSignal,
  ): Promise<ClusterRows[]> {
    const text = await this.#get(`/clusters?format=json${filter}`, signal)
    const rows = this.#decode(() => parseClustersJson(text, this.name))
    return names === undefined ? rows : rows.filter((row) => names.includes(row.cluster))
  }

  async #clustersText(
    names: readonly string[] | undefined,
    filter: string,
    signal: AbortSignal,
  ): Promise<ClusterRows[]> {
    const text = await this.#get(`/clusters?format=text${filter}`, signal)
    const decoder = new ClustersTextDecoder(names, this.name)
    for (let start = 0; start < text.length; start += SLICE) {
      decoder.push(text.slice(start, start + SLICE))
      await breathe()
      signal.throwIfAborted()
    }
    return this.#decode(() => decoder.finish())
  }

  /** By the clusters' names, whatever names their statistics go by. */
  async #stats(
    facts: ProxyFacts,
    names: readonly string[],
    signal: AbortSignal,
  ): Promise<ReadonlyMap<string, string>> {
    if (names.length === 0) return new Map()
    const own = new Map(
      names.map((name) => [name, facts.configs?.get(name)?.stat ?? statName(name)]),
    )
    const filter = `^cluster\\.(?:${[...own.values()].map(quoted).join('|')})\\.(?:${STATS.join('|')})$`
    const text = await this.#allowed(`/stats?filter=${encodeURIComponent(filter)}`, signal)
    const found = parseStats(text ?? '', this.name)
    const stats = new Map<string, string>()
    for (const [name, prefix] of own) {
      for (const stat of STATS) {
        const value = found.get(`cluster.${prefix}.${stat}`)
        if (value === undefined) continue
        if (stat !== 'version_text' && !/^\d{1,15}$/.test(value)) {
          const source = { provider: 'envoy', what: `${this.name} /stats` }
          throw malformed(source, `a count for ${stat}`, `'${quote(value)}'`)
        }
        stats.set(`cluster.${name}.${stat}`, value)
      }
      const total = Number(stats.get(`cluster.${name}.membership_total`) ?? 0)
      if (total >= TEXT_FROM) this.#hosts = Math.max(this.#hosts, total)
    }
    return stats
  }

  #isStale(facts: ProxyFacts, services: readonly string[]): boolean {
    if (facts.configs === undefined) return false
    const known = new Set([...facts.configs.values()].map((config) => config.service))
    const missing = services.some((service) => !known.has(service))
    const age = this.#now() - facts.readAt
    return age > (missing ? 1_000 : CONFIG_AGE)
  }

  #get(path: string, signal: AbortSignal): Promise<string> {
    return this.#client.get(path, signal, this.#failing ? TIMEOUT_FAILING : TIMEOUT)
  }

  /** The reply, or undefined where the bootstrap's `allow_paths` keeps it from us. */
  async #allowed(path: string, signal: AbortSignal): Promise<string | undefined> {
    try {
      return await this.#get(path, signal)
    } catch (error) {
      if (isDrainableError(error, 'FORBIDDEN')) return undefined
      throw error
    }
  }

  #decode<T>(fn: () => T): T {
    try {
      return fn()
    } catch (problem) {
      if (!(problem instanceof AssignmentProblem)) throw problem
      throw new DrainableError('MALFORMED_REPLY', `${this.name}: ${problem.toString()}`, {
        provider: 'envoy',
      })
    }
  }

  /** A proxy that failed is asked with less patience, so that a frozen one does not set the pace. */
  async #guard<T>(fn: () => Promise<T>): Promise<T> {
    try {
      const value = await fn()
      this.#failing = false
      return value
    } catch (error) {
      this.#failing = isDrainableError(error)
      throw error
    }
  }
}

function clustersOf(facts: ProxyFacts, services: readonly string[]): string[] {
  if (facts.configs === undefined) return [...services]
  return [...facts.configs.values()]
    .filter((config) => services.includes(config.service))
    .map((config) => config.cluster)
}

/** A name as a regular expression (RE2) that matches it. */
function quoted(name: string): string {
  return name.replace(/[^A-Za-z0-9_]/g, '\\$&')
}
