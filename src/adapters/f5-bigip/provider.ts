import { SharedTrials } from '../../kit/login.js'
import { Steady } from '../../kit/look-cost.js'
import { instanceOf } from '../../kit/options.js'
import { firstAnswer } from '../../kit/retry.js'
import type {
  AddressTarget,
  CallContext,
  Change,
  ChangeResult,
  DrainableProvider,
  MemberRef,
  ProviderInfo,
  Snapshot,
} from '../../provider/contract.js'
import { DrainableError } from '../../provider/error.js'
import { refKey } from '../../provider/member-ref.js'
import { applyChanges } from './change/change.js'
import { AfterChange } from './change/sync.js'
import { readVersion } from './codec/device.js'
import { isPossible } from './codec/names.js'
import type { Settings } from './options.js'
import { Hints } from './read/hints.js'
import { findAt, planOf } from './read/plan.js'
import { readTarget, readTotals, withoutRivals } from './read/reading.js'
import { Rights } from './read/rights.js'
import { Resolver, type Target } from './read/target.js'
import { Vanished } from './read/vanished.js'
import { isReadUnit, readUnit, roleOnly, type ReadUnit, type UnitView } from './read/unit.js'
import { Device } from './session/device.js'
import { PROVIDER, Session } from './session/session.js'
import { PEER_LIMIT, Units } from './session/units.js'

/** For how long a request that was given up can still be carried out, in milliseconds. */
const LATE_BOUND = 30_000

/** How old the lists may be that a plan is made of, in milliseconds. */
const LISTED_FOR = 10_000

/** Members and nodes of one BIG-IP, or of the units of a device group. */
export class F5BigipProvider implements DrainableProvider {
  readonly specVersion = 1
  readonly name = PROVIDER
  readonly instance: string
  readonly #settings: Settings
  readonly #devices: readonly Device[]
  readonly #units: Units
  readonly #rights: Rights
  readonly #hints: Hints
  readonly #resolver: Resolver
  readonly #afterChange: AfterChange
  readonly #vanished = new Vanished()
  readonly #steady: Steady
  #info: ProviderInfo | undefined

