import { Followers } from '../../../kit/haproxy/followers.js'
import { OpenedByReload } from '../../../kit/haproxy/state-file.js'
import { pause } from '../../../provider/clock.js'
import type { CallContext, MemberRef } from '../../../provider/contract.js'
import { DrainableError, isDrainableError } from '../../../provider/error.js'
import { showStat } from '../codec/commands.js'
import { parseStat } from '../codec/stat.js'
import { incarnationOf } from '../codec/replies.js'
import type { ServerState } from '../codec/state.js'
import type { Settings } from '../options.js'
import { keyOf, type Wanted } from '../read/read.js'
import type { ShownProcess } from '../read/shown.js'
import { AnotherProcess, type Channel, NoWorker, StatsChannel } from './channel.js'
import {
  type Facts,
  findMaster,
  HAND_OVER,
  HAND_OVER_LOOK,
  type MasterSocket,
  readFacts,
  whatIsIt,
} from './master.js'
import { type Process, scopeOf, Stay, toProcess } from './process.js'
import {
  type OldProcess,
  OtherProcesses,
  type ShownOthers,
  type Question,
  Unseen,
} from './processes.js'
import { RuntimeSocket } from './socket.js'
import { PROVIDER } from '../name.js'

/** How often to check, while the master is silent, whether a reload has replaced the process that serves, ms. */
const REPLACED_LOOK = 10
/** While every member is at work and no old worker is known, the master lists its workers this often, ms. */
const LIST_AGAIN = 250
/** How long no connection is kept to a process if HAProxy has no room for it, ms. */
const CROWDED = 300_000
/** A process that was looked at within this time is followed when it is replaced: a drain may be under way, ms. */
const FOLLOWED = 60_000
const JUST_REPLACED = 'a reload has just replaced it, it is read at the next look'
/**
 * The abort reason for the rest of a look that has its answer; shared, because a new error costs a stack trace at
 * every look.
 */
const OVER = new Error('the look has its answer')

/** The result of one look: the process that serves, and those beside it. */
export interface ShownAll {
  readonly process: Process
  readonly shown: ShownProcess
  readonly others: ShownOthers
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
  readonly followers = new Followers()
  readonly opened = new OpenedByReload()
  readonly #settings: Settings
  readonly #socket: RuntimeSocket
  readonly #stats: StatsChannel
  #facts: Facts | undefined
  #master: MasterSocket | undefined
  #masterAsked = false
  /** When the master last listed its workers, and nothing was changed since. */
  #listedAt = -Infinity
  /** Until when no connection is kept: by the clock of the calls. */
  #crowdedUntil = -Infinity
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

  /** The old processes that can be reached. */
  oldProcesses(): OldProcess[] {
    return this.others.reached(this.#master)
  }

  close(): void {
    this.#current?.stay?.close()
    this.others.close()
    this.#socket.close()
    this.#master?.socket.close()
  }

  /** Reads the process that serves, then the others; again if a reload is just handing the socket over. */
  readEvery(wanted: Wanted | 'all', ctx: CallContext): Promise<ShownAll> {
    return this.#withRoom(ctx, () => this.#readEvery(wanted, ctx))
  }

  async #readEvery(wanted: Wanted | 'all', ctx: CallContext): Promise<ShownAll> {
    const end = ctx.clock.now() + HAND_OVER
    for (;;) {
      const before = this.#current
      const { process, shown } = await this.#readCurrent(wanted, ctx)
      this.opened.note(process.scope, shown.members.values())
      if (wanted !== 'all') {
        // A drain lost in a reload must be put back at once: the next look can read the rest.
        if (before !== undefined && before !== process) {
          const others = this.others.unasked(JUST_REPLACED)
          return { process, shown, others, replaced: true }
        }
        await this.#ensureStay(process, ctx)
      }
      const refs = refsOf(wanted, shown)
      await this.#noteStreams(process, shown, refs, ctx)
      const mayLeave = wanted !== 'all' && this.#master !== undefined && this.others.none
      if (mayLeave && isBusy(shown) && ctx.clock.now() < this.#listedAt + LIST_AGAIN)
        return { process, shown, others: this.others.unasked(''), replaced: false }
      const others = await this.#readOthers({ wanted, refs, serves: shown, current: process }, ctx)
      if (others === undefined) continue
      this.#listedAt = others.blind === undefined ? shown.sampledAt : -Infinity
      if (others.coming !== true || ctx.clock.now() >= end)
        return { process, shown, others, replaced: false }
      await pause(ctx.clock, HAND_OVER_LOOK, ctx.signal)
    }
  }

  /** What the streams of the process that serves tell beside its counts. */
  async #noteStreams(
    process: Process,
    shown: ShownProcess,
    refs: readonly MemberRef[],
    ctx: CallContext,
  ): Promise<void> {
    const { view, lines, offRow } = process
    const shownServers = refs.flatMap((ref) => shown.members.get(keyOf(ref)) ?? [])
    const channel = this.channel(process)
    await lines.note(shownServers, false, channel, ctx)
    await offRow.note(refs, { shown, view, serves: shown, isOpen: true }, channel, ctx)
  }

