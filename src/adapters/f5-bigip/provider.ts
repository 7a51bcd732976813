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
import { DrainableError, isDrainableError } from '../../provider/error.js'
import { applyAll, type Applied } from './change/change.js'
import { readVersion } from './codec/device.js'
import type { MemberRow } from './codec/members.js'
import { isPossible } from './codec/names.js'
import { Device } from './session/device.js'
import { Hints } from './read/hints.js'
import type { Settings } from './options.js'
import { readMember, readNodeTarget, readPoolTotals, type Composer } from './read/reading.js'
import { ScopeMemory } from './read/scopes.js'
import { PROVIDER, Session } from './session/session.js'
import { Aftermath } from './change/sync.js'
import { NODES, Resolver, toTarget, type MemberTarget, type Target } from './read/target.js'
import { readUnit, type PoolView, type ReadUnit, type UnitView, type Wanted } from './read/read.js'

/** For how long a request that was given up can still be carried out, in milliseconds. */
const LATE_BOUND = 30_000

/** Members and nodes of one BIG-IP, or of the units of a pair. */
export class F5BigipProvider implements DrainableProvider {
  readonly specVersion = 1
  readonly name = PROVIDER
  readonly instance: string
  readonly #settings: Settings
  readonly #devices: readonly Device[]
  readonly #memory = new ScopeMemory()
  readonly #hints = new Hints()
  readonly #resolver: Resolver
  readonly #aftermath: Aftermath
  #info: ProviderInfo | undefined

  constructor(settings: Settings) {
    this.#settings = settings
    this.#devices = settings.urls.map((url) => new Device(new Session(url, settings), settings))
    this.#aftermath = new Aftermath(settings)
    this.#resolver = new Resolver(settings.partition)
    this.instance = settings.urls.map((url) => new URL(url).origin).join(',')
  }

