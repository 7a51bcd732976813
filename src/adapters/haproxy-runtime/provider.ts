import type {
  CallContext,
  Change,
  ChangeResult,
  DrainableProvider,
  MemberRef,
  ProviderInfo,
  Reading,
  Snapshot,
} from '../../provider/contract.js'
import { carefulApply } from '../../kit/careful-apply.js'
import type { CarefulAdapter } from '../../kit/change.js'
import { type Found, sends, toFound } from './change/change.js'
import { isName } from './codec/commands.js'
import { parseVersion } from '../../kit/version.js'
import { ControlPoint, type EverySight } from './session/session.js'
import type { Blindness } from './session/unseen.js'
import type { Facts } from './session/facts.js'
import { Followers, mayLead } from './read/followers.js'
import type { Settings } from './options.js'
import { type Process, toProcess } from './session/process.js'
import type { Wanted } from './read/read.js'
import { keyOf, Readings, STATE_FILE_UNKNOWN, toPools } from './read/reading.js'
import type { Workshop } from './change/workshop.js'

/** How long no counter includes a request in turn-around after a refused connect (a little over 1,000 ms), ms. */
const BLIND = 1_100
/** A frozen process executes a command that was given up within this time after it continues, ms. */
const LATE_BOUND = 1_000

/** Drains servers of one HAProxy through its Runtime API. */
export class HaproxyRuntimeProvider implements DrainableProvider {
  readonly specVersion = 1
  readonly name = 'haproxy-runtime'
  readonly instance: string
  readonly #settings: Settings
  readonly #followers = new Followers()
  /** Members whose hold has passed the checks and that were not restored, by key. */
  readonly #held = new Set<string>()
  readonly #point: ControlPoint
  readonly #readings: Readings

  constructor(settings: Settings) {
    this.#settings = settings
    this.#point = new ControlPoint(settings)
    this.#readings = new Readings(settings, this.#point)
    this.instance = this.#point.label
  }

  async describe(ctx: CallContext): Promise<ProviderInfo> {
    const { info } = await this.#point.connect(ctx)
    return {
      product: 'haproxy',
      version: info.version,
      capabilities: {
        ladder: ['ready', 'drain', 'maint'],
        maint: this.#settings.maintCuts ? 'cuts' : 'gentle',
        terminate: true,
        remove: true,
        add: true,
        counts: 'requests',
        freshness: 0,
        blind: BLIND,
        lateBound: LATE_BOUND,
        survivesReload: false,
        countsAfterRemove: false,
      },
      hints: [STATE_FILE_UNKNOWN],
    }
  }

