import type {
  CallContext,
  Capabilities,
  Change,
  ChangeResult,
  DrainableProvider,
  LoadScope,
  MemberRef,
  PoolReading,
  ProviderInfo,
  Reading,
  Snapshot,
} from '../../provider/contract.js'
import { DrainableError } from '../../provider/error.js'
import { refKey } from '../../provider/member-ref.js'
import { pathOf, rowsOf } from './codec/nitro.js'
import { Memory } from './read/memory.js'
import type { Settings } from './options.js'
import { type InCharge, Pair } from './session/pair.js'
import { Index, wantedOf } from './read/match.js'
import { type Found, type PoolState, Reader } from './read/read.js'
import { toReading } from './read/reading.js'
import { isNetworkError } from './session/session.js'
import { Writer } from './change/change.js'

/** A role that changes again and again is given up after so many looks. */
const LOOKS = 3

/** A Citrix ADC, a pair of them or a cluster, over NITRO. */
export class CitrixAdcProvider implements DrainableProvider {
  readonly specVersion = 1
  readonly name = 'citrix-adc'
  readonly instance: string
  readonly #options: Settings
  readonly #pair: Pair
  readonly #memory = new Memory()
  readonly #writer: Writer
  /** Of each member that was ever found, the nodes that could hold work for it, with their incarnations. */
  readonly #nodes = new Map<string, Map<string, string>>()

  constructor(options: Settings) {
    this.#options = options
    this.#pair = new Pair(options)
    this.#writer = new Writer(options, this.#pair, this.#memory)
    const partition = options.partition === undefined ? '' : `#${options.partition}`
    const urls = options.urls.map((url) => new URL(url))
    this.instance = `${urls.map((url) => url.origin + url.pathname.replace(/\/$/, '')).join(',')}${partition}`
  }

