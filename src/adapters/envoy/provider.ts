import { Turnstile } from '../../kit/turnstile.js'
import { systemClock } from '../../provider/clock.js'
import { closedError } from '../../provider/error.js'
import type {
  CallContext,
  Change,
  ChangeResult,
  DrainableProvider,
  MemberRef,
  ProviderInfo,
  Snapshot,
} from '../../provider/contract.js'
import { canonicalMember } from './codec/address.js'
import { applyChanges, leftOut, refuseChanges } from './change/change.js'
import { isAtLeast } from '../../kit/version.js'
import type { ProxyView } from './session/roster.js'
import { Fleet } from './session/session.js'
import type { Settings } from './options.js'
import { endedOf } from './read/scope.js'
import { MemberReader } from './read/read.js'
import type { Wanted } from './session/proxy.js'
import type { EndpointSink, LoadReports, LoadReportSource, SinkHost } from './sources/sink.js'
import { EndpointStore } from './session/store.js'

/** Within that many milliseconds every proxy comes back to a server of ours: 30 s is its longest pause. */
const RECONNECT = 35_000

/** Reads and changes endpoint sets, and asks every proxy who is busy. */
export class EnvoyProvider implements DrainableProvider, SinkHost {
  readonly specVersion = 1
  readonly name = 'envoy'
  readonly instance: string
  /** Only where the sink hears from the proxies by itself. */
  declare readonly watch?: NonNullable<DrainableProvider['watch']>
  readonly #sink: EndpointSink
  readonly #source: LoadReportSource | undefined
  readonly #loads: LoadReports | undefined
  readonly #store: EndpointStore
  readonly #fleet: Fleet
  readonly #reader: MemberReader
  readonly #onPanic: 'refuse' | 'allow'
  readonly #hasAdmin: boolean
  readonly #backBy = systemClock.now() + RECONNECT
  readonly #opened: Promise<void>
  readonly #closing = new AbortController()
  readonly #turn = new Turnstile()

