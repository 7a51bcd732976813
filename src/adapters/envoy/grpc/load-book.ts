import type { Version } from '../../../kit/version.js'
import type { LoadCount, LoadReports, NodeLoad } from '../sources/sink.js'
import type { LoadStatsRequest } from './gen/envoy/service/load_stats/v3/lrs_pb.js'
import { checkName, NameLimit } from './name-limit.js'
import { addressOf } from './wire-endpoint.js'

/** Without a look. */
const IDLE_INTERVAL = 60_000
/** A look counts as going on for this long. */
const DEMAND = 10_000
/** A report is 61 KB, so a fleet is asked less often. */
const PER_NODE = 10
/** More clusters and endpoints than any proxy has. */
const ONE = {
  count: 200_000,
  characters: 16_000_000,
  of: 'clusters and endpoints in the load reports of one proxy',
}
const ALL = {
  count: 20_000_000,
  characters: 1_000_000_000,
  of: 'clusters and endpoints in the load reports of all proxies',
}

interface ClusterCounts {
  service: string
  /** The earliest moment the last report can be from. */
  sampledAt: number
  readonly members: Map<string, { active: number; arrivals: number }>
  /** A locality had more work than its endpoints, or one that has no address: not counted by endpoint. */
  coarse: boolean
}

interface LoadStream {
  readonly node: string
  readonly version: Version | undefined
  readonly incarnation: string
  readonly ask: (interval: number) => void
  readonly clusters: Map<string, ClusterCounts>
  /** Of its clusters, and of the endpoints in all of them. */
  readonly names: NameLimit
  /** The earliest moment the last report can be from; before the first: when reports were asked for. */
  bound: number
  /** The last change of the interval. */
  asked: { readonly at: number; readonly before: number }
  lastReport: number | undefined
  connected: boolean
  since: number
}

/**
 * Load reports of a fleet.
 *
 * A host that a report leaves out is idle, a cluster that it leaves out is unknown. Reports carry no
 * time, but each says how long it covers: the first begins when we ask, so the n-th is from no
 * earlier than that moment plus all they covered since, however late it comes in.
 */
export class LoadBook implements LoadReports {
  readonly #now: () => number
  readonly #interval: number
  readonly #serves: (service: string) => boolean
  readonly #streams = new Map<object, LoadStream>()
  readonly #names = new NameLimit(ALL)
  readonly #listeners = new Set<() => void>()
  #demandedAt = -Infinity
  #asked = IDLE_INTERVAL
  #calm: NodeJS.Timeout | undefined
  #count = 0

  /** @param serves - whether an endpoint set is ours: who reports none of them leaves nothing behind */
  constructor(
    now: () => number,
    interval: number,
    serves: (service: string) => boolean = () => true,
  ) {
    this.#now = now
    this.#serves = serves
    this.#interval = interval
  }

