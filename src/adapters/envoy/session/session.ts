import { systemClock, type Clock } from '../../../provider/clock.js'
import { DrainableError, isDrainableError } from '../../../provider/error.js'
import type { AdminAddress, Call } from '../../../kit/envoy/admin.js'
import { AdminList } from '../../../kit/envoy/admin-list.js'
import { parentScope } from '../../../kit/envoy/parent.js'
import { statName } from '../../../kit/envoy/answers.js'
import type { Namesake } from './gone-clusters.js'
import { nodeViews } from './nodes.js'
import type { Previous } from './previous.js'
import { Proxy, type ProxyReading, type Search } from './proxy.js'
import { Roster, viewOf, type ProxyView } from './roster.js'
import type { EndpointSink, HeldSets, LoadReports } from '../sources/sink.js'

/** How many proxies are asked at once. */
const AT_ONCE = 32

export interface FleetOptions {
  readonly admin: readonly string[] | (() => Promise<readonly string[]>) | undefined
  readonly sink: EndpointSink
  readonly loads: LoadReports | undefined
  readonly expect: readonly string[] | number | undefined
  /** Milliseconds after which a proxy that cannot be seen counts as gone. */
  readonly goneAfter: number
  readonly now: () => number
}

/**
 * Every proxy that can hold work: the admin list, and the nodes that take sets or send load reports.
 * Who was seen once stays on the list until the caller's list drops it, or `goneAfter` has passed.
 */
export class Fleet {
  readonly #options: FleetOptions
  readonly #roster: Roster
  readonly #admin: AdminList

  constructor(options: FleetOptions) {
    this.#options = options
    this.#roster = new Roster(options.goneAfter, options.now)
    this.#admin = new AdminList(options.admin ?? [], { provider: 'envoy', subject: 'envoy()' })
  }

  /** The admin addresses of the last look, without user info. */
  get listed(): readonly string[] {
    return this.#admin.last.map(({ name }) => name)
  }

  /** What the proxies that answer are: asked once per start of each. */
  async learn(ctx: Call): Promise<readonly Proxy[]> {
    const { signal } = ctx
    const proxies = await this.#list(signal)
    await inBatches(proxies, (proxy) =>
      proxy.learn(ctx).then(
        () => undefined,
        (error: unknown) => this.#tolerate(error, signal),
      ),
    )
    return proxies
  }

