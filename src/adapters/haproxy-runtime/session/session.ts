import { pause } from '../../../provider/clock.js'
import type { CallContext } from '../../../provider/contract.js'
import { DrainableError, isDrainableError } from '../../../provider/error.js'
import { incarnationOf } from '../codec/info.js'
import { AnotherProcess, type Channel, NoWorker, StatsChannel } from './channel.js'
import type { ServerState } from '../codec/state.js'
import { type Facts, readFacts, whatIsIt } from './facts.js'
import { findMaster, HAND_OVER, HAND_OVER_LOOK, type MasterSocket } from './master.js'
import type { Settings } from '../options.js'
import { OtherProcesses } from './other-processes.js'
import type { OldChannel, OtherSight, Question } from './other-processes.js'
import { noteStandstill, noteStates, type Process, toProcess } from './process.js'
import type { ProcessSight, Wanted } from '../read/read.js'
import { RuntimeSocket } from './socket.js'
import { Standstill } from './standstill.js'
import { Stay } from './stay.js'
import { noteStreams } from './strays.js'
import { Unseen } from './unseen.js'
import { Watched } from './watched.js'

const PROVIDER = 'haproxy-runtime'
/** How often to check, while the master is silent, whether a reload has replaced the process that serves, ms. */
const REPLACED_LOOK = 10
/** While every member is at work and no old worker is known, the master lists its workers this often, ms. */
const LIST_AGAIN = 250
/** How long no connection is kept to a process if HAProxy has no room for it, ms. */
const CROWDED = 300_000
/** A process that only takes no more connections answers over the one that is kept within this time, ms. */
const ALIVE = 1_000
/** A process that was looked at within this time is followed when it is replaced: a drain may be under way, ms. */
const FOLLOWED = 60_000
const JUST_REPLACED = 'a reload has just replaced it, it is read at the next look'
/**
 * The abort reason for the rest of a look that has its answer; shared, because a new error costs a stack trace at
 * every look.
 */
const OVER = new Error('the look has its answer')

/** The result of one look: the process that serves, and those beside it. */
export interface EverySight {
  readonly process: Process
  readonly sight: ProcessSight
  readonly others: OtherSight
  /** Whether it has just replaced the process of the look before. */
  readonly replaced: boolean
}

/**
 * One HAProxy with its processes: knows which of them serves the socket, how to reach the others, and what can't be
 * known about them. Follows HAProxy through reloads.
 */
export class ControlPoint {
  readonly label: string
  readonly others: OtherProcesses
  readonly unseen: Unseen
  readonly #settings: Settings
  readonly #socket: RuntimeSocket
  readonly #stats: StatsChannel
  readonly #standstill = new Standstill()
  #facts: Facts | undefined
  #master: MasterSocket | undefined
  #masterAsked = false
  /** When the master last listed its workers, and nothing was changed since. */
  #listedAt = -Infinity
  /** Until when no connection is kept: by the clock of the calls. */
  #crowdedUntil = -Infinity
  readonly #watched = new Watched()
  #current: Process | undefined

  constructor(settings: Settings) {
    this.#settings = settings
    this.#socket = new RuntimeSocket(settings.socket, settings, { tls: settings.tls })
    this.#stats = new StatsChannel(this.#socket)
    this.label = this.#socket.label
    this.unseen = new Unseen(settings, this.label)
    this.others = new OtherProcesses(this.unseen)
  }

  /** The channel to a process that serves the socket. */
  channel(process: Process): Channel {
    return this.#stats.to(process.incarnation ?? '')
  }

  /** Changes something in that process; see {@link StatsChannel.change}. The next look is a whole one. */
  change(process: Process, line: string, ctx: CallContext): Promise<string> {
    this.#listedAt = -Infinity
    return this.#stats.change(line, process.incarnation ?? '', ctx)
  }

