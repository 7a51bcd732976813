import { until } from '../../../kit/until.js'
import { pause } from '../../../provider/clock.js'
import type { CallContext } from '../../../provider/contract.js'
import { DrainableError, isDrainableError } from '../../../provider/error.js'
import { AnotherProcess, type Channel, keptChannel, NoWorker, StatsChannel } from './channel.js'
import { incarnationOf } from '../codec/info.js'
import type { ServerState } from '../codec/state.js'
import { connectMaster, type Facts, readFacts, whatIsIt } from './facts.js'
import { KeptConnection } from './kept-connection.js'
import type { MasterSocket } from './master.js'
import type { Settings } from '../options.js'
import { localProcesses, NOT_LOCAL } from './local-processes.js'
import { type OtherSight, OtherProcesses } from './other-processes.js'
import { noteStandstill, type Process, toProcess } from './process.js'
import type { ProcessSight, Wanted } from '../read/read.js'
import { Room } from './room.js'
import { RuntimeSocket } from './socket.js'
import { Standstill } from './standstill.js'
import { Unseen } from './unseen.js'

const PROVIDER = 'haproxy-runtime'
/** How long either process can answer while a reload hands the socket over, ms. */
const HAND_OVER = 1_000
const HAND_OVER_LOOK = 10
/** A younger process can be unknown to its master, ms. */
const YOUNG = 3_000
/** How often to check, while the master is silent, whether a reload has replaced the process that serves, ms. */
const REPLACED_LOOK = 10
const JUST_REPLACED = 'a reload has just replaced it, it is read at the next look'
/**
 * The abort reason for the rest of a look that has its answer; shared, because a new error costs a stack trace at
 * every look.
 */
