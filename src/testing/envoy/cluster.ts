import { nameOf, type ReceivedEndpoint, type ReceivedSet, type Status } from './assignment.js'
import type { Settings } from './options.js'

/** One host, as the main thread sees it; `effective` is what the workers go by. */
export interface Host {
  readonly name: string
  endpoint: ReceivedEndpoint
  effective: Status
  /** Whether the panic sum leaves it out: as of the last rebuild. */
  excluded: boolean
  failedCheck: boolean
  pendingRemoval: boolean
  active: number
  pending: number
  requests: number
  connections: number
  /** Connections without a request, kept for reuse. */
  idle: number
}

/** What became of an update. */
export type Update = { readonly ok: true } | { readonly ok: false; readonly error: string }

/** One EDS cluster, with the oddities of the real one. */
export class Cluster {
  readonly name: string
  readonly service: string
  readonly hosts = new Map<string, Host>()
  version = ''
  readonly counters = { attempt: 0, success: 0, rejected: 0, failure: 0, panic: 0, noRebuild: 0 }
  /** Requests whose host was removed under them. */
  orphans = 0
  /** All that ever began, on hosts that were removed too, and how often a host came or went. */
  readonly totals = { requests: 0, connections: 0, changes: 0 }
  readonly #settings: Settings
  #updatedAt = -Infinity
  #held: NodeJS.Timeout | undefined
  #turn = 0

  constructor(name: string, settings: Settings) {
    this.name = name
    this.service = settings.services[name] ?? name
    this.#settings = settings
  }

  /** Takes a set, or refuses the whole of it and goes on with the old one. */
  update(set: ReceivedSet, version: string): Update {
    this.counters.attempt++
    const bad = set.endpoints.findIndex(({ weight }) => weight === 0)
    if (set.service !== this.service || bad !== -1) {
      this.counters.rejected++
      const error =
        bad === -1
          ? `Unexpected EDS cluster (expecting ${this.service}): ${set.service}`
          : `goo.gle/debugstr  \ncluster_name: "${set.service}"\n: Proto constraint validation failed (ClusterLoadAssignmentValidationError.Endpoints[0]: embedded message failed validation | caused by LocalityLbEndpointsValidationError.LbEndpoints[${bad}]: embedded message failed validation | caused by LbEndpointValidationError.LoadBalancingWeight: value must be greater than or equal to 1)`
      return { ok: false, error }
    }
    const wanted = new Map<string, ReceivedEndpoint>()
    for (const endpoint of set.endpoints) {
      const name = nameOf(endpoint)
      if (!wanted.has(name)) wanted.set(name, endpoint) // the first of two wins
    }
    const moved = this.#remove(wanted) || [...wanted.keys()].some((name) => !this.hosts.has(name))
    let changed = moved
    for (const [name, endpoint] of wanted) changed = this.#put(name, endpoint) || changed
    this.version = version
    this.counters.success++
    // Between two ways of not being healthy nothing is rebuilt: the sums stay as they were.
    if (moved) this.totals.changes++
    if (changed) this.#spread(moved)
    else this.counters.noRebuild++
    return { ok: true }
  }

  /** An update that is none of its own sets. */
  refuse(): void {
    this.counters.attempt++
    this.counters.rejected++
  }

  /** What an active check finds. */
  setHealth(name: string, passing: boolean): void {
    const host = this.hosts.get(name)
    if (host === undefined) return
    host.failedCheck = !passing
    if (host.pendingRemoval && !passing) this.#forget(host)
    this.#spread(false)
  }