  async describe(ctx: CallContext): Promise<ProviderInfo> {
    ctx.signal.throwIfAborted()
    const { session } = await this.#pair.inCharge(ctx)
    const reply = await session.get(pathOf('config', 'nsversion'), ctx)
    const said = rowsOf(reply, 'nsversion')[0]?.at('version').text()?.slice(0, 500) ?? ''
    const build = /NS(\d+(?:\.\d+)*):?\s*(?:Build\s+(\d+(?:\.\d+)*))?/i.exec(said)
    const version = build === null ? 'unknown' : [build[1], build[2]].filter(Boolean).join('-')
    return { product: 'citrix-adc', version, capabilities: this.#capabilities() }
  }

  async observe(refs: readonly MemberRef[] | 'all', ctx: CallContext): Promise<Snapshot> {
    ctx.signal.throwIfAborted()
    if (refs !== 'all' && refs.length === 0) return { readings: [], pools: [] }
    for (let look = 1; ; look++) {
      const charge = await this.#pair.inCharge(ctx)
      const stamp = this.#memory.stamp()
      try {
        const pools = await this.#read(refs, charge, ctx)
        const asked = assign(refs, pools)
        const disabled = await disabledServers(asked, charge, ctx)
        // The standing is read after the counts and was read before them: they are of one incarnation.
        if (await this.#pair.stillInCharge(charge, ctx)) {
          const readings = asked.map((one) => this.#toReading(one, disabled, charge, stamp, ctx))
          return { readings, pools: pools.map(toPoolReading) }
        }
      } catch (error) {
        this.#pair.forget()
        if (ctx.signal.aborted || !isNetworkError(error) || look > 1) throw error
        if (this.#options.urls.length === 1) throw error
        continue
      }
      if (look === LOOKS) {
        throw new DrainableError(
          'UNREACHABLE',
          `${charge.session.url}: the role of the node changes from look to look, nothing read from it can be relied on`,
          { provider: this.name },
        )
      }
    }
  }

  async apply(changes: readonly Change[], ctx: CallContext): Promise<readonly ChangeResult[]> {
    ctx.signal.throwIfAborted()
    return changes.length === 0 ? [] : this.#writer.apply(changes, ctx)
  }

  async close(): Promise<void> {
    await this.#pair.close()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }

  #capabilities(): Capabilities {
    return {
      ladder: ['ready', 'drain', 'maint'],
      maint: 'cuts',
      terminate: true,
      remove: false,
      add: false,
      counts: 'connections',
      freshness: this.#options.freshness,
      blind: 0,
      lateBound: 10_000,
      survivesReload: this.#options.save,
      countsAfterRemove: false,
      minInterval: 500,
    }
  }

  async #read(
    refs: readonly MemberRef[] | 'all',
    { session }: InCharge,
    ctx: CallContext,
  ): Promise<readonly PoolState[]> {
    const reader = new Reader(session, ctx)
    if (refs === 'all') return reader.everything()
    const pools: PoolState[] = []
    for (const [pool, members] of byPool(refs)) {
      const found = await reader.pool(pool, wantedOf(members))
      if (found !== undefined) pools.push(found)
    }
    return pools
  }

  #toReading(
    { ref, pool, found }: Asked,
    disabled: ReadonlySet<string>,
    { standing }: InCharge,
    stamp: number,
    ctx: CallContext,
  ): Reading {
    const { node, incarnation } = standing
    if (pool === undefined || found === undefined) {
      // Unbinding cuts: nothing of it is left anywhere.
      return { ref, present: false, scopes: this.#endedScopes(ref, undefined, ctx) }
    }
    const { entry } = found
    const known = this.#nodes.get(refKey(ref)) ?? new Map<string, string>()
    this.#nodes.set(refKey(ref), known.set(node, incarnation))
    this.#memory.sight(entry, stamp, incarnation)
    const deed = this.#memory.recall(entry, stamp, incarnation)
    this.#memory.counted(entry.subject, found.counts, pool.sampledAt)
    const reading = toReading(ref, {
      ...found,
      deed,
      serverDisabled: disabled.has(entry.server),
      standing,
      sampledAt: pool.sampledAt,
      hints: this.#writer.hints,
    })
    return { ...reading, scopes: [...reading.scopes, ...this.#endedScopes(ref, node, ctx)] }
  }

  /** Nodes that were in charge once and are not any more: their connections ended with their role. */
  #endedScopes(
    ref: MemberRef,
    current: string | undefined,
    { clock }: CallContext,
  ): readonly LoadScope[] {
    return [...(this.#nodes.get(refKey(ref)) ?? [])]
      .filter(([node]) => node !== current)
      .map(([node, incarnation]) => ({
        scope: node,
        incarnation,
        state: 'ended' as const,
        sampledAt: clock.now(),
        active: 0,
        queued: 0,
        inForce: true,
      }))
  }
}

/** A ref and what was found for it. */
interface Asked {
  readonly ref: MemberRef
  readonly pool: PoolState | undefined
  readonly found: Found | undefined
}

function assign(refs: readonly MemberRef[] | 'all', pools: readonly PoolState[]): readonly Asked[] {
  if (refs === 'all') {
    return pools.flatMap((pool) =>
      pool.entries.map((found) => {
        const ref = { pool: pool.name, member: found.entry.member }
        return { ref, pool, found }
      }),
    )
  }
  const byName = new Map(pools.map((pool) => [pool.name, { pool, index: new Index(pool) }]))
  return refs.map((ref) => {
    const known = byName.get(ref.pool)
    return { ref, pool: known?.pool, found: known?.index.pick(ref.member) }
  })
}

/** Those servers that take their members with them; asked only about members that are out. */
function disabledServers(
  asked: readonly Asked[],
  { session }: InCharge,
  ctx: CallContext,
): Promise<ReadonlySet<string>> {
  const servers = asked.flatMap(({ found }) =>
    found === undefined || found.entry.phase === 'in' ? [] : [found.entry.server],
  )
  return new Reader(session, ctx).disabledServers(servers)
}

function byPool(refs: readonly MemberRef[]): ReadonlyMap<string, readonly string[]> {
  return new Map(
    [...Map.groupBy(refs, ({ pool }) => pool)].map(([pool, of]) => [
      pool,
      of.map(({ member }) => member),
    ]),
  )
}

function toPoolReading({ name, serving, total, whenNone }: PoolState): PoolReading {
  return { pool: name, serving, total, whenNone }
}
