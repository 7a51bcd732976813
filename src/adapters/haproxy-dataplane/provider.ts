import { Followers, takenAlong } from '../../kit/haproxy/followers.js'
import { OpenedByReload, STATE_FILE_UNKNOWN } from '../../kit/haproxy/state-file.js'
import type {
  CallContext,
  Capabilities,
  Change,
  ChangeResult,
  DrainableProvider,
  LoadScope,
  MemberRef,
  PresentReading,
  ProviderInfo,
  Reading,
  Snapshot,
} from '../../provider/contract.js'
import { DrainableError } from '../../provider/error.js'
import { Changer } from './change/change.js'
import { ConfigWriter } from './change/config-writer.js'
import { DurableMarks } from './change/durable.js'
import { isName } from './codec/paths.js'
import { nameOf } from './codec/replies.js'
import type { Settings } from './options.js'
import { Configuration, type Configured } from './read/configured.js'
import { MovedAddresses, type Process, ProcessMemory, Retries } from './read/doubts.js'
import { type Found, Reader, type RuntimeView } from './read/read.js'
import {
  everyMember,
  everyOwn,
  healthOfMember,
  hintsOf,
  hintsOfAbsent,
  placeOf,
  serves,
  setterOf,
  storedHold,
  toNative,
  toPoolReading,
  weightOf,
} from './read/reading.js'
import { RuntimeEyes } from './read/runtime-eyes.js'
import { held, taken } from './read/state.js'
import { DataplaneApi, PROVIDER } from './session/session.js'

/**
 * A retry hides for a second (`turn-around`), and HAProxy is up to 100 ms late. 250 ms more, because HAProxy can stand still for
 * so long without a slow answer, and handle a look before the retry that is due: this API does not tell its clock.
 */
const BLIND = 1_350

/** A provider over one Data Plane API: see `index.ts` for the options. */
export class HaproxyDataplaneProvider implements DrainableProvider {
  readonly specVersion = 1
  readonly name = PROVIDER
  readonly instance: string
  readonly #settings: Settings
  readonly #api: DataplaneApi
  readonly #reader: Reader
  readonly #memory: ProcessMemory
  readonly #followers = new Followers()
  readonly #moved = new MovedAddresses()
  readonly #opened = new OpenedByReload()
  readonly #retries = new Retries()
  readonly #configuration: Configuration
  readonly #marks: DurableMarks
  readonly #changer: Changer
  readonly #eyes: RuntimeEyes | undefined