  async observe(refs: readonly MemberRef[] | 'all', ctx: CallContext): Promise<Snapshot> {
    await this.#point.connect(ctx)
    const targeted = refs !== 'all'
    const seen = await this.#point.readEvery(targeted ? toWanted(refs) : 'all', ctx)
    const sights = [...seen.sight.members.values()]
    const tracked = await this.#tracked(seen, targeted, ctx)
    const readings = (targeted ? refs : sights.map(({ ref }) => ref)).map((ref): Reading => {
      const sight = seen.sight.members.get(keyOf(ref))
      if (sight === undefined)
        return { ref, present: false, scopes: this.#readings.scopes(ref, seen) }
      return this.#readings.present(ref, sight, seen, tracked.get(keyOf(ref)) ?? [])
    })
    const pools = toPools(seen.sight, targeted ? refs[0]?.balancer : undefined)
    return { readings, pools, ended: this.#readings.ended(seen) }
  }

  /** Returns which servers track which; learnt once per process. */
  async #tracked(
    { process, sight, replaced }: EverySight,
    targeted: boolean,
    ctx: CallContext,
  ): Promise<ReadonlyMap<string, readonly MemberRef[]>> {
    const { scope } = process
    const sights = [...sight.members.values()]
    if (!targeted) {
      const rows = sights.map(({ row }) => row)
      return this.#followers.learn(scope, rows)
    }
    // A drain lost in a reload is put back before anything else is read.
    if (replaced) return new Map()
    const leads = sights.some(({ state, row }) => mayLead(state, row.tracked !== ''))
    return this.#followers.read(scope, leads, this.#point.channel(process), ctx)
  }

  async apply(changes: readonly Change[], ctx: CallContext): Promise<readonly ChangeResult[]> {
    let shop: Workshop | undefined
    const made = (): Workshop => {
      if (shop === undefined) throw new TypeError('a change without a look')
      return shop
    }
    const adapter: CarefulAdapter<Found> = {
      ...sends(made, this.instance),
      provider: this.name,
      look: async (of, ctx) => {
        const seen = await this.#look(of, ctx)
        shop = seen.shop
        return (change) => {
          const state = seen.states.get(change.ref.pool)?.get(change.ref.member)
          return state && toFound(state)
        }
      },
    }
    const before = new Set(this.#held)
    const results = await carefulApply(adapter, changes, ctx)
    for (const [index, { kind, ref }] of changes.entries()) {
      const status = results[index]?.status
      const key = keyOf(ref)
      if (kind === 'hold' && status === 'unchanged') this.#held.add(key)
      else if (kind === 'hold' && status === 'rejected' && !before.has(key)) this.#held.delete(key)
      else if (kind !== 'hold' && kind !== 'terminate' && status !== 'rejected')
        this.#held.delete(key)
    }
    return results
  }

  close(): Promise<void> {
    this.#point.close()
    return Promise.resolve()
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  /** Reads the servers concerned in the process to change, and prepares the workshop for changes. */
  async #look(
    changes: readonly Change[],
    ctx: CallContext,
  ): Promise<Awaited<ReturnType<ControlPoint['states']>> & { readonly shop: Workshop }> {
    const facts = await this.#point.connect(ctx)
    const found = await this.#point.states(new Set(changes.map(({ ref }) => ref.pool)), ctx)
    const { process, states } = found
    const held = changes.flatMap(({ kind, ref }) =>
      kind === 'hold' && !this.#held.has(keyOf(ref))
        ? (states.get(ref.pool)?.get(ref.member) ?? [])
        : [],
    )
    const leads = held.some((state) =>
      mayLead(state, process.view.tracks({ pool: state.pool, member: state.name })),
    )
    await this.#followers.read(process.scope, leads, this.#point.channel(process), ctx)
    const blindness = this.#point.unseen.blindness()
    return { ...found, shop: this.#workshop(facts, process, changes, blindness) }
  }

  #workshop(
    facts: Facts,
    process: Process,
    changes: readonly Change[],
    blindness: Blindness | undefined,
  ): Workshop {
    const version = parseVersion(facts.info.version)
    return {
      send: (line, then) => this.#point.change(process, line, then),
      isPredecessor: ({ info }) => this.#point.others.isOld(toProcess(info, 0).scope),
      view: process.view,
      channel: this.#point.channel(process),
      others: changes.some(({ kind }) => kind === 'terminate') ? this.#point.oldChannels() : [],
      isHeld: (ref) => this.#held.has(keyOf(ref)),
      passed: (ref) => void this.#held.add(keyOf(ref)),
      hasStrays: (ref) => process.strays.of(ref) > 0 || this.#point.others.hasStrays(ref),
      followers: (ref) => this.#followers.of(ref),
      keepFollowers: this.#settings.keepFollowers,
      unseen:
        this.#settings.oldWorkers === 'wait' && blindness?.refuses ? blindness.why : undefined,
      canWait: version !== undefined && version.major >= 3,
    }
  }
}

function toWanted(refs: readonly MemberRef[]): Wanted {
  const wanted = new Map<string, Set<string>>()
  for (const { pool, member } of refs) {
    // A server whose name HAProxy does not allow can't exist: it counts as absent and its name is never sent.
    if (!isName(pool) || !isName(member)) continue
    const names = wanted.get(pool) ?? new Set()
    wanted.set(pool, names.add(member))
  }
  return wanted
}