  demand(): void {
    this.#demandedAt = this.#now()
    const live = [...this.#streams.values()].filter(({ connected }) => connected)
    const interval = Math.max(this.#interval, live.length * PER_NODE)
    if (this.#asked !== interval) {
      const [now, before] = [this.#demandedAt, this.#asked]
      this.#asked = interval
      for (const stream of live) askAgain(stream, interval, now, before)
    }
    this.#calm ??= setInterval(() => this.#calmDown(), DEMAND / 2).unref()
  }

  nodes(): readonly NodeLoad[] {
    return [...this.#streams.values()].map((stream) => this.#toLoad(stream))
  }

  listen(fn: () => void): () => void {
    this.#listeners.add(fn)
    return () => this.#listeners.delete(fn)
  }

  drop(node: string): void {
    for (const [key, stream] of this.#streams) {
      if (stream.node === node && !stream.connected) this.#streams.delete(key)
    }
  }

  /** A stream has said who it is. */
  begin(
    key: object,
    node: string,
    version: Version | undefined,
    ask: (interval: number) => void,
  ): void {
    // The next stream of a node takes the place of the one it lost.
    for (const [old, stream] of this.#streams) {
      if (stream.node === node && !stream.connected) {
        this.#streams.delete(old)
        break
      }
    }
    const now = this.#now()
    this.#streams.set(key, {
      node,
      version,
      incarnation: `load stream ${++this.#count}`,
      ask,
      clusters: new Map(),
      names: new NameLimit(ONE, this.#names),
      bound: now,
      asked: { at: now, before: 0 },
      lastReport: undefined,
      connected: true,
      since: now,
    })
    ask(this.#asked)
  }

  report(key: object, { clusterStats }: LoadStatsRequest): void {
    const stream = this.#streams.get(key)
    if (stream?.connected !== true) return
    const now = this.#now()
    stream.lastReport = now
    const known = clusterStats.filter(({ clusterName }) => stream.clusters.has(clusterName))
    const covered = (known.length > 0 ? known : clusterStats).map(msOf)
    stream.bound = Math.min(now, boundOf(stream, Math.max(0, ...covered)))
    const begun = new Set<ClusterCounts>()
    for (const stats of clusterStats) {
      const counts = clusterOf(stream, stats.clusterName)
      checkName(stats.clusterServiceName, 'a cluster_service_name')
      if (stats.clusterServiceName !== '') counts.service = stats.clusterServiceName
      counts.sampledAt = stream.bound
      // A cluster that is listed twice is counted together.
      if (!begun.has(counts)) for (const count of counts.members.values()) count.active = 0
      begun.add(counts)
      for (const locality of stats.upstreamLocalityStats) {
        counts.coarse ||= isCoarse(locality)
        for (const endpoint of locality.upstreamEndpointStats) {
          const { member } = addressOf(endpoint.address)
          if (member === undefined) {
            counts.coarse ||= hasWork(endpoint) // whoever's it is
            continue
          }
          const count = countOf(stream, counts, member)
          count.active += Number(endpoint.totalRequestsInProgress)
          count.arrivals += Number(endpoint.totalIssuedRequests)
        }
      }
    }
    for (const fn of [...this.#listeners]) fn()
  }

  end(key: object): void {
    const stream = this.#streams.get(key)
    if (stream === undefined) return
    stream.connected = false
    stream.since = this.#now()
    const isOurs = [...stream.clusters.values()].some(({ service }) => this.#serves(service))
    if (!isOurs) this.#streams.delete(key)
    // Who is gone is unread: its counts tell nothing any more.
    stream.clusters.clear()
    stream.names.giveAll()
    for (const fn of [...this.#listeners]) fn()
  }

  close(): void {
    clearInterval(this.#calm)
    this.#calm = undefined
  }

  #calmDown(): void {
    if (this.#now() - this.#demandedAt < DEMAND) return
    this.close()
    const before = this.#asked
    this.#asked = IDLE_INTERVAL
    for (const stream of this.#streams.values()) {
      if (stream.connected) askAgain(stream, IDLE_INTERVAL, this.#now(), before)
    }
  }

  #toLoad(stream: LoadStream): NodeLoad {
    const patience = Math.max(3_000, 4 * this.#asked)
    return {
      node: stream.node,
      version: stream.version,
      incarnation: stream.incarnation,
      connected: stream.connected,
      reports: stream.lastReport !== undefined && this.#now() - stream.lastReport < patience,
      since: stream.since,
      of: (service, member) => sumOf(stream, service, member),
      clusters: (service) => clustersOf(stream, service).length,
    }
  }
}

function clusterOf(stream: LoadStream, cluster: string): ClusterCounts {
  let counts = stream.clusters.get(cluster)
  if (counts === undefined) {
    stream.names.take(cluster)
    counts = { service: cluster, sampledAt: stream.bound, members: new Map(), coarse: false }
    stream.clusters.set(cluster, counts)
  }
  return counts
}

function countOf(
  { names }: LoadStream,
  { members }: ClusterCounts,
  member: string,
): { active: number; arrivals: number } {
  let count = members.get(member)
  if (count === undefined) {
    names.take(member)
    members.set(member, (count = { active: 0, arrivals: 0 }))
  }
  return count
}

function askAgain(stream: LoadStream, interval: number, at: number, before: number): void {
  stream.asked = { at, before }
  stream.ask(interval)
}

type LocalityStats = LoadStatsRequest['clusterStats'][number]['upstreamLocalityStats'][number]

/** Some xDS clients, gRPC's own among them, count by locality only: there an endpoint that is left out is not idle. */
function isCoarse(locality: LocalityStats): boolean {
  const { totalRequestsInProgress, totalIssuedRequests, upstreamEndpointStats } = locality
  const named = upstreamEndpointStats.reduce(
    (sum, one) => ({
      active: sum.active + one.totalRequestsInProgress,
      issued: sum.issued + one.totalIssuedRequests,
    }),
    { active: 0n, issued: 0n },
  )
  return totalRequestsInProgress > named.active || totalIssuedRequests > named.issued
}

function hasWork({
  totalRequestsInProgress,
  totalIssuedRequests,
}: LocalityStats['upstreamEndpointStats'][number]): boolean {
  return totalRequestsInProgress > 0n || totalIssuedRequests > 0n
}

/** Milliseconds that a report covers. */
function msOf({ loadReportInterval: covered }: LoadStatsRequest['clusterStats'][number]): number {
  return covered === undefined ? 0 : Number(covered.seconds) * 1_000 + covered.nanos / 1e6
}

/** A report that covers far less than the interval before the last one was asked for, was made after asking. */
function boundOf({ bound, asked }: LoadStream, covered: number): number {
  const after = covered < asked.before / 2 ? asked.at + covered : -Infinity
  return Math.max(bound + covered, after)
}

function clustersOf({ clusters }: LoadStream, service: string): ClusterCounts[] {
  return [...clusters.values()].filter((counts) => counts.service === service)
}

function sumOf(stream: LoadStream, service: string, member: string): LoadCount | undefined {
  const clusters = clustersOf(stream, service)
  if (clusters.length === 0 || clusters.some(({ coarse }) => coarse)) return undefined
  const counts = clusters.flatMap(({ members }) => members.get(member) ?? [])
  return {
    active: counts.reduce((sum, count) => sum + count.active, 0),
    arrivals: counts.reduce((sum, count) => sum + count.arrivals, 0),
    sampledAt: Math.min(...clusters.map(({ sampledAt }) => sampledAt)),
  }
}