  constructor(settings: Settings) {
    this.#settings = settings
    this.#api = new DataplaneApi(settings)
    this.instance = this.#api.instance
    this.#reader = new Reader(this.#api, this.#followers)
    this.#memory = new ProcessMemory(settings.oldWorkers)
    this.#configuration = new Configuration(this.#api)
    this.#eyes = settings.runtime && new RuntimeEyes(settings.runtime)
    const configuration = this.#configuration
    const writer = new ConfigWriter(this.#api, configuration)
    const api = this.#api
    this.#marks = new DurableMarks({ api, configuration, settings, writer })
    this.#changer = new Changer({
      api,
      settings,
      reader: this.#reader,
      memory: this.#memory,
      followers: this.#followers,
      configuration,
      writer,
      marks: this.#marks,
    })
  }

  async describe(ctx: CallContext): Promise<ProviderInfo> {
    const served = await this.#api.served(ctx)
    const { version } = await this.#reader.process(ctx)
    const { maintCuts } = this.#settings
    const capabilities: Capabilities = {
      ladder: ['ready', 'drain', 'maint'],
      maint: maintCuts === undefined ? 'unknown' : maintCuts ? 'cuts' : 'gentle',
      terminate: maintCuts === true,
      remove: true,
      // In the configuration it reloads, and an old worker ends its work.
      removal: this.#settings.membership === 'configuration' ? 'keeps' : 'refuses',
      removalReloads: this.#settings.membership === 'configuration',
      add: true,
      counts: 'requests',
      freshness: 0,
      blind: BLIND,
      lateBound: 30_000,
      survivesReload: this.#settings.durable,
      countsAfterRemove: false,
      minInterval: 250,
    }
    return {
      product: 'haproxy',
      version: `${version} (Data Plane API ${served.version})`,
      capabilities: (await this.#eyes?.describe(capabilities, ctx)) ?? capabilities,
      // Marks in the file bring a durable drain through a reload.
      ...(this.#settings.durable ? {} : { hints: [STATE_FILE_UNKNOWN] }),
    }
  }

  async observe(refs: readonly MemberRef[] | 'all', ctx: CallContext): Promise<Snapshot> {
    ctx.signal.throwIfAborted()
    if (refs !== 'all' && refs.length === 0) return { readings: [], pools: [] }
    const seen = (await this.#see(refs, ctx)) ?? (await this.#see(refs, ctx))
    if (seen !== undefined) return seen
    const words = `${this.instance}: HAProxy was reloaded between a look over the API and one over its Runtime API; read again`
    throw new DrainableError('CONFLICT', words, { provider: PROVIDER })
  }

  async #see(refs: readonly MemberRef[] | 'all', ctx: CallContext): Promise<Snapshot | undefined> {
    const named = refs === 'all' ? refs : refs.filter(({ pool }) => isName(pool))
    const view = await this.#reader.view(named, ctx)
    const process = this.#memory.note(view, ctx.clock.now())
    this.#moved.note(view)
    this.#opened.note(nameOf(view.info), everyOwn(view))
    this.#retries.note(view, ctx.clock.now())
    const configured = await this.#configuration.at(view, ctx)
    this.#memory.hardStop(configured.hardStop)
    const names = refs === 'all' ? [...view.pools.keys()] : refs.map(({ pool }) => pool)
    const readings: Reading[] = []
    for (const ref of refs === 'all' ? everyMember(view) : refs) {
      const found = view.pools.get(ref.pool)?.get(ref.member)
      const config = configured.of(ref)
      if (found === undefined) {
        const scopes = this.#memory.scopes(process, undefined, true, ctx.clock.now())
        const hints = hintsOfAbsent(config)
        readings.push({ ref, present: false, scopes, ...(hints.length > 0 && { hints }) })
      } else {
        readings.push(this.#toReading(ref, found, config, view, process, ctx))
      }
    }
    const pools = names.map((pool) => toPoolReading(pool, view))
    const isAll = this.#memory.knowsAll(process)
    const snapshot: Snapshot = { readings, pools, ...(isAll && { ended: 'unlisted' }) }
    return this.#eyes === undefined ? snapshot : this.#eyes.see(snapshot, refs, ctx)
  }

  apply(changes: readonly Change[], ctx: CallContext): Promise<readonly ChangeResult[]> {
    return this.#changer.apply(changes, ctx)
  }

  async close(): Promise<void> {
    await this.#api.close()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }

  #toReading(
    ref: MemberRef,
    found: Found,
    config: Configured,
    view: RuntimeView,
    process: Process,
    ctx: CallContext,
  ): PresentReading {
    const { verdict, row } = found
    const read: LoadScope = {
      scope: process.scope,
      incarnation: process.incarnation,
      state: 'read',
      sampledAt: view.sampledAt,
      active: row.scur,
      queued: row.qcur,
      ...(row.mayHide ? { mayHide: true } : {}),
      arrivals: row.arrivals,
      admin: held({ ...verdict, own: taken(verdict) }, row),
      ...(verdict.doubt === undefined ? {} : { note: verdict.doubt }),
    }
    const own = held(verdict, row)
    const stored = storedHold(config, this.#settings.durable)
    const scopes = this.#memory.scopes(process, read, own !== 'ready', ctx.clock.now())
    const unverified =
      this.#eyes === undefined
        ? (this.#unverified(ref, found, config, view, process) ??
          this.#retries.why(ref, ctx.clock.now()))
        : undefined // else it says so
    const followers = this.#followers.of(ref)
    const { advice } = this.#opened
    const setBy = setterOf(found)
    const left = own === 'ready' ? this.#marks.hint(ref, view.info) : undefined
    const unsealed = own === 'drain' ? this.#changer.unsealed(ref) : undefined
    const before = this.#eyes === undefined && own !== 'ready' ? this.#memory.hint : undefined
    const hints = [
      ...hintsOf(found, config, this.#settings),
      ...(own === 'ready' ? takenAlong(followers) : []),
      ...[unsealed, left, before].filter((hint) => hint !== undefined),
    ]
    return {
      ref,
      present: true,
      ...placeOf(found),
      weight: weightOf(found),
      own,
      ...(verdict.inherited === undefined ? {} : { inherited: verdict.inherited }),
      ...(stored === undefined ? {} : { stored }),
      serves: serves(found, view.pools.get(ref.pool)),
      health: healthOfMember(found, config),
      scopes,
      ...(this.#settings.maintCuts === undefined ? { maint: config.maint } : {}),
      native: toNative(found, config, this.#settings.durable, followers, view.info),
      ...(verdict.hidden === true ? { sealed: false } : {}),
      ...(setBy === undefined ? {} : { setBy }),
      ...(unverified === undefined ? {} : { unverified }),
      ...(hints.length === 0 ? {} : { hints }),
      ...(advice === undefined || this.#settings.durable ? {} : { advice }),
    }
  }

  #unverified(
    ref: MemberRef,
    { row }: Found,
    config: Configured,
    view: RuntimeView,
    process: Process,
  ): string | undefined {
    if (row.mode === 'syslog')
      return 'HAProxy does not count the messages that it sends to the servers of a backend in mode log'
    return this.#memory.unverified(process) ?? this.#moved.why(ref, config, view)
  }
}
