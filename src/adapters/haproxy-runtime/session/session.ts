import { pause } from '../../../provider/clock.js'
import type { CallContext } from '../../../provider/contract.js'
import { DrainableError, isDrainableError } from '../../../provider/error.js'
import {
  AnotherProcess,
  type Channel,
  keptChannel,
  NoWorker,
  StatsChannel,
  WorkerGone,
} from './channel.js'
import { BusyLooks, GLANCE, isBusy, readyOf } from './busy-looks.js'
import { incarnationOf } from '../codec/info.js'
import type { ServerState } from '../codec/state.js'
import { type Facts, readFacts, whatIsIt } from './facts.js'
import { findMaster, HAND_OVER, HAND_OVER_LOOK } from './find-master.js'
import { KeptConnection } from './kept-connection.js'
import type { Question } from './look-beside.js'
import type { MasterSocket } from './master.js'
import type { Settings } from '../options.js'
import { localProcesses, NOT_LOCAL } from './local-processes.js'
import { type OldChannel, type OtherSight, OtherProcesses } from './other-processes.js'
import { keep, noteStandstill, type Process, toProcess } from './process.js'
import type { ProcessSight, Wanted } from '../read/read.js'
import { Room } from './room.js'
import { RuntimeSocket } from './socket.js'
import { Standstill } from './standstill.js'
import { noteStreams } from './strays.js'
import { Unseen } from './unseen.js'
import { Watched } from './watched.js'