  constructor(options: Settings) {
    const now = (): number => systemClock.now()
    const { endpoints, loads } = options
    this.#sink = endpoints
    this.#source = loads
    this.#loads = loads?.loads ?? endpoints.loads
    this.instance = endpoints.instance
    this.#onPanic = options.onPanic
    this.#hasAdmin = options.admin !== undefined
    this.#store = new EndpointStore(this.#sink, now)
    this.#fleet = new Fleet({
      admin: options.admin,
      sink: this.#sink,
      loads: this.#loads,
      expect: options.expect,
      goneAfter: options.onProxyGone === 'wait' ? Infinity : options.onProxyGone.after,
      now,
    })
    this.#reader = new MemberReader({
      store: this.#store,
      sink: this.#sink,
      now,
      hasAdmin: options.admin !== undefined,
      panicThreshold: options.panicThreshold,
      mergeWindow: options.mergeWindow,
      connectTimeout: options.connectTimeout,
    })
    if ((this.#sink.subscribers ?? loads) !== undefined)
      this.watch = (refs, ctx) => this.#watch(refs, ctx)
    // Proxies wait for their sets from the start on; a failure is told by the first call.
    this.#opened = this.#open()
    this.#opened.catch(() => undefined)
  }

  async describe(ctx: CallContext): Promise<ProviderInfo> {
    return this.#within(ctx, async (signal) => {
      await this.#store.load(this, signal)
      const proxies = await this.#fleet.learn({ clock: ctx.clock, signal })
      const facts = proxies.flatMap((proxy) => proxy.facts ?? [])
      if (proxies.length > 0 && facts.length === 0) await this.#look([], signal, ctx)
      const versions = new Set([
        ...facts.map(({ info }) => info.version.text),
        ...(this.#loads?.nodes() ?? []).flatMap(({ version }) => version?.text ?? []),
      ])
      // Before 1.39.3 a request that waits for a connect is in no count of its host; nor is it in load reports.
      const counted =
        proxies.length > 0 &&
        proxies.every(({ facts }) => facts !== undefined && isAtLeast(facts.info.version, 1, 39, 3))
      const endpoints = this.#store
        .names()
        .reduce((sum, name) => sum + (this.#store.set(name)?.endpoints.length ?? 0), 0)
      return {
        product: 'envoy',
        version: [...versions].sort().join(', ') || 'unknown',
        capabilities: {
          ladder: ['ready', 'drain'],
          maint: 'none',
          terminate: false,
          remove: !this.#isForeign,
          removal: 'keeps',
          add: !this.#isForeign,
          counts: 'requests',
          freshness: 0,
          blind: counted
            ? 0
            : this.#reader.connectTimeout(facts, facts.length === proxies.length) + 100,
          lateBound: this.#sink.lateBound,
          survivesReload: true,
          countsAfterRemove: false,
          minInterval: this.#isForeign ? dumpInterval(endpoints) : rowsInterval(endpoints),
        },
      }
    })
  }

  async observe(refs: readonly MemberRef[] | 'all', ctx: CallContext): Promise<Snapshot> {
    return this.#within(ctx, async (signal) => {
      const names = await this.#names(signal, ctx)
      const wanted = refs === 'all' ? this.#everyone() : refs.map((ref) => this.#want(ref, names))
      const views = await this.#look(wanted, signal, ctx, wanted)
      const at = ctx.clock.now() - systemClock.now()
      const readings = wanted.map((one) => this.#reader.reading(one, views, at))
      const pools = new Map(wanted.map(({ ref, service }) => [ref.pool, service]))
      return {
        readings,
        pools: [...pools].flatMap(
          ([pool, service]) => this.#reader.pool(pool, service, views) ?? [],
        ),
        ended: endedOf(views, {
          hasAdmin: this.#hasAdmin,
          isComplete: this.#sink.subscribers === undefined || systemClock.now() > this.#backBy,
        }),
      }
    })
  }

  async apply(changes: readonly Change[], ctx: CallContext): Promise<readonly ChangeResult[]> {
    if (changes.length === 0) return []
    if (this.#isForeign) return this.#within(ctx, (signal) => this.#refuse(changes, signal, ctx))
    const isLeft = ({ status }: ChangeResult, index: number): boolean =>
      status === 'applied' && changes[index]?.kind === 'remove'
    const { results, wanted, look } = await this.#inTurn(ctx, async (signal) => {
      const services = await this.#names(signal, ctx)
      const wanted = changes.map((change) => ({ change, ...this.#want(change.ref, services) }))
      const reload = (): Promise<void> => this.#store.load(this, signal)
      // As they are now: another control plane can take a set away while its proxies are waited for.
      const names = this.#setsOf(wanted).map(({ cluster }) => cluster)
      const look = (): Promise<readonly ProxyView[]> => this.#look(wanted, signal, ctx, [], names)
      const results = await applyChanges(wanted, {
        store: this.#store,
        sink: this.#sink,
        reader: this.#reader,
        onPanic: this.#onPanic,
        look,
        reload,
        handUp: (index, result) => {
          if (!isLeft(result, index)) ctx.result?.(index, result)
        },
        clock: ctx.clock,
        signal,
      })
      return { results, wanted, look }
    })
    // Others may change the set meanwhile: a proxy that polls takes its time.
    const left = wanted.filter((_, index) => {
      const result = results[index]
      return result !== undefined && isLeft(result, index)
    })
    await this.#within(ctx, (signal) => leftOut(left, { look, clock: ctx.clock, signal }))
    for (const [index, result] of results.entries()) {
      if (isLeft(result, index)) ctx.result?.(index, result)
    }
    return results
  }

  /** Yields a snapshot whenever a proxy reports its load, takes a set or refuses one. */
  async *#watch(refs: readonly MemberRef[], ctx: CallContext): AsyncIterable<Snapshot> {
    const signal = AbortSignal.any([ctx.signal, this.#closing.signal])
    let woken = true
    let wake: (() => void) | undefined
    const onNews = (): void => {
      woken = true
      wake?.()
    }
    const stops = [this.#sink.subscribers?.listen(onNews), this.#loads?.listen(onNews)]
    signal.addEventListener('abort', onNews)
    const over = (): boolean => signal.aborted
    try {
      while (!over()) {
        if (!woken) await new Promise<void>((resolve) => (wake = resolve))
        if (over()) return
        woken = false
        yield await this.observe(refs, ctx)
      }
    } finally {
      signal.removeEventListener('abort', onNews)
      for (const stop of stops) stop?.()
    }
  }

  /** For the sink. */
  held(signal: AbortSignal): ReturnType<SinkHost['held']> {
    return this.#fleet.held(AbortSignal.any([signal, this.#closing.signal]))
  }

  proxies(): readonly string[] {
    return this.#fleet.listed
  }

  async close(): Promise<void> {
    this.#closing.abort(closedError(this.name, this.instance))
    await this.#opened.catch(() => undefined)
    await Promise.all([this.#sink.close(), this.#source?.close()])
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }

  async #open(): Promise<void> {
    await this.#source?.open(() => this.#store.names())
    await this.#sink.open?.(this)
  }

  /** The sets as they stand, and which of them feeds which cluster. */
  async #names(signal: AbortSignal, ctx: CallContext): Promise<ReadonlyMap<string, string>> {
    await this.#store.load(this, signal)
    return this.#reader.services(await this.#fleet.learn({ clock: ctx.clock, signal }))
  }

  /** @param sought - where one of them is not listed, what is left of it is read too */
  #look(
    wanted: readonly Wanted[],
    signal: AbortSignal,
    ctx: CallContext,
    sought: readonly Wanted[] = [],
    names = this.#setsOf(wanted).map(({ cluster }) => cluster),
  ): Promise<readonly ProxyView[]> {
    this.#loads?.demand()
    // Where weights count, those of all hosts do.
    const isWeighted = this.#setsOf(wanted).some((set) => set.isWeighted)
    const members = isWeighted ? undefined : new Set(wanted.map(({ member }) => member))
    return this.#fleet.read(names, signal, ctx.clock, { sought, members })
  }

  #setsOf(wanted: readonly Wanted[]) {
    const services = [...new Set(wanted.map(({ service }) => service))]
    return services.flatMap((service) => this.#store.set(service) ?? [])
  }

  /** Whether another control plane owns the sets. */
  get #isForeign(): boolean {
    return this.#sink.kind === 'observed'
  }

  async #refuse(
    changes: readonly Change[],
    signal: AbortSignal,
    ctx: CallContext,
  ): Promise<readonly ChangeResult[]> {
    const names = await this.#names(signal, ctx)
    const isDrained = ({ ref }: Change): boolean => {
      const { service, member } = this.#want(ref, names)
      return this.#store.endpoint(service, member)?.status === 'DRAINING'
    }
    return refuseChanges(changes, isDrained, ctx)
  }

  #everyone(): Wanted[] {
    return this.#store.names().flatMap((service) => {
      const pool = this.#reader.poolOf(service)
      return (this.#store.set(service)?.endpoints ?? []).flatMap(({ member }) =>
        member === undefined ? [] : [{ ref: { pool, member }, service, member }],
      )
    })
  }

  #want(ref: MemberRef, names: ReadonlyMap<string, string>): Wanted {
    return {
      ref,
      service: names.get(ref.pool) ?? ref.pool,
      member: canonicalMember(ref.member),
    }
  }

  /** One change of the sets after another: each begins with what the one before left. */
  #inTurn<T>(ctx: CallContext, fn: (signal: AbortSignal) => Promise<T>): Promise<T> {
    return this.#within(ctx, (signal) => this.#turn.run(signal, () => fn(signal)))
  }

  /** Runs a call under its signal and ours, after the sink has begun to serve. */
  async #within<T>(ctx: CallContext, fn: (signal: AbortSignal) => Promise<T>): Promise<T> {
    ctx.signal.throwIfAborted()
    this.#closing.signal.throwIfAborted()
    const signal = AbortSignal.any([ctx.signal, this.#closing.signal])
    await this.#opened
    return await fn(signal)
  }
}

/** A look at rows takes Envoy 33 ms at 10,000 endpoints. */
function rowsInterval(endpoints: number): number {
  return endpoints >= 5_000 ? 1_000 : endpoints >= 1_000 ? 250 : 20
}

/** With the sets out of `/config_dump` it takes three times as long, and more to read. */
function dumpInterval(endpoints: number): number {
  return endpoints >= 5_000 ? 5_000 : endpoints >= 1_000 ? 1_000 : 100
}