  constructor(settings: Settings) {
    this.#settings = settings
    this.#steady = new Steady(settings.minInterval)
    this.#rights = new Rights(settings)
    this.#hints = new Hints(this.#rights)
    const trials = settings.urls.length > 1 ? new SharedTrials() : undefined
    this.#devices = settings.urls.map((url) => {
      return new Device(new Session(url, settings, trials), settings)
    })
    this.#units = new Units(this.#devices)
    this.#afterChange = new AfterChange(settings)
    this.#resolver = new Resolver(settings.partition)
    this.instance = instanceOf(settings.urls)
  }

  async describe(ctx: CallContext): Promise<ProviderInfo> {
    if (this.#info !== undefined) return this.#info
    const { device, version } = await this.#readVersion(ctx)
    await this.#rights.read(device, ctx)
    this.#info = {
      product: 'bigip',
      version,
      capabilities: {
        ladder: ['ready', 'drain', 'maint'],
        maint: 'unknown', // each pool says: serviceDownAction
        terminate: true,
        remove: true,
        removal: 'unknown',
        add: true,
        counts: 'connections',
        freshness: this.#settings.freshness,
        blind: 0,
        lateBound: LATE_BOUND,
        survivesReload: this.#settings.save,
        countsAfterRemove: false,
        minTimeout: proofTime(this.#settings),
        minInterval: this.#settings.minInterval,
      },
      hints: this.#rights.everywhere,
    }
    return this.#info
  }

  async observe(refs: readonly MemberRef[] | 'all', ctx: CallContext): Promise<Snapshot> {
    ctx.signal.throwIfAborted()
    if (refs.length === 0) return { readings: [], pools: [] }
    return this.#steady.look(refs, ctx, (brief) => this.#observe(refs, brief, ctx))
  }

  async #observe(
    refs: readonly MemberRef[] | 'all',
    brief: boolean,
    ctx: CallContext,
  ): Promise<Snapshot> {
    const given = refs === 'all' ? undefined : refs.map((ref) => this.#resolver.target(ref))
    const views = await this.#look(given, brief, ctx)
    const active = assertActive(views)
    const targets = given ?? this.#everything(active)
    const { fault } = this.#afterChange
    const composer = {
      resolver: this.#resolver,
      freshness: this.#settings.freshness,
      hints: this.#hints,
      unverified: fault === undefined ? undefined : `the change was not carried further: ${fault}`,
    }
    const readings = targets.map((target) => readTarget(composer, target, views))
    if (active[0] !== undefined) await this.#hints.look(active[0].device, readings, ctx)
    const pools = readTotals(targets, active, given === undefined)
    const told = withoutRivals(readings, active)
    if (!views.every(isReadUnit)) return { readings: told, pools }
    const now = ctx.clock.now()
    const noted = told.map((reading) => this.#vanished.note(reading, now))
    // A unit that passes no traffic holds nothing; what is not listed by those that were read is gone.
    return { readings: noted, pools, ended: 'unlisted' }
  }

  async find(wanted: AddressTarget, ctx: CallContext): Promise<readonly MemberRef[]> {
    ctx.signal.throwIfAborted()
    this.#steady.wake(ctx)
    const units = await this.#activeUnits(ctx)
    const found = new Map<string, MemberRef>()
    for (const { device, role } of units) {
      for (const ref of findAt(wanted, await device.overview(0, ctx))) found.set(refKey(ref), ref)
      device.role.noteActive(role, ctx) // the look that follows ends with how long it has had it
    }
    const refs = [...found.values()]
    const first = units[0]?.device
    if (first !== undefined && refs.length > 0) {
      const overview = await first.overview(LISTED_FOR, ctx)
      await this.#rights.read(first, ctx)
      this.#hints.planned(await planOf(first, refs, overview, this.#settings, this.#rights, ctx))
    }
    return refs
  }

  async apply(changes: readonly Change[], ctx: CallContext): Promise<readonly ChangeResult[]> {
    ctx.signal.throwIfAborted()
    if (changes.length === 0) return []
    this.#steady.wake(ctx)
    const options = {
      settings: this.#settings,
      resolver: this.#resolver,
      hints: this.#hints,
      afterChange: this.#afterChange,
      devices: this.#devices,
      active: async (each: CallContext, recent: boolean): Promise<readonly Device[]> =>
        (await this.#activeUnits(each, recent)).map(({ device }) => device),
    }
    try {
      return await applyChanges(options, changes, ctx)
    } finally {
      this.#steady.wake(ctx)
    }
  }

  async close(): Promise<void> {
    await Promise.all(this.#devices.map((device) => device.session.close()))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }

  /** The first unit that answers tells for all: a group runs one release but for the time of an upgrade. */
  #readVersion(ctx: CallContext): Promise<{ readonly device: Device; readonly version: string }> {
    const read = async (device: Device, one: CallContext) => {
      const { session } = device
      const found = await session.get('/mgmt/tm/sys/version', one)
      if (found !== undefined) return { device, version: readVersion(found) }
      const words = `${session.host}: there is no /mgmt/tm/sys/version`
      throw new DrainableError('NOT_FOUND', words, { provider: PROVIDER })
    }
    return firstAnswer(this.#devices, { headStart: PEER_LIMIT }, read, ctx)
  }

  /** Reads every unit, as far as it can hold work. */
  #look(
    targets: readonly Target[] | undefined,
    brief: boolean,
    ctx: CallContext,
  ): Promise<readonly UnitView[]> {
    const nodes = (targets ?? []).flatMap((target) => (target.kind === 'node' ? target.node : []))
    const wanted = {
      pools: this.#resolver.poolsOf(targets ?? []),
      all: targets === undefined,
      nodes: new Set(nodes.filter(isPossible)),
      brief,
    }
    return this.#units.look((device, each) => readUnit(device, wanted, each), ctx)
  }

  /** Units that pass traffic. */
  async #activeUnits(ctx: CallContext, recent = false): Promise<readonly ReadUnit[]> {
    const read = async (device: Device, each: CallContext): Promise<ReadUnit> => {
      const role = await (recent ? device.role.recent(each) : device.role.read(each))
      return roleOnly(device, role, each.clock.now())
    }
    return assertActive(await this.#units.look(read, ctx))
  }

  /** Every member of every pool, by full path. */
  #everything(active: readonly ReadUnit[]): readonly Target[] {
    const found = new Map<string, Target>()
    for (const { pools } of active) {
      for (const [pool, { members }] of pools) {
        for (const { fullPath } of members.rows)
          found.set(`${pool}\0${fullPath}`, this.#resolver.target({ pool, member: fullPath }))
      }
    }
    return [...found.values()]
  }
}

/**
 * Numbers are dated back by what they can lag, so a sample from after the hold comes that much later, the second one as much
 * after it, and so does the one from after the seal.
 */
export function proofTime({ freshness, minInterval }: Settings): number {
  return 3 * Math.max(freshness, minInterval)
}

/**
 * The units that pass traffic.
 *
 * @throws the network's error where no unit could be read, `CONFLICT` where none of those read is active
 */
function assertActive(views: readonly UnitView[]): readonly ReadUnit[] {
  const read = views.filter(isReadUnit)
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
