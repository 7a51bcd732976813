import { Cluster } from './cluster.js'
import type { ReceivedEndpoint } from './assignment.js'
import type { FakeEds, FakeEndpoint, Settings } from './options.js'
import { follow, report, type Stop } from './sources.js'

const NOWHERE = { region: '', zone: '', subZone: '' }

/** What a child shows of its parent: as of the last flush of its statistics. */
interface Merged {
  /** Its own uptime, and what its parent's statistics said of that at last. */
  readonly uptime: number
  readonly connections: number
  readonly active: ReadonlyMap<string, number>
}

/** One process of a fake Envoy: it has sets, counters and load reports of its own. */
export class Process {
  readonly epoch: number
  readonly bootAt: Date
  readonly clusters = new Map<string, Cluster>()
  /** Those that CDS removed. */
  readonly removed: Cluster[] = []
  /** Clusters that came by CDS. */
  added = 0
  readonly #settings: Settings
  readonly #firstBoot: number
  readonly #startedAt = Date.now()
  #eds: FakeEds | undefined
  #parent: Process | undefined
  #merged: Merged | undefined
  /** What its own statistics say since it was replaced. */
  #last = { uptime: 0, connections: 0 }
  #flush: NodeJS.Timeout | undefined
  #end: NodeJS.Timeout | undefined
  #stops: Stop[] = []
  #running = true

  constructor(settings: Settings, bootAt: Date, eds: FakeEds | undefined, parent?: Process) {
    this.#settings = settings
    this.bootAt = bootAt
    this.#eds = eds
    this.#parent = parent
    this.epoch = parent === undefined ? 0 : parent.epoch + 1
    this.#firstBoot = parent === undefined ? this.#startedAt : parent.#firstBoot
    for (const [name, endpoints] of Object.entries(settings.pools)) {
      const cluster = new Cluster(name, settings)
      if (eds === undefined) {
        const received = endpoints.map(toReceived)
        cluster.update({ service: cluster.service, endpoints: received }, '1')
      }
      this.clusters.set(name, cluster)
    }
    this.added = this.clusters.size
    this.begin(eds)
    if (parent === undefined) return
    parent.#replaced()
    this.#merge()
    this.#flush = setInterval(() => this.#merge(), settings.statsFlush).unref()
    this.#end = setTimeout(() => parent.stop(), settings.parentShutdown).unref()
  }

  /** Whether it is there. */
  get running(): boolean {
    return this.#running
  }

  get eds(): FakeEds | undefined {
    return this.#eds
  }

  /** Whole seconds. */
  get uptime(): { readonly current: number; readonly all: number } {
    const now = Date.now()
    return {
      current: Math.floor((now - this.#startedAt) / 1_000),
      all: Math.floor((now - this.#firstBoot) / 1_000),
    }
  }

  /** Of its parent, as of the last flush; a parent that has ended has nothing. */
  get merged(): Merged | undefined {
    return this.#merged
  }

  /** Requests of the parent in a cluster, as the gauges of this process have them. */
  parents(cluster: string): number {
    return this.#parent?.running === true ? (this.#merged?.active.get(cluster) ?? 0) : 0
  }

  /** Takes sets from there from now on. */
  begin(eds: FakeEds | undefined): void {
    this.#stopFollowing()
    this.#eds = eds
    const clusters = [...this.clusters.values()]
    if (eds !== undefined) this.#stops.push(follow(eds, this.#settings, clusters))
    const { loads } = this.#settings
    if (loads !== undefined) this.#stops.push(report(loads, this.#settings, clusters))
  }

  /** A cluster arrives by CDS. */
  add(name: string): void {
    this.clusters.set(name, new Cluster(name, this.#settings))
    this.added++
    this.begin(this.#eds)
  }

  /** A cluster leaves by CDS. */
  remove(name: string): void {
    const cluster = this.clusters.get(name)
    if (cluster === undefined) return
    this.clusters.delete(name)
    this.removed.push(cluster)
    this.begin(this.#eds)
  }

  /** It is killed, and every process before it. */
  stop(): void {
    this.#running = false
    clearInterval(this.#flush)
    clearTimeout(this.#end)
    this.#parent?.stop()
    this.#stopFollowing()
  }

  /** It makes no more statistics of its own, and the process before it ends. */
  #replaced(): void {
    clearInterval(this.#flush)
    this.#last = { uptime: this.uptime.all, connections: this.#merged?.connections ?? 0 }
    this.#parent?.stop()
  }

  #merge(): void {
    const parent = this.#parent?.running === true ? this.#parent : undefined
    const last = parent === undefined ? { uptime: 0, connections: 0 } : parent.#last
    const active = [...(parent?.clusters ?? [])].map(
      ([name, cluster]) => [name, cluster.active] as const,
    )
    this.#merged = {
      uptime: this.uptime.all + last.uptime,
      connections: active.reduce((sum, [, count]) => sum + count, last.connections),
      active: new Map(active),
    }
  }

  #stopFollowing(): void {
    for (const stop of this.#stops) stop()
    this.#stops = []
    for (const cluster of this.clusters.values()) cluster.close()
  }
}

function toReceived({ address, port, hostname, labels }: FakeEndpoint): ReceivedEndpoint {
  return {
    address,
    port,
    hostname: hostname ?? '',
    status: 'HEALTHY',
    weight: undefined,
    priority: 0,
    labels: labels ?? {},
    locality: NOWHERE,
  }
}
