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
import { HeldMembers } from '../../kit/haproxy/held.js'
import { STATE_FILE_UNKNOWN } from '../../kit/haproxy/state-file.js'
import { changesOf } from './change/change.js'
import { isName } from './codec/commands.js'
import { ControlPoint } from './session/session.js'
import type { Settings } from './options.js'
import { keyOf, type Wanted } from './read/read.js'
import { Readings, toPools } from './read/reading.js'
import { PROVIDER } from './name.js'

/** How long no counter includes a request in turn-around after a refused connect (a little over 1,000 ms), ms. */
const BLIND = 1_100
/** A frozen process executes a command that was given up within this time after it continues, ms. */
const LATE_BOUND = 1_000

/** Drains servers of one HAProxy through its Runtime API. */
export class HaproxyRuntimeProvider implements DrainableProvider {
  readonly specVersion = 1
  readonly name = PROVIDER
  readonly instance: string
  readonly #settings: Settings
  readonly #held = new HeldMembers()
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
        removal: 'refuses',
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
    // A drain lost in a reload is put back before anything else is read.
    const isKnown = !seen.replaced && (await this.#point.learnFollowers(seen.process, ctx))
    const shownServers = [...seen.shown.members.values()]
    const readings = (targeted ? refs : shownServers.map(({ ref }) => ref)).map((ref): Reading => {
      const shown = seen.shown.members.get(keyOf(ref))
      if (shown === undefined) return this.#readings.absent(ref, seen)
      return this.#readings.present(ref, shown, seen, isKnown ? this.#point.followers.of(ref) : [])
    })
    const pools = toPools(seen.shown, targeted ? refs[0]?.balancer : undefined)
    return { readings, pools, ended: this.#readings.ended(seen) }
  }

  async apply(changes: readonly Change[], ctx: CallContext): Promise<readonly ChangeResult[]> {
    const made = changesOf({
      point: this.#point,
      settings: this.#settings,
      held: this.#held,
    })
    const note = this.#held.begin()
    const result = (i: number, one: ChangeResult): void => {
      const change = changes[i]
      if (change !== undefined) note(change, one)
      ctx.result?.(i, one)
    }
    return carefulApply(made, changes, { ...ctx, result })
  }

  close(): Promise<void> {
    this.#point.close()
    return Promise.resolve()
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
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
