import { setImmediate as breathe } from 'node:timers/promises'
import type { Clock } from '../../../provider/clock.js'
import type { MemberRef } from '../../../provider/contract.js'
import { DrainableError, isDrainableError } from '../../../provider/error.js'
import { malformed } from '../../../kit/json.js'
import { lookAt, type AdminAddress, type AdminLink, type Call } from '../../../kit/envoy/admin.js'
import {
  parseBootStamp,
  parseServerInfo,
  statName,
  type ServerInfo,
} from '../../../kit/envoy/answers.js'
import { sourceOf } from '../codec/answer.js'
import { Parent, parentTrace } from '../../../kit/envoy/parent.js'
import { Aggregates, type Above } from './aggregates.js'
import { ClustersTextDecoder } from '../codec/clusters-text.js'
import { sumOf, type ClusterRows } from '../codec/admin.js'
import { adoptable, parseEndpointsDump } from '../codec/config-dump.js'
import type { JsonAssignment } from '../codec/json.js'
import { parseStatsMatcher, type StatsMatcher } from '../codec/stats-matcher.js'
import {
  readConfigs,
  readRuntime,
  readUnconfigured,
  type ProxyClusters,
  type ProxyRuntime,
} from './configuration.js'
import { GoneClusters, type Gone, type Namesake } from './gone-clusters.js'
import { PreviousWork, type Previous } from './previous.js'
import { ScopeTracker } from './scopes.js'
import { quoted, readStats, type StatNames, type Stats } from './stats.js'
import { NOTHING, UnlistedBounds, unlistedOf, type Unlisted } from './unlisted.js'

const SLICE = 128 * 1024
const PATHS = '/clusters, /stats, /server_info and /config_dump'
/** Milliseconds that an answer may take where the last look failed: a frozen proxy does not set the pace. */
const TIMEOUT_FAILING = 500
/** Where statistics do not show that clusters came or went by CDS, they are looked for again after this long. */
const CONFIG_AGE = 1_000
/** How often a look begins anew because the process, or its clusters, changed in between. */
const ATTEMPTS = 3

/** What one look at a proxy showed. */
export interface ProxyReading {
  /** By the caller's clock: before the first request was sent. */
  readonly sampledAt: number
  /** By the monotonic clock: when everything was in. */
  readonly at: number
  readonly incarnation: string
  /** The clusters asked for, by name. */
  readonly clusters: readonly ClusterRows[]
  /** Other clusters that aggregates have beside those. */
  readonly beside: readonly ClusterRows[]
  /** What hands requests on to a cluster, where there is an aggregate of it. */
  readonly above: ReadonlyMap<string, Above>
  readonly stats: Stats
  /** What hosts that are not listed may hold, by cluster; left out where the proxy does not show it. */
  readonly unlisted: ReadonlyMap<string, Unlisted>
  /** What clusters that are listed no more may hold, by set. */
  readonly gone: ReadonlyMap<string, Gone>
  /** After a hot restart: the process before this one. */
  readonly previous: Previous | undefined
  /** What this look and those before it showed of the process. */
  readonly tracker: ScopeTracker
}

/** A member as the caller names it, and as the store does. */
export interface Wanted {
  readonly ref: MemberRef
  readonly service: string
  readonly member: string
}

/** What one look is for. */
export interface Search {
  /** Where one of them is not listed, what is left of hosts that were removed is read too. */
  readonly sought: readonly Wanted[]
  /** Hosts of which the numbers are needed, and not only whether they are healthy; undefined: all. */
  readonly members: ReadonlySet<string> | undefined
  /** What the clusters of a set are called in any proxy. */
  readonly namesakes: (service: string) => readonly Namesake[]
}

/** What is known of one start of a proxy. */
export interface ProxyFacts extends ProxyClusters, ProxyRuntime {
  readonly incarnation: string
  readonly info: ServerInfo
  /** Which statistics it makes. */
  readonly shows: StatsMatcher
  readonly readAt: number
  /** {@link Stats.clusters} from before the configuration was read. */
  readonly clusters: string | undefined
}

