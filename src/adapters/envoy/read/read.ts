import type { LoadScope, PoolReading, PresentReading, Reading } from '../../../provider/contract.js'
import { RecentMap } from '../../../kit/recent-map.js'
import { refKey } from '../../../provider/member-ref.js'
import type { Assignment, Endpoint } from '../codec/assignment.js'
import type { ClusterConfig, OtherCluster } from '../codec/config-dump.js'
import { whyNoSet } from './absence.js'
import type { ProxyView } from '../session/roster.js'
import { Force, type ForceOptions } from './force.js'
import { heldAfter, heldIn, type Held, type Holdings } from './holdings.js'
import { hiddenWords, leftIn, leftWords, NONE, type Left } from './left.js'
import { downMembers, healthOf, queuedAt, rowsOf, whenNone } from './hosts.js'
import type { PanicVerdict } from './panic-view.js'
import { goneScope, isRemovedThere, removedScope } from './removed.js'
import { blank, NO_PROXY, previousLoad } from './scope.js'
import type { Wanted } from '../session/proxy.js'
import type { Proxy, ProxyFacts } from '../session/proxy.js'
import { takesWork, toAdminState } from '../codec/status.js'

const CONNECT_TIMEOUT = 5_000
const UNSEEN_PANIC =
  'by load reports alone it is not seen when the cluster goes into panic mode, in which Envoy sends requests to drained endpoints too: list the admin API, or give panicThreshold: 0 where the clusters have healthy_panic_threshold 0'
const UNSEEN_SUBSETS =
  'by load reports alone it is not seen whether the cluster balances by subsets, and the endpoint has labels (envoy.lb): a subset without a healthy endpoint may send its requests to a drained one; list the admin API'

export interface ReaderOptions extends ForceOptions {
  /** Whether admin APIs are listed at all. */
  readonly hasAdmin: boolean
  readonly connectTimeout: number | undefined
}

/** A member of a set, and when it is looked at. */
interface Looked extends Wanted {
  readonly endpoint: Endpoint
  /** By the clock that samples are told in. */
  readonly now: number
  readonly clockOffset: number
  /** What it held at the look before, and what is to be remembered of this one. */
  readonly held: Holdings | undefined
  readonly next: Map<string, Held>
}

/** What a member's work and state are, put together from the store, the receipts and the proxies. */
export class MemberReader {
  readonly #options: ReaderOptions
  readonly #force: Force
  /** By member. */
  readonly #holdings: RecentMap<string, Holdings>
  /** The same by the name that it was last asked for by. */
  readonly #heldByName: RecentMap<string, Holdings>
  /** Cluster name by endpoint set, where exactly one cluster is fed by it. */
  readonly #pools = new Map<string, string>()
  /** Sets that a cluster of some proxy was seen to take. */
  readonly #taken = new Set<string>()
  #services: ReadonlyMap<string, string> = new Map()
  #others: readonly OtherCluster[] = []

  constructor(options: ReaderOptions) {
    this.#options = options
    this.#force = new Force(options)
    this.#holdings = new RecentMap(options.now)
    this.#heldByName = new RecentMap(options.now)
  }

  /** Which set feeds which cluster; a set may also be called by its own name. */
  services(proxies: readonly Proxy[]): ReadonlyMap<string, string> {
    const services = new Map<string, string>()
    const clusters = new Map<string, Set<string>>()
    for (const proxy of proxies) {
      for (const { cluster, service } of proxy.facts?.configs.values() ?? []) {
        services.set(cluster, service)
        clusters.set(service, (clusters.get(service) ?? new Set()).add(cluster))
      }
    }
    for (const [service, names] of clusters) {
      const [only] = names
      if (names.size === 1 && only !== undefined) this.#pools.set(service, only)
      else this.#pools.delete(service)
    }
    this.#services = services
    this.#others = proxies.flatMap(({ facts }) => facts?.others ?? [])
    return services
  }

