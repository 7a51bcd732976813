import * as z from 'zod/mini'
import type {
  AdminState,
  CallContext,
  Capabilities,
  Change,
  ChangeResult,
  DrainableProvider,
  MaintEffect,
  MemberRef,
  ProviderInfo,
  Snapshot,
} from '../../provider/contract.js'
import { DrainableError } from '../../provider/error.js'
import { once, parseOptions, readGiven } from '../../provider/options.js'
import { quote } from '../../provider/quote.js'
import { checkProvider } from '../../core/calls/call-options.js'
import { listenersOf } from '../../core/balancer/home.js'
import { DRAIN_EVENTS, type DrainEvent } from '../../core/events.js'
import { withEvents, type ProviderEvents } from '../../core/with-events.js'
import { combinedOf, withCombined, type Parts } from '../../core/combined.js'
import { bareRef, listKeys, tagError, tagEvent, tagRef, tagSnapshot } from './tag.js'
import { verbsOf } from './verbs.js'

/** Options of {@link combineProviders}. */
export interface CombineOptions {
  /**
   * What to do with a balancer that has nothing at the address of a target `{ address }`. `skip`: leave it out.
   * `fail`: refuse the drain as `NOT_FOUND`. If no balancer has the address, it is always `NOT_FOUND`.
   * @defaultValue `'skip'`
   */
  readonly onMissing?: 'skip' | 'fail' | undefined
}

const KEY = /^[\p{L}\p{N}_][\p{L}\p{N}_.-]{0,99}$/u

const optionsSchema = /* @__PURE__ */ once(() =>
  z.strictObject({
    onMissing: z._default(z.enum(['skip', 'fail']), 'skip'),
  }),
)

/**
 * Combines several balancers into one provider: a server behind all of them is drained on all of them, and is idle
 * once it is idle on all at the same time. The keys become the `balancer` of every ref.
 *
 * Each balancer keeps its own pace, capabilities and floor; there is one handle, one report and one ticket. A target
 * `{ address }` matches members with that address on any of them; a ref or a pool that does not name its balancer
 * must exist on only one.
 *
 * Closing it closes all of them.
 *
 * @param providers - by key: letters, digits, `_`, `.`, `-`; at least one
 * @throws `INVALID_OPTIONS` if two parts are one balancer (same `name` and `instance`), a part is itself combined, or
 *   a key is not allowed
 * @example
 * ```ts
 * import { combineProviders, drain } from 'drainable'
 * import { haproxyRuntime } from 'drainable/haproxy-runtime'
 *
 * await using all = combineProviders({
 *   edgeA: haproxyRuntime({ socket: '/run/haproxy/a.sock' }),
 *   edgeB: haproxyRuntime({ socket: '/run/haproxy/b.sock' }),
 * })
 * const report = await drain(all, { address: '10.1.2.3' }, { timeout: '10m' })
 * for (const { ref, outcome } of report.members) console.log(ref.balancer, ref.pool, outcome)
 * ```
 */
export function combineProviders(
  providers: Readonly<Record<string, DrainableProvider>>,
  options: CombineOptions = {},
): DrainableProvider & ProviderEvents {
  const subject = 'combineProviders()'
  const settings = parseOptions(optionsSchema(), options, subject)
  const entries = readGiven(`${subject}: providers`, () => {
    if (
      typeof providers !== 'object' ||
      (providers as unknown) === null ||
      Array.isArray(providers)
    )
      throw invalid(subject, 'expected an object { key: provider }')
    return Object.entries(providers)
  })
  const all = new Map(entries.map(([key, part]) => [key, checkPart(key, part, subject)] as const))
  if (all.size === 0) throw invalid(subject, 'expected at least one provider, found none')
  const known = new Map<string, string>()
  for (const [key, { instance }] of all) {
    const twin = known.get(instance)
    if (twin !== undefined) {
      const what = `'${quote(twin)}' and '${quote(key)}' have the same instance (${quote(instance)})`
      throw invalid(subject, `${what}, so they are one balancer: give it once`)
    }
    known.set(instance, key)
  }
  const parts: Parts = { all, ...settings }
  const provider = new CombinedProvider(parts)
  return withPartEvents(withCombined(provider, verbsOf(provider, parts)), parts)
}

