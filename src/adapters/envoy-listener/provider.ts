import { systemClock } from '../../provider/clock.js'
import { canonicalAddress } from '../../provider/address.js'
import { closedError, DrainableError, isDrainableError } from '../../provider/error.js'
import type {
  CallContext,
  Change,
  ChangeResult,
  DrainableProvider,
  MemberRef,
  PoolReading,
  ProviderInfo,
  Reading,
  Snapshot,
} from '../../provider/contract.js'
import { formatRef } from '../../provider/member-ref.js'
import { carefulApply } from '../../kit/careful-apply.js'
import { RecentMap } from '../../kit/recent-map.js'
import { PROVIDER } from './codec/server.js'
import type { Settings } from './options.js'
import { serves, toReading, type Look } from './read/reading.js'
import { parseAdminAddress, type AdminAddress } from '../../kit/envoy/admin.js'
import { AdminList } from '../../kit/envoy/admin-list.js'
import { parentScope } from '../../kit/envoy/parent.js'
import { Proxy } from './session/proxy.js'

/** Envoys as members of what is in front of them. */
export class EnvoyListenerProvider implements DrainableProvider {
  readonly specVersion = 1
  readonly name = PROVIDER
  readonly instance: string
  readonly #settings: Settings
  /** Every Envoy that was listed within the hour, by the name of its member. */
  readonly #proxies = new RecentMap<string, Proxy>(() => systemClock.now())
  readonly #closing = new AbortController()
  readonly #list: AdminList

  constructor(settings: Settings) {
    this.#settings = settings
    const { admin, pool } = settings
    this.#list = new AdminList(admin, { provider: PROVIDER, subject: 'envoyListener()' })
    const known = typeof admin === 'function' ? [] : admin.map(parseAdminAddress)
    const names = this.#named(known).map(({ address }) => address.member)
    this.instance = names.length > 0 ? names.join(',') : pool
  }

  async describe(ctx: CallContext): Promise<ProviderInfo> {
    const looks = await this.#within(ctx, (signal) => this.#look(signal, ctx))
    const versions = new Set(looks.flatMap(({ sample }) => sample?.info.version.text ?? []))
    return {
      product: 'envoy',
      version: [...versions].sort().join(', ') || 'unknown',
      capabilities: {
        ladder: ['ready', 'drain'],
        maint: 'none',
        terminate: false,
        remove: false,
        add: false,
        counts: 'requests',
        freshness: 0,
        blind: 0,
        lateBound: 1_000,
        survivesReload: false,
        countsAfterRemove: false,
        minTimeout: this.#settings.failAfter,
        minInterval: 50,
      },
    }
  }

