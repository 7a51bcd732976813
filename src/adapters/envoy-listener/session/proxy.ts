import { pause, type Clock } from '../../../provider/clock.js'
import { DrainableError } from '../../../provider/error.js'
import {
  parseListeners,
  parseServerInfo,
  parseStart,
  PROVIDER,
  type Listeners,
  type ServerInfo,
} from '../codec/server.js'
import { blindness } from '../codec/blindness.js'
import { withoutInner } from '../codec/inner.js'
import {
  areClosed,
  failedChecksOf,
  isSame,
  listenersKey,
  parseStats,
  STATS_PATH,
  toCounts,
  type Counts,
  type Stats,
} from '../codec/stats.js'
import type { Settings } from '../options.js'
import { lookAt, type AdminAddress, type AdminLink, type Call } from '../../../kit/envoy/admin.js'
import { Parent, parentTrace, type ParentState } from '../../../kit/envoy/parent.js'

/** The process before a hot restart, as one look at its child shows it. */
export interface Previous extends ParentState {
  /** That of the old process where it was seen itself. */
  readonly incarnation: string
}

/** What one look at an Envoy showed. */
export interface Sample {
  readonly info: ServerInfo
  readonly incarnation: string
  /** By the caller's clock: before the first request was sent. */
  readonly sampledAt: number
  /** Undefined: what is in flight can't be told, `note` says why. */
  readonly counts: Counts | undefined
  readonly note: string | undefined
  readonly listeners: Listeners
  /** Failed health checks so far; undefined: they are not counted. */
  readonly failedChecks: number | undefined
  /** Its listeners are closed: nobody can connect any more. */
  readonly isClosed: boolean
  readonly previous: Previous | undefined
}

interface Counted {
  readonly counts: Counts | undefined
  readonly note: string | undefined
  readonly stats: Stats
}

/** What of the admin API is needed; Envoy compares `allow_paths` with the query too, so each as a prefix. */
const PATHS = [
  '/server_info',
  '/stats',
  '/config_dump',
  '/healthcheck/fail',
  '/healthcheck/ok',
] as const
/** How often a look is taken anew because the process changed in between. */
const ATTEMPTS = 3
const IGNORED =
  'it has more connections of HTTP than its listeners have that are not ignored: give the stat_prefix of an HTTP connection manager under ignore, not its listener'
/** How long one call leaves a health check good; a call for a change may take 30 s. */
const PART = 20_000
/** How often numbers are read until two answers agree. */
const AGREEMENT = 4

/** One Envoy, through its admin API. */
export class Proxy {
  readonly address: AdminAddress
  readonly #settings: Settings
  readonly #ignore: ReadonlySet<string>
  #last: Sample | undefined
  #parent: { readonly incarnation: string; readonly life: Parent } | undefined
  #known:
    | {
        readonly incarnation: string
        readonly key: string | undefined
        readonly listeners: Listeners
      }
    | undefined
  /** Since when its health check fails, by what was counted and by the monotonic clock. */
  #failing: { readonly checks: number; readonly at: number } | undefined
  #drained = false
  /** Until when its health check stays good for the drain that is asked for, and until when the last call for it waited. */
  #good: { readonly due: number; readonly until: number } | undefined

  constructor(address: AdminAddress, settings: Settings) {
    this.address = address
    this.#settings = settings
    this.#ignore = new Set(settings.ignore)
  }

  /** What the last look showed; undefined before the first. */
  get last(): Sample | undefined {
    return this.#last
  }

  /** Whether it was told to close its listeners, by us. */
  get isDrained(): boolean {
    return this.#drained
  }

  /** Counts and state of one moment of one process. */
  async look(call: Call): Promise<Sample> {
    return this.#at(call, (link) => this.#look(link, call.clock))
  }

