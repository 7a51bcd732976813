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
import { DrainableError, isDrainableError } from '../../provider/error.js'
import { applyChange } from './change/change.js'
import { AnotherProcess } from './session/channel.js'
import { isName } from './codec/commands.js'
import { parseVersion } from '../../kit/version.js'
import type { ServerState } from './codec/state.js'
import { ControlPoint } from './session/session.js'
import type { Facts } from './session/facts.js'
import { Followers } from './read/followers.js'
import type { Settings } from './options.js'
import type { Process } from './session/process.js'
import type { Wanted } from './read/read.js'
import { keyOf, Readings, toPools } from './read/reading.js'
import { ScopeMemory } from './read/scopes.js'
import type { Workshop } from './change/workshop.js'

/** How long a request in turn-around after a refused connect is in no counter (1,000 ms and a bit), ms. */
const BLIND = 1_100
/** A command given up is executed within that long after a frozen process goes on, ms. */
const LATE_BOUND = 1_000

/** Drains servers of one HAProxy through its Runtime API. */
export class HaproxyRuntimeProvider implements DrainableProvider {
  readonly specVersion = 1
  readonly name = 'haproxy-runtime'
  readonly instance: string
  readonly #settings: Settings
  readonly #memory = new ScopeMemory()
  readonly #followers = new Followers()
  readonly #point: ControlPoint
  readonly #readings: Readings

  constructor(settings: Settings) {
    this.#settings = settings
    this.#point = new ControlPoint(settings, (scope) => this.#memory.isSettled(scope))
    this.#readings = new Readings(settings, this.#point, this.#memory)
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
    }
  }

  async observe(refs: readonly MemberRef[] | 'all', ctx: CallContext): Promise<Snapshot> {
    await this.#point.connect(ctx)
    const targeted = refs !== 'all'
    if (targeted) this.#memory.look(refs, ctx.clock.now())
    const seen = await this.#point.readEvery(targeted ? toWanted(refs) : 'all', ctx)
    const sights = [...seen.sight.members.values()]
    const { scope } = seen.process
    const channel = this.#point.channel(seen.process)
    const tracked = targeted
      ? await this.#followers.read(scope, sights, channel, ctx.signal)
      : this.#followers.learn(
          scope,
          sights.map(({ row }) => row),
        )
    const readings = (targeted ? refs : sights.map(({ ref }) => ref)).map((ref): Reading => {
      const scopes = this.#readings.scopes(ref, seen, targeted, ctx)
      const sight = seen.sight.members.get(keyOf(ref))
      if (sight === undefined) return { ref, present: false, scopes }
      return this.#readings.present(ref, sight, scopes, tracked.get(keyOf(ref)) ?? [])
    })
    this.#point.others.forget((name) => this.#memory.isListed(name))
    const pools = toPools(seen.sight, targeted ? refs[0]?.balancer : undefined)
    // A ticket may know a process that this provider never saw: one that the master does not list has ended.
    return { readings, pools, ...(seen.others.complete ? { ended: 'unlisted' as const } : {}) }
  }

  async apply(changes: readonly Change[], ctx: CallContext): Promise<readonly ChangeResult[]> {
    const facts = await this.#point.connect(ctx)
    const refused = new Map<Change, DrainableError>()
    for (const change of changes) {
      const error = this.#refusal(change)
      if (error !== undefined) refused.set(change, error)
    }
    const open = changes.filter((change) => !refused.has(change))
    const { process, states } = await this.#point.states(
      new Set(open.map(({ ref }) => ref.pool)),
      ctx,
    )
    if (open.some(({ kind }) => kind === 'hold')) await this.#point.keepFirst(process, ctx)
    const held = open.flatMap(({ kind, ref }) =>
      kind === 'hold' ? (states.get(ref.pool)?.get(ref.member) ?? []) : [],
    )
    const all = held.map((state) => ({ state }))
    await this.#followers.read(process.scope, all, this.#point.channel(process), ctx.signal)
    const shop = this.#workshop(facts, process, open)
    const results: ChangeResult[] = []
    const end = (result: ChangeResult): void => {
      results.push(result)
      ctx.result?.(results.length - 1, result)
    }
    let lost: DrainableError | undefined
    for (const change of changes) {
      const { ref } = change
      const error = refused.get(change)
      if (error !== undefined) end({ ref, status: 'rejected', error })
      else if (lost !== undefined) end({ ref, status: 'unknown', error: lost })
      else {
        const found = states.get(ref.pool)?.get(ref.member)
        const result = await this.#one(shop, change, found, ctx)
        if (result.status === 'unknown') lost = result.error
        end(result)
      }
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

  /** A throw of one change says nothing of those that were done before it. */
  async #one(
    shop: Workshop,
    change: Change,
    found: ServerState | undefined,
    ctx: CallContext,
  ): Promise<ChangeResult> {
    const { ref } = change
    try {
      return await applyChange(shop, change, found, ctx)
    } catch (error) {
      if (ctx.signal.aborted) throw ctx.signal.reason
      if (error instanceof AnotherProcess) {
        return {
          ref,
          status: 'unknown',
          error: new DrainableError('CONFLICT', `${this.instance} was reloaded during the change`, {
            ref,
            provider: this.name,
            cause: error,
          }),
        }
      }
      if (!isDrainableError(error)) throw error
      const status = error.code === 'INVALID_OPTIONS' ? 'rejected' : 'unknown'
      return { ref, status, error }
    }
  }

  /** What is known before anything is sent. */
  #refusal(change: Change): DrainableError | undefined {
    const { ref } = change
    if (change.kind !== 'hold' || this.#settings.oldWorkers !== 'wait') return undefined
    const unseen = this.#point.unseenAtStart()
    if (unseen === undefined) return undefined
    return new DrainableError(
      'UNSUPPORTED',
      `${ref.pool}/${ref.member} was not drained: ${unseen}`,
      {
        ref,
        provider: this.name,
      },
    )
  }

  #workshop(facts: Facts, process: Process, changes: readonly Change[]): Workshop {
    const version = parseVersion(facts.info.version)
    return {
      send: (line, signal) => this.#point.change(process, line, signal),
      view: process.view,
      channel: this.#point.channel(process),
      others: changes.some(({ kind }) => kind === 'terminate') ? this.#point.oldChannels() : [],
      followers: (ref) => this.#followers.of(ref),
      keepFollowers: this.#settings.keepFollowers,
      canWait: version !== undefined && version.major >= 3,
    }
  }
}

function toWanted(refs: readonly MemberRef[]): Wanted {
  const wanted = new Map<string, Set<string>>()
  for (const { pool, member } of refs) {
    // What HAProxy can't have in a name can't be there: it is never sent, and absent.
    if (!isName(pool) || !isName(member)) continue
    const names = wanted.get(pool) ?? new Set()
    wanted.set(pool, names.add(member))
  }
  return wanted
}