const OVER = new Error('the look has its answer')
/** How often the master is asked for old workers while everything is busy, ms. */
const MASTER_LOOK = 250

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
  /** When the master last listed its workers, by the clock of the calls. */
  #listedAt = -Infinity
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

  /** Changes something in that process; see {@link StatsChannel.change}. */
  change(process: Process, line: string, ctx: CallContext): Promise<string> {
    return this.#stats.change(line, process.incarnation ?? '', ctx)
  }

  /** Channels to the old processes that can be reached. */
  oldChannels(): Channel[] {
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
    const end = ctx.clock.now() + HAND_OVER
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
        await process.ages.note(sight.members.values(), false, this.channel(process), ctx)
        if (this.#mayWait(sight, ctx)) {
          return { process, sight, others: this.others.unasked(''), replaced: false }
        }
      }
      const others = await this.#readOthers(wanted, process, ctx)
      if (others === undefined) continue
      this.#listedAt = others.blind === undefined ? ctx.clock.now() : -Infinity
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
    wanted: Wanted | 'all',
    process: Process,
    ctx: CallContext,
  ): Promise<OtherSight | undefined> {
    const question = { wanted, current: process, channel: this.channel(process) }
    if (this.#master === undefined) return this.others.read(question, undefined, ctx)
    const over = new AbortController()
    // Cheaper than AbortSignal.any(), because this runs at every look.
    const onAbort = (): void => over.abort(ctx.signal.reason)
    ctx.signal.addEventListener('abort', onAbort, { once: true })
    if (ctx.signal.aborted) onAbort()
    const within = { ...ctx, signal: over.signal }
    const asked = this.others.read(question, this.#master, within)
    const replaced = this.#untilReplaced(process, within)
    try {
      return await Promise.race([asked, replaced])
    } finally {
      ctx.signal.removeEventListener('abort', onAbort)
      over.abort(OVER)
      for (const late of [asked, replaced]) late.catch(() => undefined)
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

  /**
   * Whether this look need not ask the master: no other process is known, and every member is busy, so no decision
   * depends on it.
   */
  #mayWait({ members }: ProcessSight, { clock }: CallContext): boolean {
    if (this.#master === undefined || !this.others.none) return false
    if (clock.now() >= this.#listedAt + MASTER_LOOK) return false
    const rows = [...members.values()].map(({ row }) => row)
    return rows.length > 0 && rows.every(({ active, queued }) => active + queued > 0)
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

  /** Connects to the master: a given one must be the right one; a discovered one is used only if it is. */
  async #findMaster(facts: Facts, ctx: CallContext): Promise<void> {
    const given = this.#settings.master
    const address =
      given ?? (facts.mworker === true && this.#socket.local ? facts.masterAddress : undefined)
    if (address === undefined) return
    let failure: unknown
    let moved = false as boolean // set in a closure, which the compiler does not see
    const from = ctx.clock.now()
    const found = await until(ctx, { every: HAND_OVER_LOOK, within: YOUNG }, async () => {
      const patient = ctx.clock.now() - from < HAND_OVER
      failure = undefined
      try {
        const { info } = await this.#stats.ask([], ctx)
        const master = await connectMaster(address, this.#settings, info, ctx)
        if (typeof master !== 'string') return master
        // If there was a reload between the two questions, they prove nothing, however long they took.
        const { info: then } = await this.#stats.ask([], ctx)
        moved = master === 'gone' || incarnationOf(then) !== incarnationOf(info)
        // A worker serves its socket before its master lists it: on a loaded machine long before.
        moved ||= then.lived < YOUNG
        return moved || patient ? undefined : 'another'
      } catch (error) {
        if (ctx.signal.aborted || !isDrainableError(error)) throw error
        // A master that re-executes itself (at a start, at a reload) does not listen for a moment.
        const refused = (error.cause as NodeJS.ErrnoException | undefined)?.code === 'ECONNREFUSED'
        failure = error
        const passes = refused || error.code === 'CONNECTION_LOST'
        return passes && patient ? undefined : 'failed'
      }
    })
    if (typeof found === 'object') {
      this.#master = found
      return
    }
    if (failure === undefined && moved) {
      const words = `${this.label} is being reloaded or has just started, so it can't be told yet whether the master at ${address.label} is its own`
      throw new DrainableError('CONFLICT', words, { provider: PROVIDER })
    }
    if (given === undefined) return
    throw (
      failure ??
      new DrainableError(
        'INVALID_OPTIONS',
        `haproxyRuntime(): the master given is not the one of the process that serves ${this.label}: its 'show proc' does not list that process`,
        { provider: PROVIDER },
      )
    )
  }

  /** Reads the process that serves the socket, and follows it through a reload. */
  async #readCurrent(
    wanted: Wanted | 'all',
    ctx: CallContext,
  ): Promise<{ process: Process; sight: ProcessSight }> {
    return this.#follow(ctx, async (process) => {
      const channel = this.channel(process)
      this.#standstill.ask(ctx.clock.now())
      const sight = await (
        wanted === 'all'
          ? process.view.readAll(channel, ctx)
          : process.view.read(wanted, channel, ctx)
      ).catch(async (error: unknown) => {
        this.#standstill.fail(ctx.clock.now())
        await this.#room.make(process.kept, error, ctx)
        throw error
      })
      process.seenAt = ctx.clock.now()
      const silent = this.#standstill.answer(process.seenAt)
      const stood = noteStandstill(process, sight.sampledAt, sight.info.lived, silent)
      this.unseen.note(sight.sampledAt, stood)
      this.others.delay(stood)
      return { process, sight }
    })
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
    this.others.demote(before, next)
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
    try {
      const { info } = await keptChannel(kept).run([], ctx)
      if (toProcess(info, 0).scope !== process.scope) throw new AnotherProcess(info)
      process.kept = kept
    } catch (error) {
      kept.close()
      if (!(error instanceof AnotherProcess)) throw error
      throw new DrainableError('CONFLICT', `${this.label} is being reloaded`, {
        provider: PROVIDER,
        cause: error,
      })
    }
  }
}