  /**
   * Fails its health check, after everything that is needed for it was found to be there.
   *
   * @throws `UNSUPPORTED` where nothing in front would see it, `FORBIDDEN` where `allow_paths` is in the way
   */
  async fail(call: Call): Promise<void> {
    const { clock } = call
    await this.#stayGood(call)
    await this.#at(call, async (link) => {
      const { failedChecks } = await this.#check(link, clock)
      // What fails from now on is told of this drain: counted from before the change.
      const failing = { checks: failedChecks ?? 0, at: clock.now() }
      await link.post('/healthcheck/fail')
      this.#failing = failing
    })
  }

  /**
   * Leaves its health check good for `failAfter`, counted from the first call for a drain. A call waits for a part of it at
   * most, and is made again.
   */
  async #stayGood(call: Call): Promise<void> {
    const { clock, signal } = call
    const { failAfter } = this.#settings
    if (failAfter === 0) return
    await this.#at(call, (link) => this.#check(link, clock))
    const begun = clock.now()
    const isSame = this.#good !== undefined && begun - this.#good.until < PART
    const due = this.#good !== undefined && isSame ? this.#good.due : begun + failAfter
    const until = Math.min(due, begun + PART)
    this.#good = { due, until }
    await pause(clock, until - begun, signal)
    if (until < due) {
      const left = Math.ceil((due - until) / 1_000)
      const words = `${this.address.member} passes its health checks for ${left} s more (failAfter), so that what is in front can take it out first`
      throw new DrainableError('CALL_TIMEOUT', words, { provider: PROVIDER })
    }
    this.#good = undefined
  }

  /** @throws where its health check can't be failed, or not be seen to fail */
  async #check(link: AdminLink, clock: Clock): Promise<Sample> {
    const sample = await this.#look(link, clock)
    this.#assertSeen(sample)
    for (const path of PATHS) if (path.startsWith('/healthcheck/')) await link.mayPost(path)
    return sample
  }

  /** Undoes it. */
  async pass(call: Call): Promise<void> {
    await this.#at(call, (link) => link.post('/healthcheck/ok'))
    this.#failing = undefined
    this.#good = undefined
  }

  /** One of the commands that can't be undone. */
  async command(path: string, call: Call): Promise<void> {
    await this.#at(call, async (link) => {
      // Nothing is sent to what is no Envoy.
      parseServerInfo(await link.get('/server_info'), link.name)
      await link.post(path)
    })
    this.#drained ||= path.startsWith('/drain_listeners') && !path.endsWith('skip_exit')
  }

  /** Why what is in front is not known to send nothing new; undefined: it is. */
  unnoticed({ info, failedChecks, isClosed }: Sample, now: number): string | undefined {
    // Through closed listeners no check comes any more, and nothing else.
    if (isClosed || info.state !== 'DRAINING' || this.#failing === undefined) return undefined
    const { noticed } = this.#settings
    if ('after' in noticed) {
      const left = this.#failing.at + noticed.after - now
      return left <= 0 ? undefined : `noticed.after leaves what is in front ${left} ms more`
    }
    if (failedChecks === undefined) {
      return 'failed health checks are not counted there, so it is not known whether what is in front has noticed: give noticed: { after }'
    }
    const seen = Math.max(0, failedChecks - this.#failing.checks)
    if (seen >= noticed.checks) return undefined
    return `${seen} of ${noticed.checks} failed health checks were answered: what is in front may not know yet`
  }

  #at<T>(call: Call, fn: (link: AdminLink) => Promise<T>): Promise<T> {
    const options = { provider: PROVIDER, name: this.address.member, paths: PATHS.join(', ') }
    return lookAt(this.address, call, options, fn)
  }

  #assertSeen({ listeners, isClosed }: Sample): void {
    if (this.#settings.probe === 'ready' || listeners.hasHealthCheck || isClosed) return
    throw new DrainableError(
      'UNSUPPORTED',
      `${this.address.member} has no health check filter (envoy.filters.http.health_check) on any listener: what is in front would not see its health check fail, so nothing was changed; add the filter to the listener that is probed, or give probe: 'ready' where /ready of the admin API is`,
      { provider: PROVIDER },
    )
  }

  async #look(link: AdminLink, clock: Clock): Promise<Sample> {
    for (let attempt = 1; attempt <= ATTEMPTS; attempt += 1) {
      const sample = await this.#once(link, clock)
      if (sample === undefined) continue
      this.#remember(sample, clock)
      return sample
    }
    const words = `${link.name} restarts again and again`
    throw new DrainableError('CONNECTION_LOST', words, { provider: PROVIDER })
  }

  async #once(link: AdminLink, clock: Clock): Promise<Sample | undefined> {
    const sampledAt = clock.now()
    const info = parseServerInfo(await link.get('/server_info'), link.name)
    const incarnation = await this.#incarnation(link, info)
    const first = parseStats(await link.get(STATS_PATH), link.name)
    const listeners = await this.#listeners(link, incarnation, listenersKey(first))
    const { counts, note, stats } = await this.#count(link, first, listeners)
    // Numbers of two processes never mix.
    if ((await this.#incarnation(link, info)) !== incarnation) return undefined
    const { probe } = this.#settings
    return {
      info,
      incarnation,
      sampledAt,
      counts,
      note,
      listeners,
      failedChecks: probe === 'ready' ? stats.adminErrors : failedChecksOf(stats),
      isClosed: info.epoch === 0 && areClosed(stats),
      previous: this.#previous(info, incarnation, stats, clock),
    }
  }

  /** Reads until two answers are the same: then they are of one moment. While work comes and goes, the higher counts. */
  async #count(link: AdminLink, first: Stats, listeners: Listeners): Promise<Counted> {
    let stats = first
    let clients = withoutInner(stats, listeners.inner)
    const note = blindness(clients, listeners, this.#ignore)
    if (note !== undefined) return { counts: undefined, note, stats }
    let most = 0
    for (let i = 1; ; i += 1) {
      most = Math.max(most, toCounts(clients, this.#ignore).active)
      stats = parseStats(await link.get(STATS_PATH), link.name)
      const before = clients
      clients = withoutInner(stats, listeners.inner)
      const agree = isSame(before, clients)
      if (agree || i === AGREEMENT) {
        const counts = toCounts(clients, this.#ignore)
        if (agree && counts.isUncountable) return { counts: undefined, note: IGNORED, stats }
        return {
          counts: agree ? counts : { ...counts, active: Math.max(most, counts.active) },
          note: undefined,
          stats,
        }
      }
    }
  }

  async #incarnation(link: AdminLink, { epoch }: ServerInfo): Promise<string> {
    const start = parseStart(await link.get('/config_dump?mask=last_updated'), link.name)
    return epoch === 0 ? start : `${start} epoch ${epoch}`
  }

  /** Their configuration can be large: it is read anew only where it may have changed. */
  async #listeners(
    link: AdminLink,
    incarnation: string,
    key: string | undefined,
  ): Promise<Listeners> {
    const known = this.#known
    if (known?.key !== undefined && known.key === key && known.incarnation === incarnation) {
      return known.listeners
    }
    const texts: string[] = []
    for (const kind of ['static_listeners', 'dynamic_listeners']) {
      texts.push(await link.get(`/config_dump?resource=${kind}`))
    }
    const listeners = parseListeners(texts, link.name)
    this.#known = { incarnation, key, listeners }
    return listeners
  }

  #previous(
    info: ServerInfo,
    incarnation: string,
    { others }: Stats,
    clock: Clock,
  ): Previous | undefined {
    const known = this.#last
    if (known?.incarnation !== incarnation) {
      const epoch = info.epoch - 1
      const before = known?.info.epoch === epoch ? known.incarnation : `epoch ${epoch}`
      const life = new Parent(epoch, info.parentShutdown)
      this.#parent = epoch < 0 ? undefined : { incarnation: before, life }
    }
    if (this.#parent === undefined) return undefined
    const state = this.#parent.life.seen(
      parentTrace(info, (name) => others.get(`server.${name}`)),
      clock.now(),
    )
    return { ...state, incarnation: this.#parent.incarnation }
  }

  #remember(sample: Sample, clock: Clock): void {
    const isNew = this.#last?.incarnation !== sample.incarnation
    if (isNew) {
      this.#failing = undefined
      this.#drained = false
    }
    this.#last = sample
    if (sample.info.state !== 'DRAINING') this.#failing = undefined
    // Whoever failed it: what was counted before we came may be of another drain.
    else this.#failing ??= { checks: sample.failedChecks ?? 0, at: clock.now() }
  }
}