/** One proxy, through its admin API. */
export class Proxy {
  readonly name: string
  readonly #address: AdminAddress
  readonly #now: () => number
  #isFailing = false
  #facts: ProxyFacts | undefined
  #previousWork: PreviousWork | undefined
  #bounds = new UnlistedBounds()
  #gone = new GoneClusters()
  #tracker = new ScopeTracker()
  readonly #aggregates: Aggregates

  constructor(address: AdminAddress, now: () => number) {
    this.#address = address
    this.name = address.name
    this.#now = now
    this.#aggregates = new Aggregates(this.name, now)
  }

  /** What the last look showed; undefined before the first. */
  get facts(): ProxyFacts | undefined {
    return this.#facts
  }

  /** Version, node id, cluster settings: asked once per start, and when a cluster may be missing. */
  async learn(ctx: Call): Promise<ProxyFacts> {
    const known = this.#facts
    if (known !== undefined && !this.#isStale(known)) return known
    return this.#look(ctx, (link) => this.#learn(link))
  }

  /**
   * Counts of every cluster that is fed by one of these sets, over one connection.
   *
   * The process's start is read after the counts: numbers of two processes never mix. Nor do those of
   * two lists of clusters: one that came by CDS is looked at in the same look.
   */
  async read(
    services: readonly string[],
    signal: AbortSignal,
    clock: Clock,
    search: Search,
  ): Promise<ProxyReading> {
    return this.#look({ clock, signal }, async (link) => {
      for (let attempt = 1; attempt <= ATTEMPTS; attempt++) {
        const known = this.#facts
        const isFresh = attempt === 1 && known !== undefined && !this.#isStale(known)
        const facts = isFresh ? known : await this.#learn(link)
        const reading = await this.#readOnce(facts, services, search, link, clock)
        if (reading !== undefined) return reading
      }
      const words = `${this.name} restarts, or changes its clusters, again and again`
      throw new DrainableError('CONNECTION_LOST', words, { provider: 'envoy' })
    })
  }

  /** The sets as this proxy holds them, as their owner would have written them. */
  async dump(ctx: Call): Promise<JsonAssignment[]> {
    return this.#look(ctx, async (link) => {
      const texts: string[] = []
      for (const kind of ['static', 'dynamic']) {
        texts.push(await link.get(`/config_dump?include_eds&resource=${kind}_endpoint_configs`))
      }
      const dumps = texts.flatMap((text) => parseEndpointsDump(text, this.name))
      const facts = await this.#learn(link)
      const rows = await this.#clusters(undefined, link)
      const byService = new Map(rows.map((row) => [row.service, row.hosts]))
      const fed = new Set([...facts.configs.values()].map((config) => config.service))
      return dumps.flatMap((dump) => {
        const name = dump.at('cluster_name').neededText()
        if (!fed.has(name)) return [] // not fed by EDS
        const hosts = byService.get(name)
        const set = dump.object()
        if (hosts === undefined || set === undefined) return []
        return [adoptable(set, hosts, this.name)]
      })
    })
  }

  async #look<T>(call: Call, fn: (link: AdminLink) => Promise<T>): Promise<T> {
    const timeout = this.#isFailing ? TIMEOUT_FAILING : undefined
    const options = { provider: 'envoy', name: this.name, paths: PATHS, timeout }
    try {
      const value = await lookAt(this.#address, call, options, fn)
      this.#isFailing = false
      return value
    } catch (error) {
      this.#isFailing = isDrainableError(error)
      throw error
    }
  }

  async #readOnce(
    facts: ProxyFacts,
    services: readonly string[],
    search: Search,
    link: AdminLink,
    clock: Clock,
  ): Promise<ProxyReading | undefined> {
    const fed = clustersOf(facts, services)
    const sampledAt = clock.now()
    const askedAt = this.#now()
    const above = await this.#aggregates.above(facts, fed, link)
    const parts = [...above.values()].flatMap(({ aggregates }) =>
      aggregates.flatMap((a) => a.parts),
    )
    const { sought, namesakes } = search
    // A subset is judged by its own hosts.
    const isDivided = fed.some((one) => facts.configs.get(one)?.subsets !== undefined)
    const members = isDivided ? undefined : search.members
    const asked = [...new Set([...fed, ...parts])]
    const clusters = await this.#clusters(asked, link, members)
    const wanted = clusters.filter((cluster) => services.includes(cluster.service))
    const beside = clusters.filter((cluster) => parts.includes(cluster.cluster))
    // A set that another control plane took away with its cluster is sought all the same.
    const meant = [...new Set([...services, ...sought.map(({ service }) => service)])]
    const there = statsOf(facts)
    const missing = this.#gone.missing(meant, wanted, (service) =>
      namesakes(service).filter(({ stat }) => !there.has(stat)),
    )
    const stats = await this.#stats([...new Set([...fed, ...missing])], facts, link)
    if (stats.clusters !== facts.clusters) return undefined
    const unlisted = await this.#unlisted(facts, wanted, { ...search, members }, stats, link)
    const previous = await this.#previous(wanted, stats, { askedAt, sampledAt }, link)
    const incarnation = await this.#incarnation(link)
    // Another look at the same time may have met the next process already.
    const isNow = this.#facts?.incarnation === incarnation
    if (incarnation !== facts.incarnation || !isNow) return undefined
    const at = this.#now()
    const namesOf = (cluster: string): StatNames => this.#namesOf(cluster, facts)
    const gone = this.#gone.seen(meant, wanted, missing, stats, namesOf, at)
    this.#tracker.seen({ at, clusters: wanted, stats })
    const rows = { clusters: wanted, beside, above, tracker: this.#tracker }
    return { sampledAt, at, incarnation, ...rows, stats, unlisted, gone, previous }
  }

  async #unlisted(
    facts: ProxyFacts,
    clusters: readonly ClusterRows[],
    { sought, members }: Search,
    before: Stats,
    link: AdminLink,
  ): Promise<ReadonlyMap<string, Unlisted>> {
    const lacks = ({ service, hosts }: ClusterRows): boolean =>
      sought.some((one) => one.service === service && !hosts.has(one.member))
    const at = this.#now()
    const isOpen = (rows: ClusterRows): boolean =>
      lacks(rows) || !this.#bounds.isProved(rows.cluster, before, at)
    const open = clusters.filter(isOpen)
    const unlisted = new Map(
      clusters.flatMap((rows) => (open.includes(rows) ? [] : [[rows.cluster, NOTHING] as const])),
    )
    if (open.length === 0) return unlisted
    const names = open.map(({ cluster }) => cluster)
    const now = await this.#stats(names, facts, link)
    const again = await this.#clusters(names, link, members)
    const after = await this.#stats(names, facts, link)
    for (const rows of open) {
      const { cluster } = rows
      const fresh = again.find((one) => one.cluster === cluster)
      // One that is listed by now, or was until now, is no longer what the first rows said.
      if (fresh === undefined || lacks(fresh) !== lacks(rows)) continue
      const found = unlistedOf({ before, now, rows: fresh, after })
      if (found !== undefined) unlisted.set(cluster, this.#bounds.seen(cluster, found, after, at))
    }
    return unlisted
  }

  async #learn(link: AdminLink): Promise<ProxyFacts> {
    const incarnation = await this.#incarnation(link)
    const info = await this.#info(link)
    const { clusters } = await readStats(link, this.name)
    const { configs, others } = await readConfigs(link, this.name)
    const runtime = await readRuntime(info, link, this.name)
    const bootstrap = await link.get('/config_dump?mask=bootstrap.stats_config')
    const shows = parseStatsMatcher(bootstrap, this.name)
    const readAt = this.#now()
    const known = this.#facts?.incarnation === incarnation ? this.#facts.configs : undefined
    const took = new Map([...(known?.values() ?? [])].map(({ stat, service }) => [stat, service]))
    this.#succeed(incarnation, info)
    // The statistics of a process before a hot restart are in those of its child.
    if (this.#previousWork === undefined) {
      for (const stat of await readUnconfigured({ configs, others }, link, this.name))
        this.#gone.stray(stat, took.get(stat))
    }
    this.#facts = { incarnation, info, configs, others, ...runtime, shows, readAt, clusters }
    return this.#facts
  }

  /** What is known of the process before, where another one answers now. */
  #succeed(incarnation: string, { epoch, parentShutdown }: ServerInfo): void {
    const known = this.#facts
    if (known?.incarnation === incarnation) return
    this.#bounds = new UnlistedBounds()
    this.#gone = new GoneClusters()
    this.#tracker = new ScopeTracker()
    this.#previousWork = undefined
    if (epoch === 0) return
    const isNext = known !== undefined && known.info.epoch === epoch - 1
    const before = isNext ? known.incarnation : `epoch ${epoch - 1}`
    this.#previousWork = new PreviousWork(before, new Parent(epoch - 1, parentShutdown))
  }

  async #previous(
    clusters: readonly ClusterRows[],
    stats: Stats,
    { askedAt, sampledAt }: { readonly askedAt: number; readonly sampledAt: number },
    link: AdminLink,
  ): Promise<Previous | undefined> {
    if (this.#previousWork === undefined) return undefined
    const trace = parentTrace(await this.#info(link), (name) => stats.server(name))
    const active = clusters.map((rows) => {
      const all = stats.of(rows.cluster, 'upstream_rq_active') ?? Infinity
      return [rows.cluster, Math.max(0, all - sumOf(rows, 'active'))] as const
    })
    return this.#previousWork.seen({ ...trace, active: new Map(active) }, askedAt, sampledAt)
  }

  async #info(link: AdminLink): Promise<ServerInfo> {
    return parseServerInfo(await link.get('/server_info'), sourceOf('/server_info', this.name))
  }

  /** When this process read its bootstrap, to the millisecond. The static clusters say it for less, where there are any. */
  async #incarnation(link: AdminLink): Promise<string> {
    const source = sourceOf('/config_dump', this.name)
    for (const query of ['resource=static_clusters&mask=last_updated', 'mask=last_updated']) {
      const stamp = parseBootStamp(await link.get(`/config_dump?${query}`), source)
      if (stamp !== undefined) return stamp
    }
    throw malformed(source, 'last_updated, the moment of its start', 'none')
  }

  async #clusters(
    names: readonly string[] | undefined,
    link: AdminLink,
    members?: ReadonlySet<string>,
  ): Promise<ClusterRows[]> {
    if (names?.length === 0) return []
    // Before 1.38.3 the filter is ignored: then everything comes, and is filtered here.
    const filter =
      names === undefined
        ? ''
        : `&filter=${encodeURIComponent(`^(?:${names.map(quoted).join('|')})$`)}`
    const decoder = new ClustersTextDecoder(names, this.name, members)
    await link.get(`/clusters?format=text${filter}`, async (text) => {
      for (let start = 0; start < text.length; start += SLICE) {
        decoder.push(text.slice(start, start + SLICE))
        await breathe()
        link.throwIfAborted()
      }
    })
    return decoder.finish()
  }

  async #stats(names: readonly string[], facts: ProxyFacts, link: AdminLink): Promise<Stats> {
    const own = new Map(names.map((name) => [name, this.#namesOf(name, facts)]))
    return await readStats(link, this.name, own)
  }

  #namesOf(cluster: string, { configs, shows }: ProxyFacts): StatNames {
    const known = configs.get(cluster) ?? this.#gone.namesOf(cluster)
    return { stat: known?.stat ?? statName(cluster), shows: known?.shows ?? shows }
  }

  #isStale({ clusters, readAt }: ProxyFacts): boolean {
    return clusters === undefined && this.#now() - readAt > CONFIG_AGE
  }
}

/** The clusters that are fed by these sets. */
function clustersOf(facts: ProxyFacts, services: readonly string[]): string[] {
  return [...facts.configs.values()]
    .filter((config) => services.includes(config.service))
    .map((config) => config.cluster)
}

/** What the statistics of the clusters that a proxy has go by. */
function statsOf({ configs, others }: ProxyFacts): ReadonlySet<string> {
  return new Set([...configs.values(), ...others].map(({ stat }) => stat))
}