function checkPart(key: string, part: DrainableProvider, subject: string): DrainableProvider {
  if (!KEY.test(key)) {
    const what = `'${quote(key)}' can't be a key: expected 1 to 100 letters, digits or _ . -`
    throw invalid(subject, what)
  }
  const provider = checkProvider(part, `${subject}: ${key}`)
  if (combinedOf(provider) === undefined) return provider
  throw invalid(subject, `${key} is a combined provider itself, give its parts instead`)
}

function invalid(subject: string, what: string): DrainableError {
  return new DrainableError('INVALID_OPTIONS', `${subject}: ${what}`)
}

/** The end of a drain over several balancers is said once, by that drain. */
const TYPES = (Object.keys(DRAIN_EVENTS) as DrainEvent['type'][]).filter((type) => type !== 'end')

/**
 * Gives a combined provider the events of its parts, with their keys. The parts are listened to while
 * a listener is there.
 */
function withPartEvents<P extends DrainableProvider>(
  provider: P,
  { all }: Parts,
): P & ProviderEvents {
  const listeners = listenersOf(provider)
  let listening = false
  const forwards = [...all].map(([key, part]) => ({
    part,
    hear: (event: DrainEvent): void => {
      listeners.emit(tagEvent(event, key))
      follow() // one that listened for one event only is gone now
    },
  }))
  function follow(): void {
    if (listening === !listeners.isEmpty) return
    listening = !listening
    for (const { part, hear } of forwards) {
      const events = hasEvents(part) ? part : withEvents(part)
      for (const type of TYPES) events[listening ? 'on' : 'off'](type, hear)
    }
  }
  const verb = (name: 'on' | 'once' | 'off') => ({
    value(type: string, listener: unknown): P {
      listeners[name](type, listener)
      follow()
      return provider
    },
    configurable: true,
  })
  const off = verb('off')
  Object.defineProperties(provider, {
    on: verb('on'),
    once: verb('once'),
    off,
    removeListener: off,
  })
  return provider as P & ProviderEvents
}

function hasEvents(part: DrainableProvider): part is DrainableProvider & ProviderEvents {
  const { on, off } = part as Partial<ProviderEvents>
  return typeof on === 'function' && typeof off === 'function'
}

/**
 * A combined provider called like a plain one. The functions of this package call the parts instead, so that the
 * slowest does not set the pace of all.
 */
class CombinedProvider implements DrainableProvider {
  readonly specVersion = 1
  readonly name = 'combined'
  readonly instance: string
  readonly #parts: ReadonlyMap<string, DrainableProvider>

  constructor({ all }: Parts) {
    this.#parts = all
    this.instance = [...all]
      .map(([key, { name, instance }]) => `${key}=${name} ${instance}`)
      .sort()
      .join(', ')
  }

  async describe(ctx: CallContext): Promise<ProviderInfo> {
    const infos = await this.#onAll((_, part) => part.describe(ctx))
    const version = infos.map(([key, info]) => `${key}=${info.product} ${info.version}`)
    return {
      product: 'combined',
      version: version.join(', '),
      capabilities: weakest(infos.map(([, { capabilities }]) => capabilities)),
    }
  }

