import { pause } from '../../../provider/clock.js'
import type { CallContext } from '../../../provider/contract.js'
import { DrainableError, isDrainableError } from '../../../provider/error.js'
import { AnotherProcess, type Channel, type MasterSocket, StatsChannel } from './channel.js'
import type { ServerState } from '../codec/state.js'
import { connectMaster, type Facts, readFacts } from './facts.js'
import { KeptConnection } from './kept-connection.js'
import type { Settings } from '../options.js'
import { type OtherSight, OtherProcesses, whoAnswers } from './other-processes.js'
import { type Process, toProcess } from './process.js'
import type { ProcessSight, Wanted } from '../read/read.js'
import { RuntimeSocket } from './socket.js'

const PROVIDER = 'haproxy-runtime'
/** A reload hands the socket over: for that long either process may answer. */
const HAND_OVER = 1_000
const HAND_OVER_LOOK = 10
/** Between two looks further apart than that, two reloads can have gone by unseen. */
const UNSEEN_RELOAD = 2_000

/** What one look saw: the process that serves, and those beside it. */
export interface EverySight {
  readonly process: Process
  readonly sight: ProcessSight
  readonly others: OtherSight
}

/**
 * One HAProxy with its processes: which of them serves the socket, how the others are reached, and
 * what can't be known of them. Follows it through reloads.
 */
export class ControlPoint {
  readonly label: string
  readonly others: OtherProcesses
  readonly #settings: Settings
  readonly #socket: RuntimeSocket
  readonly #stats: StatsChannel
  #facts: Facts | undefined
  #master: MasterSocket | undefined
  #masterAsked = false
  #current: Process | undefined
  /** By the clock of the calls: when the first process that was seen started, at the latest. */
  #bornAt = 0
  /** Replaced between two looks so far apart that a whole process may have come and gone. */
  #doubtful: ReadonlySet<string> = new Set()

  /** @param isSettled - whether the last reading of that scope that was given out held no work */
  constructor(settings: Settings, isSettled: (scope: string) => boolean) {
    this.#settings = settings
    this.#socket = new RuntimeSocket(settings.socket, settings)
    this.#stats = new StatsChannel(this.#socket)
    this.label = this.#socket.label
    this.others = new OtherProcesses(isSettled)
  }

  /** The way to a process that serves the socket. */
  channel(process: Process): Channel {
    return this.#stats.to(process.incarnation ?? '')
  }

  /** Changes something in that process; see {@link StatsChannel.change}. */
  change(process: Process, line: string, signal: AbortSignal): Promise<string> {
    return this.#stats.change(line, process.incarnation ?? '', signal)
  }