  async describe(ctx: CallContext): Promise<ProviderInfo> {
    this.#info ??= {
      product: 'bigip',
      version: await this.#readVersion(ctx),
      capabilities: {
        ladder: ['ready', 'drain', 'maint'],
        maint: 'unknown', // each pool says: serviceDownAction
        terminate: true,
        remove: true,
        add: true,
        counts: 'connections',
        freshness: this.#settings.freshness,
        blind: 0,
        lateBound: LATE_BOUND,
        survivesReload: this.#settings.save,
        countsAfterRemove: false,
        minInterval: this.#settings.minInterval,
      },
    }
    return this.#info
  }

  async observe(refs: readonly MemberRef[] | 'all', ctx: CallContext): Promise<Snapshot> {
    ctx.signal.throwIfAborted()
    if (refs.length === 0) return { readings: [], pools: [] }
    const given = refs === 'all' ? undefined : refs.map((ref) => this.#target(ref))
    const wanted = this.#wanted(given)
    const views = await Promise.all(this.#devices.map((device) => readUnit(device, wanted, ctx)))
    const active = assertActive(views)
    const targets = given ?? this.#everything(active)
    const composer = this.#composer()
    const readings = targets.map((target) =>
      target.kind === 'node'
        ? readNodeTarget(composer, target, views)
        : readMember(composer, target, views),
    )
    await this.#askWhy(active, readings, ctx)
    return { readings, pools: this.#pools(targets, active) }
  }

  async apply(changes: readonly Change[], ctx: CallContext): Promise<readonly ChangeResult[]> {
    ctx.signal.throwIfAborted()
    if (changes.length === 0) return []
    const devices = await this.#activeDevices(ctx)
    const [first] = devices
    if (first === undefined) return []
    try {
      await this.#aftermath.before(first, ctx)
    } catch (error) {
      if (!isDrainableError(error) || error.retryable) throw error
      const results = changes.map(({ ref }) => ({ ref, status: 'rejected' as const, error }))
      results.forEach((result, i) => ctx.result?.(i, result))
      return results
    }
    const site = { devices, resolver: this.#resolver }
    const sent = (): number => devices.reduce((sum, { session }) => sum + session.changes, 0)
    const before = sent()
    try {
      const applied = await applyAll(site, changes, ctx)
      const { results } = applied
      this.#noteResults(changes, applied)
      if (applied.touched) {
        for (const device of devices) await this.#aftermath.after(device, ctx)
      }
      if (results.some(({ status }) => status === 'unknown')) this.#aftermath.missed()
      return results
    } catch (error) {
      // Given up in the middle: what was done until then was not pushed or saved
      if (sent() > before) this.#aftermath.missed()
      throw error
    }
  }

  async close(): Promise<void> {
    await Promise.all(this.#devices.map((device) => device.session.close()))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }

  /** The first unit that answers tells for all: a pair runs one release but for the time of an upgrade. */
  async #readVersion(ctx: CallContext): Promise<string> {
    let failure: unknown
    for (const { session } of this.#devices) {
      try {
        const found = await session.get('/mgmt/tm/sys/version', ctx)
        if (found !== undefined) return readVersion(found)
        throw new DrainableError('NOT_FOUND', `${session.host}: there is no /mgmt/tm/sys/version`, {
          provider: PROVIDER,
        })
      } catch (error) {
        if (ctx.signal.aborted) throw error
        failure ??= error
      }
    }
    throw failure
  }

  /** Units that pass traffic: changes belong there. */
  async #activeDevices(ctx: CallContext): Promise<readonly Device[]> {
    const views = await Promise.all(
      this.#devices.map(async (device): Promise<UnitView> => {
        try {
          const role = await device.readRole(ctx)
          const active = device.isActive(role)
          const askedAt = ctx.clock.now()
          return { device, role, active, pools: new Map(), nodes: new Map(), askedAt }
        } catch (error) {
          if (ctx.signal.aborted || !isDrainableError(error)) throw error
          return { device, error }
        }
      }),
    )
    return assertActive(views).map(({ device }) => device)
  }

  #target(ref: MemberRef): Target {
    return toTarget(ref, this.#settings.partition)
  }

  #wanted(targets: readonly Target[] | undefined): Wanted {
    const pools = new Map<string, MemberTarget[]>()
    const nodes = new Set<string>()
    for (const target of targets ?? []) {
      if (target.kind === 'node') {
        if (isPossible(target.node)) nodes.add(target.node)
        continue
      }
      pools.set(target.pool, [...(pools.get(target.pool) ?? []), target])
    }
    const complete = (own: readonly MemberTarget[]) => {
      return (members: readonly MemberRow[]): boolean =>
        own.every((t) => this.#resolver.find(members, t) !== undefined)
    }
    return {
      pools: new Map([...pools].map(([pool, own]) => [pool, complete(own)])),
      all: targets === undefined,
      nodes,
    }
  }

  /** Every member of every pool, by full path. */
  #everything(active: readonly ReadUnit[]): readonly Target[] {
    const found = new Map<string, MemberRef>()
    for (const { pools } of active) {
      for (const [pool, { members }] of pools) {
        for (const { fullPath } of members) {
          found.set(`${pool}\0${fullPath}`, { pool, member: fullPath })
        }
      }
    }
    return [...found.values()].map((ref) => this.#target(ref))
  }

  #composer(): Composer {
    const { fault } = this.#aftermath
    return {
      resolver: this.#resolver,
      freshness: this.#settings.freshness,
      memory: this.#memory,
      hints: (...of) => this.#hints.of(...of),
      unverified: fault === undefined ? undefined : `the change was not carried further: ${fault}`,
    }
  }

  #pools(targets: readonly Target[], active: readonly ReadUnit[]): readonly PoolReading[] {
    const asked = new Map<string, string>()
    for (const target of targets) {
      if (target.kind === 'member') asked.set(target.ref.pool, target.pool)
    }
    const found = [...asked].flatMap(([name, pool]) => {
      const views = active.flatMap((unit) => unit.pools.get(pool) ?? [])
      return readPoolTotals(pool, views, name) ?? []
    })
    const nodes = targets.flatMap((target) => (target.kind === 'node' ? target.node : []))
    return nodes.length === 0 ? found : [...found, nodePool(nodes, active)]
  }

  /** Members that are held and busy for long: the device's own reasons become hints. */
  async #askWhy(
    active: readonly ReadUnit[],
    readings: readonly Reading[],
    ctx: CallContext,
  ): Promise<void> {
    const [first] = active
    if (first === undefined) return
    const held = readings.flatMap((reading) => {
      if (!reading.present || reading.own === 'ready') return []
      return { ref: reading.ref, busy: reading.scopes.some((scope) => scope.active > 0) }
    })
    await this.#hints.look(first.device, held, ctx)
  }

  #noteResults(changes: readonly Change[], { results, notes }: Applied): void {
    changes.forEach((change, i) => {
      if (results[i]?.status !== 'applied') return
      if (change.kind === 'restore') this.#hints.forget(change.ref)
      if (change.kind === 'terminate') {
        const cut =
          'connections were cut by address and port: those that came through other pools too'
        const note = notes.get(i)
        this.#hints.note(change.ref, note === undefined ? cut : `${cut}; ${note}`)
      }
    })
  }
}

/**
 * The units that pass traffic.
 *
 * @throws the network's error where no unit could be read, `CONFLICT` where none of those read is active
 */
function assertActive(views: readonly UnitView[]): readonly ReadUnit[] {
  const read = views.filter((view): view is ReadUnit => !('error' in view))
  const active = read.filter((view) => view.active)
  if (active.length > 0) return active
  const failed = views.flatMap((view) => ('error' in view ? view.error : []))
  const [failure] = failed
  if (failure !== undefined) throw failure
  const roles = read.map(({ device, role }) => `${device.host} is "${role.text}"`).join(', ')
  throw new DrainableError(
    'CONFLICT',
    `no unit is active: ${roles}; connections live on the active unit, give the addresses of all units in url`,
    { provider: PROVIDER },
  )
}

/** The pool of all nodes: as few serve as in the pool that would be left with fewest. */
function nodePool(nodes: readonly string[], active: readonly ReadUnit[]): PoolReading {
  const views = active.flatMap((unit) => [...unit.pools])
  const touched = views.filter(([, view]: readonly [string, PoolView]) =>
    view.members.some((member) => nodes.includes(member.node)),
  )
  const totals = touched.flatMap(([pool, view]) => readPoolTotals(pool, [view], NODES) ?? [])
  const [fewest] = totals.sort((a, b) => a.serving - b.serving)
  return fewest ?? { pool: NODES, serving: 0, total: 0, whenNone: 'unknown' }
}
