import { abortable } from '../../../provider/abort.js'
import type { Clock } from '../../../provider/clock.js'
import { DrainableError, isDrainableError } from '../../../provider/error.js'
import { parseAdminAddress } from './admin-client.js'
import { agreed, nothingToAdopt } from './adopt.js'
import { Proxy, type ProxyReading } from './proxy.js'
import type { EndpointSink, NodeLoad } from '../sources/sink.js'
import type { JsonObject } from '../../../kit/json.js'
import { ScopeTracker } from './scopes.js'

/** How many proxies are asked at once. */
const AT_ONCE = 32
/** Load reports of older ones miss a request that spans an interval. */
const LOADS_FROM = [1, 37] as const

export interface FleetOptions {
  readonly admin: readonly string[] | (() => Promise<readonly string[]>) | undefined
  readonly expect: readonly string[] | number | undefined
  /** Milliseconds after which a proxy that cannot be seen counts as gone. */
  readonly goneAfter: number
  readonly now: () => number
}

/** One process that can hold work, at one look. */
export interface ProxyView {
  readonly scope: string
  readonly state: 'read' | 'unread' | 'ended'
  readonly node: string | undefined
  readonly proxy: Proxy | undefined
  readonly reading: ProxyReading | undefined
  readonly load: NodeLoad | undefined
  readonly tracker: ScopeTracker
  readonly note: string | undefined
  readonly error: DrainableError | undefined
}

interface Known {
  readonly scope: string
  readonly tracker: ScopeTracker
  readonly proxy: Proxy | undefined
  /** Since when it cannot be seen; undefined: it can. */
  unseenSince: number | undefined
  endedAt: number | undefined
}

/** Ended proxies are still listed for this long, for drains that saw them. */
const ENDED_FOR = 3_600_000

/**
 * Every proxy that can hold work: the admin list, and the nodes that take sets or send load reports.
 * Who was seen once stays on the list until the caller's list drops it, or `goneAfter` has passed.
 */
export class Fleet {
  readonly #options: FleetOptions
  readonly #known = new Map<string, Known>()
  #listed: readonly string[] = []
  #listedOnce = false

  constructor(options: FleetOptions) {
    this.#options = options
  }

  /** What the proxies that answer are: asked once per start of each. */
  async learn(signal: AbortSignal, services: readonly string[] = []): Promise<readonly Proxy[]> {
    const proxies = await this.#list(signal)
    await inBatches(proxies, (proxy) =>
      proxy.learn(signal, services).then(
        () => undefined,
        (error: unknown) => this.#tolerate(error, signal),
      ),
    )
    return proxies
  }