const PROVIDER = 'haproxy-runtime'
/** How often to check, while the master is silent, whether a reload has replaced the process that serves, ms. */
const REPLACED_LOOK = 10
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
  readonly #busy = new BusyLooks()
  readonly #watched = new Watched()
  #current: Process | undefined
  readonly #room = new Room()

  constructor(settings: Settings) {
    this.#settings = settings
    this.#socket = new RuntimeSocket(settings.socket, settings, { tls: settings.tls })
    this.#stats = new StatsChannel(this.#socket)
    this.label = this.#socket.label
    // Over TCP the process can be on another machine.
    const local = this.#socket.unix ? localProcesses() : NOT_LOCAL
    this.unseen = new Unseen(settings, this.label, local)
    this.others = new OtherProcesses(this.unseen, local)
  }

  /** The channel to a process that serves the socket. */
  channel(process: Process): Channel {
    return this.#stats.to(process.incarnation ?? '')
  }

  /** Changes something in that process; see {@link StatsChannel.change}. The next look is a whole one. */
  change(process: Process, line: string, ctx: CallContext): Promise<string> {
    this.#busy.reset()
    return this.#stats.change(line, process.incarnation ?? '', ctx)
  }

  /** Channels to the old processes that can be reached. */
  oldChannels(): OldChannel[] {
    return this.others.channels(this.#master)
  }

  close(): void {
    this.#current?.kept?.close()
    this.others.close()
    this.#socket.close()
    this.#master?.socket.close()
  }

  /** Reads the process that serves, then the others; again if a reload is just handing the socket over. */
  async readEvery(wanted: Wanted | 'all', ctx: CallContext): Promise<EverySight> {
    const glance = wanted === 'all' ? undefined : await this.#glance(wanted, ctx)
    if (glance !== undefined) return glance
    const end = ctx.clock.now() + HAND_OVER
    const watched = this.#watched.of(wanted, ctx.clock.now())
    for (;;) {
      const before = this.#current?.scope
      const { process, sight } = await this.#readCurrent(wanted, ctx)
      await this.unseen.lookAround(ctx.clock.now())
      if (wanted !== 'all') {
        // A drain lost in a reload must be put back at once: the next look can read the rest.
        if (before !== undefined && before !== process.scope) {
          const others = this.others.unasked(JUST_REPLACED)
          return { process, sight, others, replaced: true }
        }
        await this.#keep(process, sight, ctx)
      }
      const asked = { watched, serves: process.view }
      await noteStreams(process, sight, asked, this.channel(process), ctx)
      if (wanted !== 'all') {
        this.#busy.note(sight)
        if (this.#mayWait && this.#busy.mayLeaveMaster(sight, ctx.clock.now())) {
          return { process, sight, others: this.others.unasked(''), replaced: false }
        }
      }
      const others = await this.#readOthers({ wanted, watched }, process, ctx)
      if (others === undefined) continue
      if (others.blind === undefined) this.#busy.listed(sight.sampledAt)
      else this.#busy.reset()
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
    if (this.#master === undefined) return this.others.read(question, undefined, ctx)
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

  /** Whether a master tells of other processes, and none is known. */
  get #mayWait(): boolean {
    return this.#master !== undefined && this.others.none
  }

  /**
   * Looks over the connection kept to the process that serves, which costs half as much, while no decision can depend
   * on the look: every member was at work at the last whole look, and still is.
   *
   * @returns undefined where the whole look is needed: because it is due, because some member is at zero, or because
   *   the process was told to stop, which a reload does
   */
  async #glance(wanted: Wanted, ctx: CallContext): Promise<EverySight | undefined> {
    const process = this.#current
    if (!this.#mayWait || !this.#busy.mayGlance(wanted, ctx.clock.now())) return undefined
    const kept = readyOf(process?.kept)
    if (process === undefined || kept === undefined) return undefined
    try {
      const sight = await this.#readIn(process, keptChannel(kept, GLANCE), wanted, ctx)
      const same = incarnationOf(sight.info) === process.incarnation && !sight.info.stopping
      // Another call can have met a successor meanwhile.
      const serves = this.#current === process && this.#mayWait
      if (!same || !serves || !isBusy(sight)) return undefined
      return { process, sight, others: this.others.unasked(''), replaced: false }
    } catch (error) {
      const passes = error instanceof WorkerGone || isDrainableError(error)
      if (ctx.signal.aborted || !passes) throw error
      return undefined
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
      await this.unseen.learn(this.#facts, this.#master !== undefined, ctx.clock.now())
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
        await this.#room.make(process.kept, error, ctx)
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
      process.seenAt = clock.now()
      const silent = this.#standstill.answer(process.seenAt)
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
          await this.#replace(process, this.others.take(next.scope) ?? next, error, ctx)
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

  async #replace(
    before: Process,
    next: Process,
    { info }: AnotherProcess,
    { clock }: CallContext,
  ): Promise<void> {
    if (this.#current !== before) return // another call was first
    this.others.demote(before, clock.now())
    this.#current = next
    if (this.#master !== undefined) return
    const now = clock.now()
    await this.unseen.succeed(before, next, { info, known: this.others.pids, now })
    const kept = before.kept?.state
    if (kept !== 'open' && kept !== 'ended') await this.unseen.lose(info, now)
  }

  /**
   * Keeps a connection before the first change: after a reload it still answers for the old process, and shows the
   * end of its last request. Without a master, nothing else reaches that process. For a process that has just
   * replaced another one, the next look opens the connection, because the lost drain is put back first.
   */
  async keepFirst(process: Process, ctx: CallContext): Promise<void> {
    if (!this.others.none) return
    try {
      await this.#ensureKept(process, ctx)
    } catch (error) {
      if (ctx.signal.aborted || this.#master === undefined || !isDrainableError(error)) throw error
    }
  }

  /**
   * Keeps a connection while any member is held, also by an earlier run of ours or by another client. Without a
   * master it keeps one from the first look on: otherwise a reload before the first change would leave a process that
   * can't be reached.
   */
  async #keep(process: Process, sight: ProcessSight, ctx: CallContext): Promise<void> {
    const held = [...sight.members.values()].some(({ own }) => own !== 'ready')
    if (!held && process.kept === undefined && this.#master !== undefined) return
    try {
      await this.#ensureKept(process, ctx)
    } catch (error) {
      // The look itself succeeded. The next one tries again.
      if (ctx.signal.aborted || !isDrainableError(error)) throw error
    }
  }

  async #ensureKept(process: Process, ctx: CallContext): Promise<void> {
    if (this.#room.isCrowded(ctx.clock.now())) return
    if (process.kept?.state === 'open') {
      if (process.kept.stale) await process.kept.run('show cli level', ctx)
      return
    }
    const { replyTimeout } = this.#settings
    const kept = await KeptConnection.open(this.#socket, replyTimeout, ctx).catch(
      (error: unknown) => {
        this.#room.refuse(error, ctx.clock.now())
        throw error
      },
    )
    await keep(process, kept, this.label, ctx)
  }
}