  /** Why a pool has no endpoint set here, by what the last look showed. */
  whyNoSet(pool: string): string {
    const pools = this.#options.store.names().map((name) => this.poolOf(name))
    return whyNoSet(pool, { services: this.#services, others: this.#others, pools })
  }

  poolOf(service: string): string {
    return this.#pools.get(service) ?? service
  }

  /**
   * The longest `connect_timeout` of the clusters that the sets feed: as the proxies have it, and as the
   * caller says, or by default, where one does not tell.
   *
   * @param isWhole - whether every proxy is among them
   */
  connectTimeout(facts: readonly ProxyFacts[], isWhole: boolean): number {
    const assumed = this.#options.connectTimeout ?? CONNECT_TIMEOUT
    const known = facts.map(({ configs }) => {
      const own = [...configs.values()].filter(
        ({ service }) => this.#options.store.set(service) !== undefined,
      )
      return own.length === 0 ? assumed : Math.max(...own.map((one) => one.connectTimeout))
    })
    return Math.max(...known, ...(isWhole && known.length > 0 ? [] : [assumed]))
  }

  /** @param clockOffset - of the caller's clock to ours */
  reading(wanted: Wanted, views: readonly ProxyView[], clockOffset: number): Reading {
    const { ref, service, member } = wanted
    const endpoint = this.#options.store.endpoint(service, member)
    const now = clockOffset + this.#options.now()
    const key = refKey({ pool: service, member })
    // Once no proxy has the cluster any more, which set fed it is told by nobody.
    const held =
      this.#holdings.get(key) ??
      (endpoint === undefined ? this.#heldByName.get(refKey(ref)) : undefined)
    if (endpoint !== undefined) {
      const next = new Map<string, Held>()
      const looked = { ...wanted, endpoint, now, clockOffset, held, next }
      const scopes = this.#scopes(views, looked)
      this.#holdings.set(key, next)
      this.#heldByName.set(refKey(ref), next)
      return this.#present(wanted, endpoint, views, scopes)
    }
    if (held === undefined) {
      const isKnown = this.#options.store.set(service) !== undefined
      const hints = isKnown ? {} : { hints: [this.whyNoSet(ref.pool)] }
      return { ref, present: false, scopes: [], ...hints }
    }
    const scopes = views.flatMap((view) =>
      goneScope({ view, service, member, now }, heldIn(held, view), this.#isForeign),
    )
    return { ref, present: false, scopes }
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
      whenNone: whenNone(views, service),
    }
  }

  /** The cluster settings of every proxy that can be read. */
  configs(views: readonly ProxyView[], service: string): ClusterConfig[] {
    return views.flatMap(({ proxy }) =>
      [...(proxy?.facts?.configs.values() ?? [])].filter((config) => config.service === service),
    )
  }

  /** Hosts in words a person needs, where this set would put a proxy's cluster into panic. */
  panic(set: Assignment, views: readonly ProxyView[], member: string): PanicVerdict | undefined {
    if (this.#force.isRefused(views, set.cluster)) return undefined
    const { store } = this.#options
    const standing = (name: string): Endpoint | undefined => store.endpoint(set.cluster, name)
    return this.#force.panic.planned(set, views, member, standing)
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
    const configs = this.configs(views, service)
    const health = healthOf(endpoint.status, rows, configs, this.#options.hasAdmin)
    const sticky = stickyIn(configs)
    const unverified = this.#unverified({ ref, service, member }, endpoint, views, configs)
    const hints = scopes.flatMap(({ inForce, active, note }) =>
      inForce === true && active > 0 ? (note ?? []) : [],
    )
    if (sticky !== undefined) hints.push(sticky)
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
      ...(unverified === undefined ? {} : { unverified }),
      ...(hints.length === 0 ? {} : { hints }),
    }
  }

  /** What may still come to a drained member although all counts say that nothing does. */
  #unverified(
    { service, member }: Wanted,
    endpoint: Endpoint,
    views: readonly ProxyView[],
    configs: readonly ClusterConfig[],
  ): string | undefined {
    const picking = configs.find((config) => config.overrideHost)
    if (picking !== undefined) {
      return `cluster ${picking.cluster} lets requests pick their host (policy override_host), drained ones too: keep the picker (an inference picker, Endpoint Override) from naming this endpoint`
    }
    const set = this.#options.store.set(service)
    if (set === undefined || endpoint.status !== 'DRAINING') return undefined
    const sticky = stickyIn(configs)
    if (sticky !== undefined) return sticky
    for (const view of views) {
      if (view.state !== 'read') continue
      const why = transactionIn(view, service, member) ?? this.#unseen(view, set, member)
      if (why !== undefined) return why
    }
    return undefined
  }

  /** What of a proxy that only reports loads may send to a drained member. */
  #unseen(view: ProxyView, set: Assignment, member: string): string | undefined {
    if (view.load === undefined) return undefined
    // A panic that begins later sends new requests to drained endpoints, and no report says so beforehand.
    if (this.#options.panicThreshold !== 0) return UNSEEN_PANIC
    const labels = this.#options.store.endpoint(set.cluster, member)?.labels
    return labels === undefined ? undefined : UNSEEN_SUBSETS
  }

  #scopes(views: readonly ProxyView[], looked: Looked): LoadScope[] {
    const { service, now } = looked
    const scopes = views.map((view) => this.#scope(view, looked))
    if (this.#isTaken(views, service)) return scopes
    const without = views.some((view) => view.state === 'read')
      ? `no proxy lists a cluster fed by the endpoint set '${service}'`
      : 'no proxy is known yet'
    return [...scopes, { ...blank(NO_PROXY, now), note: without }]
  }

  /** The member in one process, which is remembered. */
  #scope(view: ProxyView, looked: Looked): LoadScope {
    const { service, member, endpoint } = looked
    const last = heldIn(looked.held, view)
    const isForeign = this.#isForeign
    const isRemoved = isForeign && isRemovedThere(view, service, member)
    const isDraining = endpoint.status === 'DRAINING'
    const begun = view.reading === undefined ? Infinity : begunIn(view, looked)
    const isFallen = last?.isFallen === true || (isDraining && begun < (last?.begun ?? 0))
    const scope =
      previousLoad(view, looked.now) ??
      (isRemoved ? removedScope({ view, service, member, now: looked.now }, last) : undefined) ??
      this.#loadScope(view, looked) ??
      this.#readScope(view, looked, last, isFallen)
    const isSeen = view.reading !== undefined && isDraining && !isRemoved
    const outcome = { begun: isSeen ? begun : (last?.begun ?? 0), isDraining }
    const now = heldAfter(last, view, scope, { ...outcome, isForeign, isRemoved, isFallen })
    if (now !== undefined) looked.next.set(view.scope, now)
    return scope
  }

  /**
   * Whether any process is known to take a set, or may do so: where none does, its name may be wrong, or the proxies it is
   * meant for are not there yet.
   */
  #isTaken(views: readonly ProxyView[], service: string): boolean {
    if (views.some((view) => rowsOf(view, service).length > 0)) this.#taken.add(service)
    const isBare = ({ state, role, reading }: ProxyView): boolean =>
      state === 'ended' || (state === 'read' && role === 'proxy' && reading !== undefined)
    return this.#taken.has(service) || !views.every(isBare)
  }

  #readScope(
    view: ProxyView,
    looked: Looked,
    last: Held | undefined,
    isFallen: boolean,
  ): LoadScope {
    const { service, member, endpoint, now } = looked
    const { reading } = view
    const note = noteOf(view.note)
    if (view.state === 'ended') return { ...blank(view.scope, now), state: 'ended', ...note }
    if (reading === undefined)
      return { ...blank(view.scope, now, view.proxy?.facts?.incarnation), ...note }
    const clusters = rowsOf(view, service)
    const left = endpoint.status === 'DRAINING' ? leftOf(view, service, last, isFallen) : NONE
    if (left.hidden !== undefined)
      return { ...blank(view.scope, now, reading.incarnation), note: hiddenWords(left.hidden) }
    const rows = clusters.flatMap(({ hosts }) => hosts.get(member) ?? [])
    const force = this.#force.of(view, clusters, service, member, endpoint)
    const why =
      force ?? (rows.length < clusters.length ? 'it does not list the endpoint yet' : undefined)
    return {
      scope: view.scope,
      incarnation: reading.incarnation,
      state: 'read',
      sampledAt: reading.sampledAt,
      active: sum(rows, (row) => row.active) + left.most,
      queued: sum(clusters, (rows) => queuedAt(rows, member, reading.stats)),
      pooled: sum(rows, (row) => Math.max(0, row.connections - row.active)),
      // What is no longer listed counts nothing, and nothing new comes to it.
      arrivals: clusters.length === 0 ? (last?.arrivals ?? 0) : begunIn(view, looked),
      // The counters of a host are its process's own: a hot restart hands on none of them.
      countersFrom: reading.incarnation,
      inForce: why === undefined && !left.isFresh,
      ...noteOf(why ?? leftWords(left, view.scope)),
    }
  }

  #loadScope(
    view: ProxyView,
    { service, member, now, clockOffset }: Looked,
  ): LoadScope | undefined {
    const { state, load, scope } = view
    if (state !== 'read' || load === undefined) return undefined
    const counts = load.of(service, member)
    if (counts === undefined) {
      const note = 'its load report does not list the cluster by endpoint'
      return { ...blank(scope, now), note }
    }
    const why = this.#force.missing(view, service, member)
    return {
      scope,
      incarnation: load.incarnation,
      state: 'read',
      sampledAt: counts.sampledAt + clockOffset,
      active: counts.active,
      queued: 0,
      arrivals: counts.arrivals,
      inForce: why === undefined,
      ...noteOf(why),
    }
  }

