import type { ClusterRows } from '../codec/admin.js'
import type { Endpoint } from '../codec/assignment.js'
import type { EdsStatus } from '../codec/status.js'
import type { ProxyView } from '../session/roster.js'
import type { EndpointSink } from '../sources/sink.js'
import type { EndpointStore } from '../session/store.js'
import { rowsOf } from './hosts.js'
import { PanicView } from './panic-view.js'

const MERGE_WINDOW = 1_000
const REFUSED = 'it refused the set (update_rejected or update_failure went up), its log says why'
/** Timers of a busy proxy come late. */
const MARGIN = 100

export interface ForceOptions {
  readonly store: EndpointStore
  readonly sink: EndpointSink
  readonly now: () => number
  readonly mergeWindow: number | undefined
  readonly panicThreshold: number | undefined
}

/** Whether a proxy has taken an endpoint's state, and acts on it. */
export class Force {
  readonly panic: PanicView
  readonly #options: ForceOptions

  constructor(options: ForceOptions) {
    this.#options = options
    this.panic = new PanicView(options.panicThreshold)
  }

  /** Why a proxy has not taken the endpoint's state yet; undefined: it has. */
  of(
    view: ProxyView,
    clusters: readonly ClusterRows[],
    service: string,
    member: string,
    endpoint: Endpoint,
  ): string | undefined {
    for (const rows of clusters) {
      const why = this.#ofCluster(view, rows, service, member, endpoint)
      if (why !== undefined) return why
    }
    return undefined
  }

  #ofCluster(
    view: ProxyView,
    rows: ClusterRows,
    service: string,
    member: string,
    endpoint: Endpoint,
  ): string | undefined {
    const { cluster, hosts } = rows
    const { store, now } = this.#options
    const row = hosts.get(member)
    const since = view.reading?.tracker.shownSince(cluster, member, shownAs(endpoint.status))
    const window = this.#window(view, service, cluster)
    const { why, at } = this.#taken(view, service, member, 0, cluster)
    if (why !== undefined) return why
    if (row === undefined) return 'it does not list the endpoint yet'
    if (since === undefined) return `it shows the endpoint as ${row.eds}`
    // A row may have looked like this before: nothing is in force sooner than it was published.
    const published = store.since(service, store.seqOf(service, member)).at
    const left = window === 0 ? 0 : Math.max(since, at ?? since, published) + window - now()
    if (left > 0) {
      return `inside the merge window of cluster ${cluster} for ${Math.ceil(left)} ms more`
    }
    if (endpoint.status !== 'DRAINING') return undefined
    const still = view.reading?.tracker.still
    if (still !== undefined) return still
    return this.panic.now(view, rows, store.set(service), member)
  }

  /** Whether every proxy refuses the set as it stands: then it is Envoy that says what is wrong with the next one. */
  isRefused(views: readonly ProxyView[], service: string): boolean {
    const receipts = this.#options.sink.subscribers?.of(service) ?? []
    if (receipts.some(({ state }) => state === 'nacked'))
      return receipts.every(({ state }) => state !== 'acked')
    const refusing = views.flatMap((view) =>
      rowsOf(view, service).map(({ cluster }) => view.reading?.tracker.isRefusing(cluster)),
    )
    return refusing.length > 0 && refusing.every((is) => is === true)
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
    const isRefusing = cluster !== undefined && view.reading?.tracker.isRefusing(cluster)
    const refused = isRefusing ? REFUSED : undefined
    if (sink.kind === 'file' && cluster !== undefined) {
      const { isTaken, at } = this.#fileTaken(view, service, cluster, seq)
      if (!isTaken) return { why: refused ?? 'it has not read the file yet' }
      return at === undefined ? {} : { at }
    }
    if (sink.subscribers === undefined) return {}
    const receipt = sink.subscribers.of(service).find(({ node }) => node === view.node)
    if (receipt === undefined) return { why: refused ?? 'it has not asked for this endpoint set' }
    const at = receipt.ackedAt(seq)
    if (at === undefined) {
      if (receipt.state === 'nacked') return { why: `it refused the set: "${receipt.error ?? ''}"` }
      const isGone = receipt.state === 'disconnected'
      return { why: isGone ? 'its stream is gone' : (refused ?? 'it has not acknowledged the set') }
    }
    const left = at + window - now()
    return left > 0 ? { why: `inside the merge window for ${Math.ceil(left)} ms more`, at } : { at }
  }

  #fileTaken(
    { reading }: ProxyView,
    service: string,
    cluster: string,
    seq: number,
  ): { readonly isTaken: boolean; readonly at: number | undefined } {
    const { versions, at: published } = this.#options.store.since(service, seq)
    const at = reading?.tracker.takenAt(cluster, versions, published)
    // A file without version_info leaves no receipt, nor does a stats_matcher that keeps version_text from being shown: then
    // the row speaks alone.
    const isHidden = versions.has('') || reading?.stats.versionOf(cluster) === undefined
    return { isTaken: at !== undefined || isHidden, at }
  }

  /** Milliseconds between the acknowledgement of a change of health and its effect. */
  #window(view: ProxyView, service: string, cluster?: string): number {
    const facts = view.proxy?.facts
    if (facts?.immediate === true) return 0
    const version = view.load?.version
    if (facts === undefined && version !== undefined && (version.major > 1 || version.minor >= 40))
      return 0
    const configs = [...(facts?.configs.values() ?? [])].filter(
      (config) =>
        config.service === service && (cluster === undefined || config.cluster === cluster),
    )
    const windows = configs.map((config) => config.mergeWindow)
    const window =
      windows.length > 0 ? Math.max(...windows) : (this.#options.mergeWindow ?? MERGE_WINDOW)
    return window === 0 ? 0 : window + MARGIN
  }

  /** Why its receipt alone does not say that a proxy acts on it yet: for one whose rows can't be read. */
  missing(view: ProxyView, service: string, member: string): string | undefined {
    const { why } = this.#taken(view, service, member, this.#window(view, service))
    const set = this.#options.store.set(service)
    const isDrained = this.#options.store.endpoint(service, member)?.status === 'DRAINING'
    if (why !== undefined || set === undefined || !isDrained) return why
    return this.panic.published(set, member)
  }
}

/** The admin API shows a few statuses as others. */
function shownAs(status: EdsStatus | undefined): EdsStatus {
  if (status === undefined || status === 'UNKNOWN') return 'HEALTHY'
  return status === 'TIMEOUT' ? 'UNHEALTHY' : status
}
