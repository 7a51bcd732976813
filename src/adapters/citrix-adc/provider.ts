import { instanceOf } from '../../kit/options.js'
import { Steady } from '../../kit/look-cost.js'
import type {
  AddressTarget,
  CallContext,
  Capabilities,
  Change,
  ChangeResult,
  DrainableProvider,
  MemberRef,
  PoolReading,
  ProviderInfo,
  Reading,
  Snapshot,
} from '../../provider/contract.js'
import { canonicalAddress } from '../../provider/address.js'
import { DrainableError } from '../../provider/error.js'
import { refKey } from '../../provider/member-ref.js'
import { pathOf, rowsOf } from './codec/nitro.js'
import { Memory } from './read/memory.js'
import type { Settings } from './options.js'
import type { InCharge } from './session/standing.js'
import { Pair } from './session/pair.js'
import { Looks, type Seen } from './read/looks.js'
import { Index, wishesOf } from './read/match.js'
import type { Found, PoolState } from './read/pool.js'
import { planOf } from './read/plan.js'
import { recalled, toReading } from './read/reading.js'
import { Rights } from './read/rights.js'
import { isNetworkError } from './session/session.js'
import { applyChanges } from './change/change.js'
import type { Shared } from './change/look.js'
import { Sender } from './change/sender.js'

/** A role that changes again and again is given up after so many looks. */
const LOOKS = 3

/** The appliance looks at its members once a second, in milliseconds. */
const STATE_INTERVAL = 1_000

/** A Citrix ADC, a pair of them or a cluster, over NITRO. */
export class CitrixAdcProvider implements DrainableProvider {
  readonly specVersion = 1
  readonly name = 'citrix-adc'
  readonly instance: string
  readonly #shared: Shared
  readonly #minInterval: number
  readonly #steady: Steady
  readonly #rights: Rights
  #plan: ReadonlyMap<string, readonly string[]> = new Map()

  constructor(options: Settings) {
    const pair = new Pair(options)
    const looks = new Looks(options.freshness)
    const sender = new Sender(pair)
    this.#shared = { settings: options, pair, memory: new Memory(), looks, sender }
    this.#rights = new Rights(options)
    this.#minInterval = options.minInterval ?? Math.min(STATE_INTERVAL, options.freshness)
    this.#steady = new Steady(this.#minInterval)
    const partition = options.partition === undefined ? '' : `#${options.partition}`
    this.instance = `${instanceOf(options.urls)}${partition}`
  }