  get #isForeign(): boolean {
    return this.#options.sink.kind === 'observed'
  }
}

/** Work of a drained member on host objects that are listed no more: those of a cluster that CDS changed, and of an endpoint
 * that left its set and came back.
 */
function leftOf(view: ProxyView, service: string, last: Held | undefined, isFallen: boolean): Left {
  // What the process before a hot restart holds is in the same gauge, and has a scope of its own.
  if (last?.isClear === true || view.reading?.previous?.state === 'alive') return NONE
  const left = leftIn(view, service, rowsOf(view, service))
  // Of a cluster with hidden statistics only rows that begin anew tell that it was changed.
  const isUntold = left.hidden?.isRemoved === false && !isFallen
  return isUntold ? { ...left, hidden: undefined } : left
}

/** All that the rows of a member have begun. */
function begunIn(view: ProxyView, { service, member }: Wanted): number {
  const rows = rowsOf(view, service).flatMap(({ hosts }) => hosts.get(member) ?? [])
  return sum(rows, (row) => row.begun)
}

/** What lets clients with a cookie come back to a drained endpoint, in words. */
function stickyIn(configs: readonly ClusterConfig[]): string | undefined {
  const found = configs.find((config) => config.returningAs !== undefined)
  if (found === undefined) return undefined
  const { cluster, returningAs } = found
  const when = returningAs === 'UNHEALTHY' ? ', once its check fails or it is ejected' : ''
  return `cluster ${cluster} lets sticky sessions come back to a draining endpoint${when}: override_host_status lists ${returningAs}`
}

/**
 * What a client of a Redis proxy may be in the middle of: between the commands of a `MULTI` Envoy counts no request, and keeps
 * a connection for it. A cluster has these statistics where a `redis_proxy` names it. Envoy 1.39.3, 1.40.0.
 */
function transactionIn(view: ProxyView, service: string, member: string): string | undefined {
  for (const { cluster, hosts } of rowsOf(view, service)) {
    const isRedis = view.reading?.stats.of(cluster, 'redis_cluster.upstream_cx_drained')
    const open = hosts.get(member)?.connections ?? 0
    if (isRedis === undefined || open === 0) continue
    return `a redis_proxy hands commands to cluster ${cluster}, and ${open} of its connections to this endpoint are open in ${view.scope}: a transaction (MULTI) counts as no request between its commands`
  }
  return undefined
}

function noteOf(note: string | undefined): { readonly note?: string } {
  return note === undefined ? {} : { note }
}

function sum<T>(items: readonly T[], of: (item: T) => number): number {
  return items.reduce((total, item) => total + of(item), 0)
}