  /** The host that a new request goes to, as the workers see things now; undefined: 503. */
  pick(labels: Readonly<Record<string, string>> = {}): Host | undefined {
    const hosts = this.#subset(labels)
    const counted = hosts.filter(({ excluded }) => !excluded)
    const healthy = hosts.filter(isHealthy)
    const share = counted.length === 0 ? 0 : (100 * healthy.length) / counted.length
    const panics = this.#settings.panicThreshold > 0 && share < this.#settings.panicThreshold
    if (panics) this.counters.panic++
    const choice = panics ? hosts : healthy
    return choice[this.#turn++ % Math.max(1, choice.length)]
  }

  /** Requests in flight, those of removed hosts too. */
  get active(): number {
    return [...this.hosts.values()].reduce((sum, host) => sum + host.active, this.orphans)
  }

  /** Connections, those of removed hosts too: each has a request. */
  get connections(): number {
    const hosts = [...this.hosts.values()]
    return hosts.reduce((sum, { active, idle }) => sum + active + idle, this.orphans)
  }

  /** `membership_*`: what the sums are made of. */
  get membership(): Readonly<Record<'total' | 'healthy' | 'degraded' | 'excluded', number>> {
    const hosts = [...this.hosts.values()]
    const healthy = hosts.filter(isHealthy)
    const degraded = healthy.filter(({ effective }) => effective === 'DEGRADED').length
    return {
      total: hosts.length,
      healthy: healthy.length - degraded,
      degraded,
      excluded: hosts.filter(({ excluded }) => excluded).length,
    }
  }

  /** The hosts of the subset that a route asks for; all of them where no selector has its keys. */
  #subset(labels: Readonly<Record<string, string>>): Host[] {
    const hosts = [...this.hosts.values()]
    const keys = Object.keys(labels)
    const selects = this.#settings.subsets.some(
      (selector) => selector.length === keys.length && selector.every((key) => keys.includes(key)),
    )
    if (!selects) return hosts
    const found = hosts.filter(({ endpoint }) =>
      keys.every((key) => endpoint.labels[key] === labels[key]),
    )
    return found.length === 0 ? hosts : found
  }

  begin(host: Host): () => void {
    if (host.idle > 0) host.idle--
    else {
      host.connections++
      this.totals.connections++
    }
    host.requests++
    this.totals.requests++
    host.active++
    let ended = false
    return () => {
      if (ended) return
      ended = true
      if (this.hosts.get(host.name) !== host) {
        this.orphans--
        return
      }
      host.active--
      host.idle++
      if (this.#settings.closeOnSetChange && host.effective === 'DRAINING') host.idle--
    }
  }

  close(): void {
    clearTimeout(this.#held)
  }

  #remove(wanted: ReadonlyMap<string, unknown>): boolean {
    let moved = false
    for (const host of [...this.hosts.values()]) {
      if (wanted.has(host.name)) continue
      const { activeChecks, ignoreHealthOnRemoval } = this.#settings
      const passes = activeChecks && !host.failedCheck && host.endpoint.status !== 'UNHEALTHY'
      if (passes && !ignoreHealthOnRemoval) {
        host.pendingRemoval = true
        continue
      }
      this.#forget(host)
      moved = true
    }
    return moved
  }

  #forget(host: Host): void {
    this.hosts.delete(host.name)
    this.orphans += host.active
    this.totals.changes++
  }

  /** Returns whether the health of the host is another one, as far as Envoy tells them apart. */
  #put(name: string, endpoint: ReceivedEndpoint): boolean {
    const known = this.hosts.get(name)
    if (known !== undefined) {
      const before = coarse(known.endpoint.status, known.failedCheck)
      known.endpoint = endpoint
      known.pendingRemoval = false
      return coarse(endpoint.status, known.failedCheck) !== before
    }
    this.hosts.set(name, {
      name,
      endpoint,
      effective: endpoint.status,
      excluded: endpoint.status === 'DRAINING',
      failedCheck: false,
      pendingRemoval: false,
      active: 0,
      pending: 0,
      requests: 0,
      connections: 0,
      idle: 0,
    })
    return true
  }

  /** Hands the view to the workers: at once from 1.40 on and for a changed membership, else a merge window apart. */
  #spread(moved: boolean): void {
    const { version, mergeWindow } = this.#settings
    const now = performance.now()
    const immediate = moved || version[0] > 1 || version[1] >= 40 || mergeWindow === 0
    if (immediate || now - this.#updatedAt > mergeWindow) {
      clearTimeout(this.#held)
      this.#held = undefined
      this.#updatedAt = now
      this.#apply()
      return
    }
    this.#held ??= setTimeout(() => {
      this.#held = undefined
      this.#updatedAt = performance.now()
      this.#apply()
    }, mergeWindow).unref()
  }

  #apply(): void {
    for (const host of this.hosts.values()) {
      host.effective = host.endpoint.status
      host.excluded = host.effective === 'DRAINING'
      if (this.#settings.closeOnSetChange && host.effective === 'DRAINING') host.idle = 0
    }
  }
}

function isHealthy(host: Host): boolean {
  return ['HEALTHY', 'UNKNOWN', 'DEGRADED'].includes(host.effective) && !host.failedCheck
}

function coarse(status: Status, failedCheck: boolean): 'healthy' | 'degraded' | 'unhealthy' {
  if (failedCheck) return 'unhealthy'
  if (status === 'DEGRADED') return 'degraded'
  return status === 'HEALTHY' || status === 'UNKNOWN' ? 'healthy' : 'unhealthy'
}