  async observe(refs: readonly MemberRef[] | 'all', ctx: CallContext): Promise<Snapshot> {
    return this.#within(ctx, async (signal) => {
      const looks = await this.#look(signal, ctx)
      const byMember = new Map(looks.map((look) => [look.ref.member, look]))
      const now = ctx.clock.now()
      const wanted = refs === 'all' ? looks.map(({ ref }) => ref) : refs
      const readings = wanted.map((ref): Reading => {
        const look = ref.pool === this.#settings.pool ? byMember.get(nameOf(ref)) : undefined
        if (look === undefined) return { ref, present: false, scopes: [] }
        // Who it is must be known before anything is said of it.
        if (refs !== 'all' && look.proxy.last === undefined && look.error) throw look.error
        return toReading({ ...look, ref }, now)
      })
      return { readings, pools: this.#pools(looks, wanted), ended: this.#ended(looks) }
    })
  }

  async apply(changes: readonly Change[], ctx: CallContext): Promise<readonly ChangeResult[]> {
    if (changes.length === 0) return []
    return this.#within(ctx, (signal) =>
      carefulApply(
        {
          provider: PROVIDER,
          look: async () => {
            const looks = await this.#look(signal, ctx)
            const now = ctx.clock.now()
            return ({ ref }) => {
              const found = looks.find(
                (look) => ref.pool === look.ref.pool && nameOf(ref) === look.ref.member,
              )
              if (found === undefined) return undefined
              const { sample, error } = found
              const doubt = error?.message ?? `it is ${sample?.info.state ?? 'unknown'}`
              return { ...toReading({ ...found, ref }, now), doubt, passing: true }
            }
          },
          hold: ({ ref }) => this.#proxy(ref).fail({ ...ctx, signal }),
          restore: ({ ref }) => this.#proxy(ref).pass({ ...ctx, signal }),
          absent: ({ ref }) => `${formatRef(ref)} is not among the listed admin addresses`,
          maint:
            'an Envoy has no maintenance state, hold drain; drainListeners() closes its listeners',
          terminate: 'an Envoy cuts nothing by itself, wait, or call quit()',
          remove: 'the load balancer in front of an Envoy takes it out; quit() ends it',
          add: 'list the address of its admin API',
        },
        changes,
        { ...ctx, signal },
      ),
    )
  }

  async drainListeners(
    member?: MemberRef,
    { signal, skipExit = false }: { signal?: AbortSignal; skipExit?: boolean } = {},
  ): Promise<void> {
    const path = '/drain_listeners?graceful'
    await this.#command(skipExit ? `${path}&skip_exit` : path, member, signal)
  }

  async quit(member?: MemberRef, call: { signal?: AbortSignal } = {}): Promise<void> {
    await this.#command('/quitquitquit', member, call.signal)
  }

  close(): Promise<void> {
    this.#closing.abort(closedError(PROVIDER, this.instance))
    return Promise.resolve()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }

  async #command(path: string, member: MemberRef | undefined, given?: AbortSignal): Promise<void> {
    const signals = given === undefined ? [] : [given]
    const signal = AbortSignal.any([...signals, this.#closing.signal])
    signal.throwIfAborted()
    const listed = this.#named(await this.#list.now(signal))
    const meant = member === undefined ? listed : [this.#proxy(member)]
    const ends = await Promise.allSettled(
      meant.map((proxy) => proxy.command(path, { signal, clock: systemClock })),
    )
    const failed = ends.find((end) => end.status === 'rejected')
    if (failed !== undefined) throw failed.reason
  }

  #proxy(ref: MemberRef): Proxy {
    const proxy = this.#named(this.#list.last).find(({ address }) => address.member === nameOf(ref))
    if (proxy !== undefined && ref.pool === this.#settings.pool) return proxy
    const words = `${formatRef(ref)} is not among the listed admin addresses`
    throw new DrainableError('NOT_FOUND', words, { provider: PROVIDER, ref })
  }

  /** One look at every listed Envoy; throws only where none of them can be read. */
  async #look(signal: AbortSignal, ctx: CallContext): Promise<readonly Look[]> {
    const proxies = this.#named(await this.#list.now(signal))
    const looks = await Promise.all(
      proxies.map(async (proxy): Promise<Look> => {
        const ref = { pool: this.#settings.pool, member: proxy.address.member }
        try {
          const sample = await proxy.look({ ...ctx, signal })
          return { ref, proxy, sample, error: undefined }
        } catch (error) {
          signal.throwIfAborted()
          if (!isDrainableError(error)) throw error
          return { ref, proxy, sample: undefined, error }
        }
      }),
    )
    const [first] = looks
    if (looks.every(({ sample }) => sample === undefined) && first?.error) throw first.error
    return looks
  }

  #named(addresses: readonly AdminAddress[]): readonly Proxy[] {
    const proxies = addresses.map((address) => {
      const known = this.#proxies.get(address.member)
      const proxy = known ?? new Proxy(address, this.#settings)
      this.#proxies.set(address.member, proxy)
      return proxy
    })
    return [...new Set(proxies)]
  }

  #pools(looks: readonly Look[], wanted: readonly MemberRef[]): readonly PoolReading[] {
    const { pool } = this.#settings
    if (!wanted.some((ref) => ref.pool === pool)) return []
    // What is in front, and what else stands behind it, is not seen from here.
    const serving = looks.filter(serves).length
    return [{ pool, serving, total: looks.length, whenNone: 'unknown' }]
  }

  /** What the list no longer names has ended by the caller's word; a parent, by its child's statistics. */
  #ended(looks: readonly Look[]): readonly string[] {
    const listed = new Set(looks.map(({ ref }) => ref.member))
    const dropped = this.#proxies.keys().filter((member) => !listed.has(member))
    const orphans = looks.filter(
      ({ sample }) => sample !== undefined && sample.previous?.isEnded !== false,
    )
    return [
      ...dropped.flatMap((member) => [member, parentScope(member)]),
      ...orphans.map(({ ref }) => parentScope(ref.member)),
    ]
  }

  #within<T>(ctx: CallContext, fn: (signal: AbortSignal) => Promise<T>): Promise<T> {
    ctx.signal.throwIfAborted()
    this.#closing.signal.throwIfAborted()
    return fn(AbortSignal.any([ctx.signal, this.#closing.signal]))
  }
}

/** `10.0.0.1:9901`, however its address is written. */
function nameOf({ member }: MemberRef): string {
  if (member.startsWith('/')) return member
  const cut = member.lastIndexOf(':')
  if (cut === -1) return member
  const host = canonicalAddress(member.slice(0, cut))
  return `${host.includes(':') ? `[${host}]` : host}${member.slice(cut)}`
}