  /** Ways to the old processes that can be spoken to. */
  oldChannels(): Channel[] {
    return this.others.channels(this.#master)
  }

  /** By the clock of the calls: when the first process that was seen started, at the latest. */
  get bornAt(): number {
    return this.#bornAt
  }

  /** Why another process may have come and gone beside one of these unseen; undefined where it can't have. */
  doubt(scopes: readonly string[]): string | undefined {
    if (!scopes.some((scope) => this.#doubtful.has(scope))) return undefined
    return `more than ${UNSEEN_RELOAD / 1_000} s passed between two looks while ${this.label} was reloaded, another process may have come and gone between them: give the master socket as 'master'`
  }

  close(): void {
    this.#current?.kept?.close()
    this.others.close()
    this.#socket.close()
    this.#master?.socket.close()
  }

  /** Whether processes of before the first look may hold work and can't be seen, and why. */
  unseenAtStart(): string | undefined {
    const facts = this.#facts
    if (facts === undefined || this.#master !== undefined) return undefined
    if (facts.mworker === undefined) {
      return `whether ${this.label} has old workers can't be asked at level ${facts.level}, give the master socket (haproxy -S) as 'master'`
    }
    if (!facts.mworker || facts.neverReloaded) return undefined
    return `HAProxy at ${this.label} runs under a master (-W), and old workers of an earlier reload would not be seen: give the path of its master socket (haproxy -S) as 'master', or set oldWorkers: { within: <your hard-stop-after> } or 'accept'`
  }

  /** The process that serves, then the others; again where a reload is just handing the socket over. */
  async readEvery(wanted: Wanted | 'all', ctx: CallContext): Promise<EverySight> {
    const until = ctx.clock.now() + HAND_OVER
    for (;;) {
      const { process, sight } = await this.#readCurrent(wanted, ctx)
      if (wanted !== 'all') await this.#keep(process, sight, ctx)
      const others = await this.others.read(wanted, process, this.#master, ctx)
      const coming = others.read.some(({ old }) => !old)
      if (!coming || ctx.clock.now() >= until) return { process, sight, others }
      await pause(ctx.clock, HAND_OVER_LOOK, ctx.signal)
    }
  }

  /** Asks once what is there, and finds the master. */
  async connect(ctx: CallContext): Promise<Facts> {
    ctx.signal.throwIfAborted()
    if (this.#facts === undefined) {
      const facts = await readFacts(this.#stats, ctx.signal)
      this.#bornAt = ctx.clock.now() - facts.info.uptime * 1_000
      this.#facts = facts
    }
    if (!this.#masterAsked) await this.#findMaster(this.#facts, ctx)
    return this.#facts
  }

  /** The given master must be the right one; a found one is used if it is. */
  async #findMaster(facts: Facts, ctx: CallContext): Promise<void> {
    const given = this.#settings.master
    const address =
      given ?? (facts.mworker === true && this.#socket.local ? facts.masterAddress : undefined)
    if (address === undefined) {
      this.#masterAsked = true
      return
    }
    const until = ctx.clock.now() + HAND_OVER
    for (;;) {
      try {
        const { info } = await this.#stats.ask([], ctx.signal)
        const master = await connectMaster(address, this.#settings, info, ctx.signal)
        if (master !== undefined) {
          this.#master = master
          break
        }
      } catch (error) {
        if (ctx.signal.aborted || !isDrainableError(error)) throw error
        // A master that executes itself anew (a start, a reload) does not listen for a moment.
        const refused = (error.cause as NodeJS.ErrnoException | undefined)?.code === 'ECONNREFUSED'
        const away = refused || error.code === 'CONNECTION_LOST'
        if (given === undefined && !away) break
        if (!away || ctx.clock.now() >= until) throw error
      }
      if (ctx.clock.now() >= until) {
        if (given === undefined) break
        throw new DrainableError(
          'INVALID_OPTIONS',
          `haproxyRuntime(): the master given is not the one of the process that serves ${this.label}: its 'show proc' does not list that process`,
          { provider: PROVIDER },
        )
      }
      await pause(ctx.clock, HAND_OVER_LOOK, ctx.signal)
    }
    this.#masterAsked = true
  }

  /** Reads whoever serves the socket, and follows it through a reload. */
  async #readCurrent(
    wanted: Wanted | 'all',
    ctx: CallContext,
  ): Promise<{ process: Process; sight: ProcessSight }> {
    return this.#follow(ctx, async (process) => {
      const channel = this.channel(process)
      const sight =
        wanted === 'all'
          ? await process.view.readAll(channel, ctx.clock, ctx.signal)
          : await process.view.read(wanted, channel, ctx.clock, ctx.signal)
      process.seenAt = ctx.clock.now()
      return { process, sight }
    })
  }

  /** The states of whole backends in the process that serves. */
  states(
    pools: ReadonlySet<string>,
    ctx: CallContext,
  ): Promise<{
    process: Process
    states: ReadonlyMap<string, ReadonlyMap<string, ServerState>>
  }> {
    return this.#follow(ctx, async (process) => {
      const channel = this.channel(process)
      return { process, states: await process.view.states(pools, channel, ctx.signal) }
    })
  }

  async #follow<T>(ctx: CallContext, look: (process: Process) => Promise<T>): Promise<T> {
    const until = ctx.clock.now() + HAND_OVER
    for (;;) {
      const process = this.#current ?? (await this.#first(ctx))
      try {
        return await look(process)
      } catch (error) {
        if (!(error instanceof AnotherProcess)) throw error
        const next = toProcess(error.info, ctx.clock.now())
        if (!this.others.isOld(next.scope)) {
          this.#replace(process, this.others.take(next.scope) ?? next)
          continue
        }
        // The predecessor answered once more: the reload is handing the socket over.
        if (ctx.clock.now() >= until) {
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

  async #first(ctx: CallContext): Promise<Process> {
    const { info } = await this.#stats.ask([], ctx.signal)
    this.#current ??= toProcess(info, ctx.clock.now())
    return this.#current
  }

  #replace(before: Process, next: Process): void {
    if (this.#current !== before) return // another call was first
    this.others.demote(before)
    this.#current = next
    if (this.#master !== undefined) return
    if (next.seenAt - before.seenAt > UNSEEN_RELOAD) {
      this.#doubtful = new Set([...this.#doubtful, before.scope])
    }
    if (before.kept?.state !== 'open' && this.#facts !== undefined) {
      this.#facts = { ...this.#facts, neverReloaded: false }
      this.#bornAt = next.startedAt
    }
  }

  /**
   * Before the first change: a connection kept since before a reload goes on answering for the old
   * process, and lets its last request be seen to end. Without a master it is the only way there.
   */
  async keepFirst(process: Process, ctx: CallContext): Promise<void> {
    try {
      await this.#ensureKept(process, ctx)
    } catch (error) {
      if (ctx.signal.aborted || this.#master === undefined || !isDrainableError(error)) throw error
    }
  }

  /**
   * While something is held, also where it was held by an earlier run of ours, or by somebody else. Without
   * a master from the first look on: a reload between it and the first change would leave a process of
   * that look without a way to it.
   */
  async #keep(process: Process, sight: ProcessSight, ctx: CallContext): Promise<void> {
    const held = [...sight.members.values()].some(({ own }) => own !== 'ready')
    if (!held && process.kept === undefined && this.#master !== undefined) return
    try {
      await this.#ensureKept(process, ctx)
    } catch (error) {
      // The look itself is good. The next one tries again.
      if (ctx.signal.aborted || !isDrainableError(error)) throw error
    }
  }

  async #ensureKept(process: Process, ctx: CallContext): Promise<void> {
    if (process.kept?.state === 'open') {
      if (process.kept.stale) await process.kept.run('show cli level', ctx.signal)
      return
    }
    const { replyTimeout } = this.#settings
    const kept = await KeptConnection.open(this.#socket, replyTimeout, ctx.signal)
    try {
      const info = await whoAnswers(kept, ctx.signal)
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