  /** One look at every proxy; throws only where an admin list is there and no proxy on it answers. */
  async read(
    services: readonly string[],
    signal: AbortSignal,
    clock: Clock,
    sought: Pick<Search, 'sought' | 'members'> = { sought: [], members: undefined },
  ): Promise<readonly ProxyView[]> {
    const proxies = await this.#list(signal)
    const search = { ...sought, namesakes: namesakesIn(proxies) }
    const read = (proxy: Proxy): Promise<ProxyReading> =>
      proxy.read(services, signal, clock, search)
    const looks = await inBatches(proxies, (proxy) => this.#look(proxy, read, signal))
    const views = looks.flat()
    const failed = views.filter((view) => view.error !== undefined)
    const { sink, loads } = this.#options
    const nodes = nodeViews(views, {
      roster: this.#roster,
      sink,
      loads,
      now: this.#options.now,
      hasAdmin: this.#options.admin !== undefined,
      isDropped: (node) => this.#isDropped(node),
    })
    if (
      views.length > 0 &&
      failed.length === looks.length &&
      nodes.every((view) => view.state !== 'read')
    ) {
      throw failed[0]?.error ?? new DrainableError('UNREACHABLE', 'no proxy answers')
    }
    const seen = [...views, ...nodes]
    const all = [...seen, ...this.#missing(seen)]
    return [...all, ...this.#roster.ended(all)]
  }

  /** What each proxy of the list holds; throws where none of them answers. */
  async held(signal: AbortSignal): Promise<readonly HeldSets[]> {
    const proxies = await this.#list(signal)
    const held = await inBatches(proxies, async (proxy): Promise<HeldSets> => {
      const { name } = proxy
      try {
        const sets = await proxy.dump({ clock: systemClock, signal })
        const configs = [...(proxy.facts?.configs.values() ?? [])]
        const services = new Map(configs.map(({ cluster, service }) => [cluster, service]))
        return { name, sets, services, error: undefined }
      } catch (thrown) {
        const error = this.#tolerate(thrown, signal)
        return { name, sets: undefined, services: new Map(), error }
      }
    })
    const isSilent = held.every(({ sets }) => sets === undefined)
    if (isSilent && held[0]?.error !== undefined) throw held[0].error
    return held
  }

  async #list(signal: AbortSignal): Promise<readonly Proxy[]> {
    return this.#proxies(await this.#admin.now(signal))
  }

  /** One that is listed twice is one, and stands for no other that is expected. */
  #proxies(addresses: readonly AdminAddress[]): readonly Proxy[] {
    return [...new Set(addresses.map((address) => this.#proxy(address)))]
  }

  #proxy(address: AdminAddress): Proxy {
    const { name } = address
    const make = (): Proxy => new Proxy(address, this.#options.now)
    const known = this.#roster.of(`admin ${name}`, name, make)
    known.endedAt = undefined
    return known.proxy ?? make()
  }

  async #look(
    proxy: Proxy,
    read: (proxy: Proxy) => Promise<ProxyReading>,
    signal: AbortSignal,
  ): Promise<ProxyView[]> {
    const known = this.#roster.of(`admin ${proxy.name}`, proxy.name, () => proxy)
    try {
      const reading = await read(proxy)
      known.unseenSince = undefined
      const node = proxy.facts?.info.nodeId
      const { previous } = reading
      return [
        viewOf(known, 'read', { node, reading }),
        ...(previous === undefined ? [] : [this.#previous(proxy, node, previous)]),
      ]
    } catch (thrown) {
      const error = this.#tolerate(thrown, signal)
      const node = proxy.facts?.info.nodeId
      const ended = this.#roster.isGone(known)
      const note = ended
        ? `not seen for longer than onProxyGone.after: ${error.message}`
        : error.message
      const old = parentScope(proxy.name)
      const before = this.#roster.has(`admin ${old}`) ? [this.#roster.of(`admin ${old}`, old)] : []
      const state = ended ? 'ended' : 'unread'
      return [
        viewOf(known, state, { node, note, error }),
        ...before
          .filter((one) => one.endedAt === undefined)
          .map((one) => viewOf(one, state, { node, note, role: 'previous' })),
      ]
    }
  }

  /** The process that a hot restart has replaced: a scope of its own until it has ended. */
  #previous(proxy: Proxy, node: string | undefined, previous: Previous): ProxyView {
    const scope = parentScope(proxy.name)
    const known = this.#roster.of(`admin ${scope}`, scope)
    if (previous.state === 'ended') {
      if (known.endedAt === undefined && node !== undefined) this.#roster.depart(node)
      known.endedAt ??= this.#options.now()
    } else known.endedAt = undefined
    const unread = previous.state === 'alive' && previous.active === undefined
    const state = previous.state === 'ended' ? 'ended' : unread ? 'unread' : 'read'
    return viewOf(known, state, { node, previous, note: previous.note, role: 'previous' })
  }

  /** Whether the caller's list dropped the admin address of a node. */
  #isDropped(node: string): boolean {
    const listed = new Set(this.#proxies(this.#admin.last))
    return this.#roster
      .all()
      .some(
        ({ proxy }) =>
          proxy !== undefined && !listed.has(proxy) && proxy.facts?.info.nodeId === node,
      )
  }

  /** A place for every proxy that is expected and not known. */
  #missing(views: readonly ProxyView[]): ProxyView[] {
    const { expect } = this.#options
    const there = views.filter(({ state, role }) => state !== 'ended' && role === 'proxy')
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
      const known = this.#roster.of(`missing ${scope}`, scope)
      known.endedAt = undefined
      return viewOf(known, 'unread', { note, role: 'place' })
    })
  }

  /** An abort and a fault of ours go up; what the proxy did is the proxy's state. */
  #tolerate(error: unknown, signal: AbortSignal): DrainableError {
    if (signal.aborted) throw signal.reason
    if (isDrainableError(error)) return error
    throw error
  }
}

/** What the clusters of a set are called, by the proxies that have one; by the set where none has. Of one look. */
function namesakesIn(proxies: readonly Proxy[]): (service: string) => readonly Namesake[] {
  const known = new Map<string, readonly Namesake[]>()
  return (service) => {
    const before = known.get(service)
    if (before !== undefined) return before
    const configs = proxies.flatMap(({ facts }) =>
      [...(facts?.configs.values() ?? [])].filter((config) => config.service === service),
    )
    const named = new Map<string, Namesake>(configs.map((config) => [config.stat, config]))
    const own = { cluster: service, stat: statName(service), shows: undefined }
    const found = named.size === 0 ? [own] : [...named.values()]
    known.set(service, found)
    return found
  }
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