  /** Channels to the old processes that can be reached. */
  oldChannels(): OldChannel[] {
    return this.others.channels(this.#master)
  }

  close(): void {
    this.#current?.stay?.close()
    this.others.close()
    this.#socket.close()
    this.#master?.socket.close()
  }

  /** Reads the process that serves, then the others; again if a reload is just handing the socket over. */
  async readEvery(wanted: Wanted | 'all', ctx: CallContext): Promise<EverySight> {
    const end = ctx.clock.now() + HAND_OVER
    const watched = this.#watched.of(wanted, ctx.clock.now())
    for (;;) {
      const before = this.#current
      const { process, sight } = await this.#readCurrent(wanted, ctx)
      if (wanted !== 'all') {
        // A drain lost in a reload must be put back at once: the next look can read the rest.
        if (before !== undefined && before !== process) {
          noteStates(process, before, sight)
          const others = this.others.unasked(JUST_REPLACED)
          return { process, sight, others, replaced: true }
        }
        await this.#ensureStay(process, ctx)
      }
      const asked = { watched, serves: process.view }
      await noteStreams(process, sight, asked, this.channel(process), ctx)
      const mayLeave = wanted !== 'all' && this.#master !== undefined && this.others.none
      if (mayLeave && isBusy(sight) && ctx.clock.now() < this.#listedAt + LIST_AGAIN)
        return { process, sight, others: this.others.unasked(''), replaced: false }
      const others = await this.#readOthers({ wanted, watched }, process, ctx)
      if (others === undefined) continue
      this.#listedAt = others.blind === undefined ? sight.sampledAt : -Infinity
      const coming = others.read.some(({ old }) => !old)
      if (!coming || ctx.clock.now() >= end) return { process, sight, others, replaced: false }
      await pause(ctx.clock, HAND_OVER_LOOK, ctx.signal)
    }
  }

  /**
   * Reads the processes beside the one that serves.
   *
   * @returns undefined if that process was replaced meanwhile: a master that re-executes itself at a reload can take
   *   half a second to answer, and a drain lost in the reload must be put back before
   */
  async #readOthers(
    asked: Pick<Question, 'wanted' | 'watched'>,
    process: Process,
    ctx: CallContext,
  ): Promise<OtherSight | undefined> {
    const question = { ...asked, current: process, channel: this.channel(process) }
    if (this.#master === undefined) return this.others.unreachable()
    const over = new AbortController()
    // Cheaper than AbortSignal.any(), because this runs at every look.
    const onAbort = (): void => over.abort(ctx.signal.reason)
    ctx.signal.addEventListener('abort', onAbort, { once: true })
    if (ctx.signal.aborted) onAbort()
    const within = { ...ctx, signal: over.signal }
    const read = this.others.read(question, this.#master, within)
    const replaced = this.#untilReplaced(process, within)
    try {
      return await Promise.race([read, replaced])
    } finally {
      ctx.signal.removeEventListener('abort', onAbort)
      over.abort(OVER)
      for (const late of [read, replaced]) late.catch(() => undefined)
    }
  }

  /** Resolves once another process serves the socket; checks that only while no other answer comes. */
  async #untilReplaced(process: Process, ctx: CallContext): Promise<undefined> {
    for (;;) {
      await pause(ctx.clock, REPLACED_LOOK, ctx.signal)
      try {
        await this.channel(process).run([], ctx)
      } catch (error) {
        if (error instanceof AnotherProcess) {
          if (!this.others.isOld(toProcess(error.info, 0).scope)) return undefined
        } else if (ctx.signal.aborted || !isDrainableError(error)) throw error
        // Otherwise the look itself reports the error.
      }
    }
  }

  /** Reads the facts once, and finds the master. */
  async connect(ctx: CallContext): Promise<Facts> {
    ctx.signal.throwIfAborted()
    if (this.#facts === undefined) {
      this.#facts = await this.#learn(ctx)
      // What was asked of it holds for it alone: one that has replaced it by the first look is another.
      this.#current ??= toProcess(this.#facts.info, ctx.clock.now())
    }
    if (!this.#masterAsked) {
      await this.#findMaster(this.#facts, ctx)
      this.unseen.learn(this.#facts, this.#master !== undefined, ctx.clock.now())
      this.#masterAsked = true
    }
    return this.#facts
  }

  async #learn(ctx: CallContext): Promise<Facts> {
    try {
      return await readFacts(this.#stats, ctx)
    } catch (error) {
      if (error instanceof NoWorker) throw await whatIsIt(this.#socket, ctx)
      throw error
    }
  }

  /** Connects to the master that is given, or that the process tells of. */
  async #findMaster(facts: Facts, ctx: CallContext): Promise<void> {
    const { master: given } = this.#settings
    const tells = facts.mworker === true && this.#socket.local
    const address = given ?? (tells ? facts.masterAddress : undefined)
    if (address === undefined) return
    const by = { settings: this.#settings, stats: this.#stats, label: this.label }
    this.#master = await findMaster(address, by, ctx)
  }

  /** Reads the process that serves the socket, and follows it through a reload. */
  async #readCurrent(
    wanted: Wanted | 'all',
    ctx: CallContext,
  ): Promise<{ process: Process; sight: ProcessSight }> {
    return this.#follow(ctx, async (process) => {
      try {
        const sight = await this.#readIn(process, this.channel(process), wanted, ctx)
        return { process, sight }
      } catch (error) {
        if (isUnanswered(error)) await this.#makeRoom(process, ctx)
        throw error
      }
    })
  }

  /** Reads one process, and notes for how long it has not run. */
  async #readIn(
    process: Process,
    channel: Channel,
    wanted: Wanted | 'all',
    { clock, signal }: CallContext,
  ): Promise<ProcessSight> {
    this.#standstill.ask(clock.now())
    try {
      const sight =
        wanted === 'all'
          ? await process.view.readAll(channel, { clock, signal })
          : await process.view.read(wanted, channel, { clock, signal })
      const silent = this.#standstill.answer(clock.now())
      const stood = noteStandstill(process, sight.sampledAt, sight.info.lived, silent)
      this.unseen.note(sight.sampledAt, stood)
      this.others.delay(stood)
      return sight
    } catch (error) {
      this.#standstill.fail(clock.now())
      throw error
    }
  }