  async observe(refs: readonly MemberRef[] | 'all', ctx: CallContext): Promise<Snapshot> {
    const snapshots = await this.#onAll(async (key, part) => {
      const own = refs === 'all' ? refs : this.#refsOf(refs, key)
      if (own !== 'all' && own.length === 0) return { readings: [], pools: [] }
      return tagSnapshot(await part.observe(own, ctx), key)
    })
    const strangers =
      refs === 'all' ? [] : refs.filter((ref) => !this.#parts.has(ref.balancer ?? ''))
    return {
      readings: [
        ...snapshots.flatMap(([, { readings }]) => readings),
        ...strangers.map((ref) => ({ ref, present: false as const, scopes: [] })),
      ],
      pools: snapshots.flatMap(([, { pools }]) => pools),
    }
  }

  async apply(changes: readonly Change[], ctx: CallContext): Promise<readonly ChangeResult[]> {
    const results: ChangeResult[] = []
    const take = (index: number, result: ChangeResult): void => {
      results[index] = result
      ctx.result?.(index, result)
    }
    const keys = listKeys(this.#parts.keys())
    changes.forEach((change, index) => {
      const { ref } = change
      if (this.#parts.has(ref.balancer ?? '')) return
      const found = ref.balancer === undefined ? 'none' : `'${quote(ref.balancer)}'`
      const words = `apply: ref.balancer: expected one of ${keys}, found ${found}`
      take(index, {
        ref,
        status: 'rejected',
        error: new DrainableError('NOT_FOUND', words, { ref }),
      })
    })
    await this.#onAll(async (key, part) => {
      const own = changes.flatMap((change, index) =>
        change.ref.balancer === key
          ? [{ index, change: { ...change, ref: bareRef(change.ref) } }]
          : [],
      )
      if (own.length === 0) return
      const said = new Set<number>()
      const tell = (at: number, result: ChangeResult): void => {
        const index = own[at]?.index
        if (index === undefined || said.has(index)) return
        said.add(index)
        const ref = tagRef(result.ref, key)
        take(
          index,
          'error' in result
            ? { ...result, ref, error: tagError(result.error, key) }
            : { ...result, ref },
        )
      }
      const answer = await part.apply(
        own.map(({ change }) => change),
        { ...ctx, result: tell },
      )
      answer.forEach((result, at) => tell(at, result))
    })
    return results
  }

  async close(): Promise<void> {
    await this.#onAll((_, part) => part.close())
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  #refsOf(refs: readonly MemberRef[], key: string): readonly MemberRef[] {
    return refs.filter(({ balancer }) => balancer === key).map(bareRef)
  }

  /** Waits for all of them, even if one fails: nothing goes on after the call. */
  async #onAll<T>(
    call: (key: string, part: DrainableProvider) => Promise<T>,
  ): Promise<readonly (readonly [string, T])[]> {
    const ends = await Promise.allSettled(
      [...this.#parts].map(async ([key, part]) => [key, await call(key, part)] as const),
    )
    const failed = ends.find((end) => end.status === 'rejected')
    if (failed !== undefined) throw failed.reason
    return ends.flatMap((end) => (end.status === 'fulfilled' ? [end.value] : []))
  }
}

const MAINTS: readonly MaintEffect[] = ['gentle', 'unknown', 'cuts', 'none']
const REMOVALS: readonly NonNullable<Capabilities['removal']>[] = [
  'keeps',
  'unknown',
  'cuts',
  'refuses',
]

/** The capabilities that all of them have. */
function weakest(all: readonly Capabilities[]): Capabilities {
  const most = (of: (one: Capabilities) => number): number => Math.max(...all.map(of))
  const every = (of: (one: Capabilities) => boolean): boolean => all.every(of)
  const states: readonly AdminState[] = ['ready', 'drain', 'maint']
  const kinds = all.map(({ counts }) => counts)
  const roughest = <T>(order: readonly T[], of: (one: Capabilities) => T): T =>
    all.map(of).reduce((a, b) => (order.indexOf(b) > order.indexOf(a) ? b : a))
  return {
    ladder: states.filter((state) => every(({ ladder }) => ladder.includes(state))),
    maint: roughest(MAINTS, ({ maint }) => maint),
    terminate: every(({ terminate }) => terminate),
    remove: every(({ remove }) => remove),
    removal: roughest(REMOVALS, ({ removal = 'unknown' }) => removal),
    add: every(({ add }) => add),
    counts: kinds.includes('none') ? 'none' : (kinds[0] ?? 'none'),
    freshness: most(({ freshness }) => freshness),
    blind: most(({ blind }) => blind),
    lateBound: most(({ lateBound }) => lateBound),
    countsAfterRemove: every(({ countsAfterRemove }) => countsAfterRemove),
    minTimeout: most(({ minTimeout = 0 }) => minTimeout),
    minInterval: most(({ minInterval = 0 }) => minInterval),
  }
}