  async describe(ctx: CallContext): Promise<ProviderInfo> {
    ctx.signal.throwIfAborted()
    const { pair } = this.#shared
    const { session } = await pair.inCharge(ctx)
    await pair.refuseStrangers(ctx)
    await this.#rights.read(session, ctx)
    const reply = await session.get(pathOf('config', 'nsversion'), ctx)
    const said = rowsOf(reply, 'nsversion')[0]?.at('version').text()?.slice(0, 500) ?? ''
    const build = /NS(\d+(?:\.\d+)*):?\s*(?:Build\s+(\d+(?:\.\d+)*))?/i.exec(said)
    const version = build === null ? 'unknown' : [build[1], build[2]].filter(Boolean).join('-')
    const capabilities = this.#capabilities()
    return { product: 'citrix-adc', version, capabilities, hints: this.#rights.limits }
  }

  async observe(refs: readonly MemberRef[] | 'all', ctx: CallContext): Promise<Snapshot> {
    ctx.signal.throwIfAborted()
    if (refs !== 'all' && refs.length === 0) return { readings: [], pools: [] }
    return this.#steady.look(refs, ctx, () => this.#observe(refs, ctx))
  }

  async #observe(refs: readonly MemberRef[] | 'all', ctx: CallContext): Promise<Snapshot> {
    const { settings, pair, memory, looks } = this.#shared
    for (let look = 1; ; look++) {
      const charge = await pair.inCharge(ctx)
      const stamp = memory.stamp()
      try {
        const { pools, counted } = await this.#read(refs, charge, ctx)
        // The standing is read after the counts and was read before them: they are of one incarnation.
        if (await pair.stillInCharge(charge, ctx, counted)) {
          const rivals = await pair.rivals(charge, ctx, counted)
          const readings = assign(refs, pools).map((one) => {
            const reading = this.#toReading(one, charge, stamp)
            return { ...reading, scopes: [...reading.scopes, ...rivals] }
          })
          // One node holds the traffic: whoever held it before has ended with its role.
          const ended = charge.standing.role === 'unknown' ? {} : ({ ended: 'unlisted' } as const)
          return { readings, pools: pools.map(toPoolReading), ...ended }
        }
        looks.forget()
      } catch (error) {
        pair.forget()
        looks.forget()
        if (ctx.signal.aborted || !isNetworkError(error) || look > 1) throw error
        if (settings.urls.length === 1) throw error
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

  /** All that is bound by address is told in few lists: only what has it is counted then. */
  async find({ address, port }: AddressTarget, ctx: CallContext): Promise<readonly MemberRef[]> {
    ctx.signal.throwIfAborted()
    this.#steady.wake(ctx)
    const { settings, pair, looks } = this.#shared
    const { session } = await pair.inCharge(ctx)
    const { pools } = await looks.everything(session, ctx, false)
    await this.#rights.read(session, ctx)
    const wished = canonicalAddress(address)
    const hits = assign('all', pools).flatMap(({ ref, found }) => {
      if (found?.entry.address === undefined) return []
      const isHere = canonicalAddress(found.entry.address) === wished
      return isHere && (port === undefined || found.entry.port === port) ? [{ ref, found }] : []
    })
    this.#plan = planOf(hits, session, settings)
    return hits.map(({ ref }) => ref)
  }

  async apply(changes: readonly Change[], ctx: CallContext): Promise<readonly ChangeResult[]> {
    ctx.signal.throwIfAborted()
    if (changes.length === 0) return []
    this.#steady.wake(ctx)
    try {
      return await applyChanges(this.#shared, changes, ctx)
    } finally {
      this.#steady.wake(ctx)
    }
  }

  async close(): Promise<void> {
    await this.#shared.pair.close()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }

  #capabilities(): Capabilities {
    const { settings } = this.#shared
    return {
      ladder: ['ready', 'drain', 'maint'],
      maint: 'cuts',
      terminate: true,
      remove: true,
      removal: 'cuts',
      add: true,
      counts: 'connections',
      freshness: settings.freshness,
      blind: 0,
      lateBound: 10_000,
      survivesReload: settings.save,
      countsAfterRemove: false,
      minInterval: this.#minInterval,
    }
  }

  #read(
    refs: readonly MemberRef[] | 'all',
    { session }: InCharge,
    ctx: CallContext,
  ): Promise<Seen> {
    const { looks } = this.#shared
    if (refs === 'all') return looks.everything(session, ctx)
    return looks.at(wishesOf(refs), session, ctx, { patient: this.#steady.isSteady })
  }

  #toReading({ ref, found }: Asked, { standing }: InCharge, stamp: number): Reading {
    // Unbinding cuts: nothing of it is left anywhere.
    if (found === undefined) return { ref, present: false, scopes: [] }
    const { memory, sender } = this.#shared
    const member = recalled(found, memory, stamp, standing)
    memory.counted(found.entry.subject, found.counts, found.countedAt)
    const plan = this.#plan.get(refKey(ref)) ?? []
    const hints = [...plan, ...this.#rights.missing, ...sender.hints]
    return toReading(ref, member, standing, hints)
  }
}

/** A ref and what was found for it. */
interface Asked {
  readonly ref: MemberRef
  readonly found: Found | undefined
}

function assign(refs: readonly MemberRef[] | 'all', pools: readonly PoolState[]): readonly Asked[] {
  if (refs === 'all') {
    return pools.flatMap(({ name, entries }) =>
      entries.map((found) => ({ ref: { pool: name, member: found.entry.member }, found })),
    )
  }
  const byName = new Map(pools.map((pool) => [pool.name, new Index(pool)]))
  return refs.map((ref) => ({ ref, found: byName.get(ref.pool)?.pick(ref.member) }))
}

function toPoolReading({ name, serving, total, whenNone, odd: [odd] }: PoolState): PoolReading {
  const unknown =
    odd === undefined ? {} : { unknown: `a row of ${name} can't be read: ${odd.message}` }
  return { pool: name, serving, total, whenNone, ...unknown }
}