  /** Reads the states of whole backends in the process that serves. */
  states(
    pools: ReadonlySet<string>,
    ctx: CallContext,
  ): Promise<{
    process: Process
    states: ReadonlyMap<string, ReadonlyMap<string, ServerState>>
  }> {
    return this.#follow(ctx, async (process) => {
      const channel = this.channel(process)
      return { process, states: await process.view.states(pools, channel, ctx) }
    })
  }

  async #follow<T>(ctx: CallContext, look: (process: Process) => Promise<T>): Promise<T> {
    const end = ctx.clock.now() + HAND_OVER
    for (;;) {
      const process = this.#current
      if (process === undefined) throw new TypeError('a look before connect()')
      try {
        return await look(process)
      } catch (error) {
        if (!(error instanceof AnotherProcess)) throw error
        const next = toProcess(error.info, ctx.clock.now())
        if (!this.others.isOld(next.scope)) {
          this.#replace(process, this.others.take(next.scope) ?? next, ctx)
          continue
        }
        // The predecessor answered: the reload is handing the socket over.
        if (ctx.clock.now() >= end) {
          throw new DrainableError(
            'CONFLICT',
            `${this.label}: a process that was replaced by a reload still answers`,
            { provider: PROVIDER, cause: error },
          )
        }
        await pause(ctx.clock, HAND_OVER_LOOK, ctx.signal)
      }
    }
  }

  #replace(before: Process, next: Process, { clock }: CallContext): void {
    if (this.#current !== before) return // another call was first
    const now = clock.now()
    if (now - this.unseen.lookedAt < FOLLOWED) this.others.demote(before, now)
    else before.stay?.close()
    this.unseen.succeed(now)
    this.#current = next
  }

  /**
   * Keeps a connection to the process that serves, from the first look at a member on. Without one, an old worker can
   * end between two looks, and the end of a process of another master is not seen: a drain then is not verified, so a
   * failure is no reason to fail the look.
   */
  async #ensureStay(process: Process, ctx: CallContext): Promise<void> {
    // Without a master, the work of an old process can't be read anyhow.
    if (this.#master === undefined || ctx.clock.now() < this.#crowdedUntil) return
    if (process.stay?.state === 'open') {
      process.stay.refresh()
      return
    }
    try {
      const { stay, info } = await Stay.open(this.#socket, this.#settings.replyTimeout, ctx)
      if (incarnationOf(info) === process.incarnation) process.stay = stay
      else stay.close()
    } catch (error) {
      if (ctx.signal.aborted || !isDrainableError(error)) throw error
      if (isUnanswered(error)) this.#crowdedUntil = ctx.clock.now() + CROWDED
    }
  }

  /**
   * Ten providers that each keep a connection take all that `stats maxconn` allows: then nobody gets an answer, but over
   * what is kept. A frozen process does not answer there either.
   */
  async #makeRoom({ stay }: Process, ctx: CallContext): Promise<void> {
    if (stay === undefined || !(await stay.answers(ALIVE, ctx))) return
    this.#crowdedUntil = ctx.clock.now() + CROWDED
    stay.close()
  }
}

/** Whether every member that was looked at has work. */
function isBusy({ members }: ProcessSight): boolean {
  const rows = [...members.values()].map(({ row }) => row)
  return rows.length > 0 && rows.every(({ active, queued }) => active + queued > 0)
}

/** Whether no answer came: the process is frozen, or takes no more connections. */
function isUnanswered(error: unknown): boolean {
  if (!isDrainableError(error)) return false
  const { code } = (error.cause ?? {}) as NodeJS.ErrnoException
  return error.code === 'CALL_TIMEOUT' || code === 'EAGAIN'
}