  /**
   * Reads the processes beside the one that serves.
   *
   * @returns undefined if that process was replaced meanwhile: a master that re-executes itself at a reload can take
   *   half a second to answer, and a drain lost in the reload must be put back before
   */
  async #readOthers(question: Question, ctx: CallContext): Promise<ShownOthers | undefined> {
    if (this.#master === undefined) return this.others.unreachable()
    const over = new AbortController()
    // Cheaper than AbortSignal.any(), because this runs at every look.
    const onAbort = (): void => over.abort(ctx.signal.reason)
    ctx.signal.addEventListener('abort', onAbort, { once: true })
    if (ctx.signal.aborted) onAbort()
    const within = { ...ctx, signal: over.signal }
    const read = this.others.read(question, this.#master, within)
    const replaced = this.#untilReplaced(question.current, within)
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
          if (!this.others.isOld(scopeOf(error.info))) return undefined
        } else if (ctx.signal.aborted || !isDrainableError(error)) throw error
        // Otherwise the look itself reports the error.
      }
    }
  }

  /** Reads the facts once, and finds the master. */
  connect(ctx: CallContext): Promise<Facts> {
    return this.#withRoom(ctx, () => this.#connect(ctx))
  }

  async #connect(ctx: CallContext): Promise<Facts> {
    ctx.signal.throwIfAborted()
    if (this.#facts === undefined) {
      this.#facts = await this.#learn(ctx)
      // What was asked of it holds for it alone: one that has replaced it by the first look is another.
      this.#current ??= toProcess(this.#facts.info.pid, this.#facts.info)
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
  ): Promise<{ process: Process; shown: ShownProcess }> {
    return this.#follow(ctx, async (process) => {
      try {
        const shown = await process.view.look(wanted, this.channel(process), ctx)
        this.unseen.note(shown.info, shown.sampledAt, ctx.clock.now())
        return { process, shown }
      } catch (error) {
        this.unseen.fail()
        throw error
      }
    })
  }

  /** Learns once per process which servers track which. @returns whether it is known */
  async learnFollowers(process: Process, ctx: CallContext): Promise<boolean> {
    if (this.followers.know(process.scope)) return true
    try {
      const ask = () => this.channel(process).run([showStat('-1', 'servers')], ctx)
      const { replies } = await this.#withRoom(ctx, ask)
      const rows = parseStat(replies[0] ?? '')
      this.followers.learn(
        process.scope,
        rows.map(({ pool, name, tracked }) => ({ pool, member: name, tracked })),
      )
      return true
    } catch (error) {
      if (error instanceof AnotherProcess) return false // reloaded since: the next look asks the new one
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
        const next = toProcess(error.info.pid, error.info)
        if (!this.others.isOld(next.scope)) {
          this.#replace(process, next, ctx)
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
    if (clock.now() - this.unseen.lookedAt < FOLLOWED) this.others.demote(before, next)
    else before.stay?.close()
    this.unseen.succeed()
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
      const { stay, info } = await Stay.open(this.#socket, ctx)
      if (incarnationOf(info) === process.incarnation) process.stay = stay
      else stay.close()
    } catch (error) {
      if (ctx.signal.aborted || !isDrainableError(error)) throw error
      if (isUnanswered(error)) this.#crowdedUntil = ctx.clock.now() + CROWDED
    }
  }

  /**
   * Ten providers that each keep a connection take all that `stats maxconn` allows: then nobody gets an answer, but over
   * what is kept. So whatever had no answer ends what is kept. A frozen process looks the same.
   */
  async #withRoom<T>({ clock }: CallContext, ask: () => Promise<T>): Promise<T> {
    try {
      return await ask()
    } catch (error) {
      if (isUnanswered(error)) {
        this.#crowdedUntil = clock.now() + CROWDED
        this.#current?.stay?.close()
      }
      throw error
    }
  }
}

/** The servers that a look is for; if it is for everything, those that are held: drains may look at them. */
function refsOf(wanted: Wanted | 'all', { members }: ShownProcess): MemberRef[] {
  if (wanted === 'all')
    return [...members.values()].flatMap(({ ref, own, inherited }) =>
      own === 'ready' && inherited === undefined ? [] : [ref],
    )
  return [...wanted].flatMap(([pool, names]) =>
    names === 'all' ? [] : [...names].map((member) => ({ pool, member })),
  )
}

/** Whether every member that was looked at has work. */
function isBusy({ members }: ShownProcess): boolean {
  const rows = [...members.values()].map(({ row }) => row)
  return rows.length > 0 && rows.every(({ active, queued }) => active + queued > 0)
}

/** Whether no answer came: the process is frozen, or takes no more connections. */
function isUnanswered(error: unknown): boolean {
  if (!isDrainableError(error)) return false
  const { code } = (error.cause ?? {}) as NodeJS.ErrnoException
  return error.code === 'CALL_TIMEOUT' || code === 'EAGAIN'
}