  /** One look at every proxy; throws only where an admin list is there and nobody on it answers. */
  async read(
    services: readonly string[],
    sink: EndpointSink,
    signal: AbortSignal,
    clock: Clock,
  ): Promise<readonly ProxyView[]> {
    const proxies = await this.#list(signal)
    const views = await inBatches(proxies, (proxy) => this.#look(proxy, services, signal, clock))
    const failed = views.filter((view) => view.error !== undefined)
    const nodes = this.#nodeViews(sink, views)
    if (
      views.length > 0 &&
      failed.length === views.length &&
      nodes.every((view) => view.state !== 'read')
    ) {
      throw failed[0]?.error ?? new DrainableError('UNREACHABLE', 'no proxy answers')
    }
    const seen = [...views, ...nodes]
    const all = [...seen, ...this.#missing(seen)]
    return [...all, ...this.#ended(all)]
  }

  /** The endpoint sets as the proxies hold them; all that answer must agree. */
  async adopt(signal: AbortSignal): Promise<readonly JsonObject[]> {
    const proxies = await this.#list(signal)
    if (proxies.length === 0) {
      throw new DrainableError(
        'INVALID_OPTIONS',
        'envoy(): there is no proxy to adopt the endpoint sets from, give admin, or initial on the sink',
      )
    }
    const errors: unknown[] = []
    const dumps = await inBatches(proxies, async (proxy) => {
      try {
        return { proxy, sets: await proxy.dump(signal) }
      } catch (error) {
        this.#tolerate(error, signal)
        errors.push(error)
        return undefined
      }
    })
    const found = dumps.filter((dump) => dump !== undefined).filter(({ sets }) => sets.length > 0)
    if (found.length === 0) throw errors[0] ?? nothingToAdopt(proxies.map(({ name }) => name))
    return agreed(found.map(({ proxy, sets }) => ({ name: proxy.name, sets })))
  }

  async close(): Promise<void> {
    await Promise.all([...this.#known.values()].map(async ({ proxy }) => await proxy?.close()))
  }

  async #list(signal: AbortSignal): Promise<Proxy[]> {
    const { admin } = this.#options
    if (typeof admin === 'function') {
      try {
        this.#listed = await abortable(admin(), signal)
        this.#listedOnce = true
      } catch (cause) {
        signal.throwIfAborted()
        // An old list is safer than none: nobody is dropped because a lookup failed.
        if (!this.#listedOnce) {
          throw isDrainableError(cause)
            ? cause
            : new DrainableError(
                'UNREACHABLE',
                `envoy(): the admin function failed: ${words(cause)}`,
                {
                  cause,
                },
              )
        }
      }
    } else if (!this.#listedOnce) {
      this.#listed = admin ?? []
      this.#listedOnce = true
    }
    // One that is listed twice is one, and stands for no other that is expected.
    return [...new Set(this.#listed.map((address) => this.#proxy(address)))]
  }

  #proxy(address: string): Proxy {
    const key = `admin ${parseAdminAddress(address).name}`
    const known = this.#known.get(key)
    if (known?.proxy !== undefined) {
      known.endedAt = undefined
      return known.proxy
    }
    const proxy = new Proxy(address, this.#options.now)
    this.#known.set(key, fresh(proxy.name, proxy))
    return proxy
  }

  async #look(
    proxy: Proxy,
    services: readonly string[],
    signal: AbortSignal,
    clock: Clock,
  ): Promise<ProxyView> {
    const known = this.#of(proxy)
    const base = { scope: proxy.name, proxy, load: undefined, tracker: known.tracker }
    try {
      const reading = await proxy.read(services, signal, clock)
      known.unseenSince = undefined
      known.tracker.seen(reading)
      const node = proxy.facts?.info.nodeId
      return { ...base, node, state: 'read', reading, note: undefined, error: undefined }
    } catch (thrown) {
      const error = this.#tolerate(thrown, signal)
      const node = proxy.facts?.info.nodeId
      const ended = this.#isGone(known)
      return {
        ...base,
        node,
        state: ended ? 'ended' : 'unread',
        reading: undefined,
        note: ended
          ? `not seen for longer than onProxyGone.after: ${error.message}`
          : error.message,
        error,
      }
    }
  }

  /** Nodes that take sets or report loads, and that no admin address stands for. */
  #nodeViews(sink: EndpointSink, views: readonly ProxyView[]): ProxyView[] {
    // A proxy that never answered may be any of the nodes; it is unread already. Who was seen stays.
    const strangers = views.some((view) => view.node === undefined)
    const covered = new Set(views.map((view) => view.node))
    const loads = new Map<string, NodeLoad[]>()
    for (const load of sink.loads?.nodes() ?? []) {
      loads.set(load.node, [...(loads.get(load.node) ?? []), load])
    }
    const names = new Set([...(sink.nodes?.() ?? []), ...loads.keys()])
    return [...names]
      .filter((name) => !covered.has(name) && !this.#isDropped(name, sink))
      .filter((name) => !strangers || this.#known.has(nodeKey(name)))
      .flatMap((name) => {
        const list = loads.get(name) ?? [undefined]
        return list.map((load, i) => this.#nodeView(name, i === 0 ? '' : `#${i + 1}`, load, sink))
      })
  }

  /** A node whose stream is gone, and whose admin address the caller's list dropped. */
  #isDropped(node: string, sink: EndpointSink): boolean {
    if (sink.isConnected?.(node) !== false) return false
    const listed = new Set(this.#listed.map((address) => this.#proxy(address)))
    const dropped = [...this.#known.values()].some(
      ({ proxy }) => proxy !== undefined && !listed.has(proxy) && proxy.facts?.info.nodeId === node,
    )
    if (dropped) sink.drop?.(node)
    return dropped
  }

  #nodeView(
    node: string,
    suffix: string,
    load: NodeLoad | undefined,
    sink: EndpointSink,
  ): ProxyView {
    const key = nodeKey(node, suffix)
    const scope = key.slice(NODE.length)
    let known = this.#known.get(key)
    if (known === undefined) this.#known.set(key, (known = fresh(scope, undefined)))
    const base = {
      scope,
      node,
      proxy: undefined,
      reading: undefined,
      load,
      tracker: known.tracker,
      error: undefined,
    }
    const trouble =
      this.#options.admin === undefined
        ? loadTrouble(load)
        : 'it takes endpoints from here, but none of the admin addresses is its own'
    if (trouble === undefined) {
      known.unseenSince = undefined
      known.endedAt = undefined
      return { ...base, state: 'read', note: undefined }
    }
    const connected = load?.connected === true || sink.isConnected?.(node) === true
    if (this.#isGone(known) && !connected) {
      sink.drop?.(node)
      sink.loads?.drop(node)
      known.endedAt ??= this.#options.now()
      return { ...base, state: 'ended', note: 'not seen for longer than onProxyGone.after' }
    }
    return { ...base, state: 'unread', note: trouble }
  }

  /** A place for every proxy that is expected and not known. */
  #missing(views: readonly ProxyView[]): ProxyView[] {
    const { expect } = this.#options
    const there = views.filter((view) => view.state !== 'ended')
    if (expect === undefined) return []
    const names =
      typeof expect === 'number'
        ? Array.from({ length: Math.max(0, expect - there.length) }, (_, i) => ({
            scope: `missing proxy ${i + 1}`,
            note: `${expect} proxies are expected, ${there.length} are known`,
          }))
        : expect
            .filter((name) => !there.some((view) => view.scope === name || view.node === name))
            .map((name) => ({ scope: name, note: 'expected, and neither listed nor connected' }))
    return names.map(({ scope, note }) => {
      const key = `missing ${scope}`
      let known = this.#known.get(key)
      if (known === undefined) this.#known.set(key, (known = fresh(scope, undefined)))
      known.endedAt = undefined
      return {
        scope,
        note,
        state: 'unread',
        node: undefined,
        proxy: undefined,
        reading: undefined,
        load: undefined,
        tracker: known.tracker,
        error: undefined,
      }
    })
  }

  /** Who was listed before and is not now. */
  #ended(views: readonly ProxyView[]): ProxyView[] {
    const now = this.#options.now()
    const listed = new Set(views.map((view) => view.tracker))
    const ended: ProxyView[] = []
    for (const [key, known] of this.#known) {
      if (listed.has(known.tracker)) continue
      if (known.endedAt === undefined) known.endedAt = now
      if (now - known.endedAt > ENDED_FOR) {
        this.#known.delete(key)
        void known.proxy?.close()
        continue
      }
      // A place that was kept for an expected proxy never was a process of its own.
      if (views.some((view) => view.scope === known.scope)) continue
      ended.push({
        scope: known.scope,
        state: 'ended',
        node: known.proxy?.facts?.info.nodeId,
        proxy: known.proxy,
        reading: undefined,
        load: undefined,
        tracker: known.tracker,
        note: 'no longer in the list of proxies',
        error: undefined,
      })
    }
    return ended
  }

  #of(proxy: Proxy): Known {
    for (const known of this.#known.values()) if (known.proxy === proxy) return known
    const known = fresh(proxy.name, proxy)
    this.#known.set(`admin ${proxy.name}`, known)
    return known
  }

  #isGone(known: Known): boolean {
    const now = this.#options.now()
    known.unseenSince ??= now
    return now - known.unseenSince >= this.#options.goneAfter
  }

  /** An abort and a fault of ours go up; what the proxy did is the proxy's state. */
  #tolerate(error: unknown, signal: AbortSignal): DrainableError {
    if (signal.aborted) throw signal.reason
    if (isDrainableError(error)) return error
    throw error
  }
}

const NODE = 'node '

function nodeKey(node: string, suffix = ''): string {
  return `${NODE}${node === '' ? 'a proxy without node.id' : node}${suffix}`
}

function fresh(scope: string, proxy: Proxy | undefined): Known {
  return {
    scope,
    proxy,
    tracker: new ScopeTracker(),
    unseenSince: undefined,
    endedAt: undefined,
  }
}

/** Why load reports of a node cannot be used; undefined: they can. */
function loadTrouble(load: NodeLoad | undefined): string | undefined {
  if (load === undefined) {
    return 'it takes endpoints from here, but neither its admin API nor its load reports are known: list it under admin, or configure load_stats_config in its bootstrap'
  }
  if (!load.connected) return 'its stream is gone; it goes on with the last set it got'
  const { version } = load
  const [major, minor] = LOADS_FROM
  if (
    version !== undefined &&
    (version.major < major || (version.major === major && version.minor < minor))
  ) {
    return `load reports of Envoy ${version.text} miss requests that outlast an interval: list its admin API`
  }
  return load.reports ? undefined : 'no load report came in lately'
}

async function inBatches<T, R>(items: readonly T[], fn: (item: T) => Promise<R>): Promise<R[]> {
  const results: R[] = []
  let next = 0
  const worker = async (): Promise<void> => {
    for (let i = next++; i < items.length; i = next++) results[i] = await fn(items[i] as T)
  }
  await Promise.all(Array.from({ length: Math.min(AT_ONCE, items.length) }, worker))
  return results
}

function words(cause: unknown): string {
  return cause instanceof Error ? cause.message : String(cause)
}
