import type { CallContext, MemberRef } from '../../../provider/contract.js'
import { isDrainableError } from '../../../provider/error.js'
import { incarnationOf, parseProc, type ProcessInfo, type Workers } from '../codec/replies.js'
import type { Settings } from '../options.js'
import { keyOf, type Wanted } from '../read/read.js'
import type { ShownProcess } from '../read/shown.js'
import { type Channel, WorkerGone } from './channel.js'
import type { Facts, MasterSocket } from './master.js'
import { type Process, toProcess } from './process.js'

/** What one look is for. */
export interface Question {
  readonly wanted: Wanted | 'all'
  /** The servers that drains may be at: those that are wanted, or held if that is everything. */
  readonly refs: readonly MemberRef[]
  /** The process that serves, and what it has. */
  readonly current: Process
  readonly serves: ShownProcess
}

/** An old process that was just read. */
export interface ReadProcess {
  readonly process: Process
  readonly shown: ShownProcess
}

/** A process that exists, or may exist, and could not be read. */
export interface UnreadProcess {
  readonly process: Process
  /** Whether it is known to exist; its members are not known. */
  readonly listed: boolean
  readonly note: string
}

/** The result of one look at the processes beside the current one. */
export interface ShownOthers {
  readonly read: readonly ReadProcess[]
  readonly unread: readonly UnreadProcess[]
  /** Why the master could not be asked: there can be processes that are not known at all. */
  readonly blind: string | undefined
  /** Whether every process is known, and each was read: a process not among them has ended. */
  readonly complete: boolean
  /** Whether a worker that a reload has started does not serve the socket yet. */
  readonly coming?: boolean
}

/** An old process, and the way to it. */
export interface OldProcess {
  readonly process: Process
  readonly channel: Channel
}

/** Names of ended processes that are still said to have ended, where nothing lists all of them. */
const ENDED_SAID = 200
/** The most processes that are known beside the current one. */
const MOST = 200
const COMING = 'a worker that does not serve the socket yet'
const OF_ANOTHER_MASTER =
  'not readable: another master runs HAProxy now, which does not know it; it ends with its last connection, or by hard-stop-after, see the option oldWorkers'
const NO_WAY =
  "not readable: a reload replaced it and it cannot be reached, give the master socket as 'master', or see the option oldWorkers"

/** The processes beside the one that serves the socket: old workers, and one that is about to serve it. */
export class OtherProcesses {
  readonly #old = new Map<string, Process>()
  /** The names of the processes that have ended. */
  #ended: readonly string[] = []
  readonly #unseen: Pick<Unseen, 'isGivenUp' | 'isOver' | 'knowsAll' | 'ran'>

  constructor(unseen: Pick<Unseen, 'isGivenUp' | 'isOver' | 'knowsAll' | 'ran'>) {
    this.#unseen = unseen
  }

  /** The names of ended processes. */
  get ended(): readonly string[] {
    return this.#ended
  }

  /** Whether no process is known beside the current one. */
  get none(): boolean {
    return this.#old.size === 0
  }

  /** A process was replaced by one that may have been unread until it served. */
  demote(process: Process, next: Process): void {
    // Not when its successor was started: it reads its configuration before it tells this one to stop.
    process.replacedAt = this.#unseen.ran
    this.#old.set(process.scope, process)
    this.#said(toProcess(next.pid).scope)
    // Without a master nothing ends them. Any of them keeps a new drain from idle, and a drain remembers its own.
    const [oldest] = this.#old.keys()
    if (this.#old.size > MOST && oldest !== undefined) this.#old.delete(oldest)
  }

  /** Whether that scope belongs to a replaced process that may still exist. */
  isOld(scope: string): boolean {
    return this.#old.has(scope)
  }

  /** The known processes, without a look at any of them. */
  unasked(note: string): ShownOthers {
    const unread = this.#alive().map((process) => ({ process, listed: true, note }))
    return { read: [], unread, blind: undefined, complete: false }
  }

  /**
   * Without a master, nothing leads to a process that was replaced: it is unread until the option oldWorkers gives it up.
   * One that is accepted may go on, so it is still named.
   */
  unreachable(): ShownOthers {
    for (const process of this.#alive()) if (this.#unseen.isOver(process)) this.#end(process)
    const unread = this.#alive().map((process) => ({ process, listed: false, note: NO_WAY }))
    const isWaitedFor = ({ process }: UnreadProcess): boolean => !this.#unseen.isGivenUp(process)
    const complete = !unread.some(isWaitedFor) && this.#unseen.knowsAll
    return { read: [], unread, blind: undefined, complete }
  }

  /** Reads all that the master lists. */
  async read(question: Question, master: MasterSocket, ctx: CallContext): Promise<ShownOthers> {
    const { current } = question
    let workers: Workers
    try {
      workers = parseProc(await master.ask('show proc', ctx))
    } catch (error) {
      // At a reload the master re-executes itself: for a moment nothing listens on its socket.
      const note = `not readable: the master could not be asked (${words(error, ctx)})`
      const unread = this.#alive().map((process) => ({ process, listed: false, note }))
      return { read: [], unread, blind: note, complete: false }
    }
    const isOther = (pid: number): boolean => pid !== current.pid
    const listed = [...workers.current, ...workers.old]
    if (listed.includes(current.pid)) current.master = workers.master
    const orphans = this.#endUnlisted(listed.filter(isOther), workers.master)
    const coming = workers.current.filter(isOther)
    const old = workers.old.filter(isOther)
    const looks = await Promise.all(
      old.map((pid) => this.#readOld(pid, workers.master, question, master, ctx)),
    )
    const unread = [
      ...looks.flatMap((look) => (look !== undefined && 'note' in look ? [look] : [])),
      ...coming.map((pid) => ({ process: toProcess(pid), listed: true, note: COMING })),
      ...orphans.map((process) => ({ process, listed: false, note: OF_ANOTHER_MASTER })),
    ]
    return {
      read: looks.flatMap((look) => (look !== undefined && 'shown' in look ? [look] : [])),
      unread,
      blind: undefined,
      complete: unread.length === 0,
      coming: coming.length > 0,
    }
  }

  /** Those that can be reached. */
  reached(master: MasterSocket | undefined): OldProcess[] {
    if (master === undefined) return []
    return this.#alive().map((process) => ({ process, channel: toWorker(master, process) }))
  }

  close(): void {
    for (const { stay } of this.#alive()) stay?.close()
  }

  /**
   * Ends processes that their own master does not list, and those whose end was seen.
   *
   * @returns the processes that another master listed: a new master (`haproxy -W -sf`, or a start while the previous
   *   one still finishes its work) knows only its own workers
   */
  #endUnlisted(pids: readonly number[], master: number): Process[] {
    const unlisted = this.#alive().filter(({ pid }) => !pids.includes(pid))
    const isOrphan = ({ master: of, stay }: Process): boolean =>
      of !== undefined && of !== master && stay?.state !== 'ended'
    for (const process of unlisted) {
      if (isOrphan(process))
        process.stay?.close() // nothing can be read in it, so let it end
      else this.#end(process)
    }
    return unlisted.filter(isOrphan)
  }

  /** @returns undefined if it has gone */
  async #readOld(
    pid: number,
    listedBy: number,
    question: Question,
    master: MasterSocket,
    ctx: CallContext,
  ): Promise<ReadProcess | UnreadProcess | undefined> {
    let process = this.#alive().find((candidate) => candidate.pid === pid)
    try {
      if (process?.incarnation === undefined) {
        const { info } = await master.to(pid, undefined).run([], ctx)
        // Known only by its pid until now.
        if (process !== undefined) this.#end(process)
        process = toProcess(info.pid, info)
      }
      process.master = listedBy
      process.replacedAt ??= this.#unseen.ran
      this.#old.set(process.scope, process)
      const channel = toWorker(master, process)
      const shown = await process.view.look(question.wanted, channel, ctx)
      await noteOld(process, shown, question, channel, ctx)
      return { process, shown }
    } catch (error) {
      if (error instanceof WorkerGone) {
        if (process !== undefined) this.#end(process)
        return undefined
      }
      const note = `not readable: ${words(error, ctx)}`
      process ??= toProcess(pid)
      this.#old.set(process.scope, process)
      return { process, listed: true, note }
    }
  }

  #end(process: Process): void {
    process.stay?.close()
    this.#old.delete(process.scope)
    this.#said(process.scope)
  }

  #said(scope: string): void {
    this.#ended = [...this.#ended, scope].slice(-ENDED_SAID)
  }

  #alive(): Process[] {
    return [...this.#old.values()]
  }
}

/** What a look at an old process tells beside its counts. */
async function noteOld(
  process: Process,
  shown: ShownProcess,
  { refs, serves }: Question,
  channel: Channel,
  ctx: CallContext,
): Promise<void> {
  const { view, door, lines, offRow } = process
  const shownServers = refs.flatMap((ref) => shown.members.get(keyOf(ref)) ?? [])
  // A server that is not there can be there by another name.
  const isGone = shownServers.length < refs.length
  const isAtZero = shownServers.some(
    ({ own, row }) => own !== 'maint' && row.active + row.queued === 0,
  )
  await door.note(shown, isGone || isAtZero, channel, ctx)
  await lines.note(shownServers, true, channel, ctx)
  await offRow.note(refs, { shown, view, serves, isOpen: !door.closed }, channel, ctx)
  letGo(process, shown)
}

/**
 * Closes the connection that keeps an old worker alive, once its zero was reported and no client is left in it. Over
 * TCP the connection can be one of its own clients (a frontend before the stats socket).
 */
function letGo(process: Process, shown: ShownProcess): void {
  const { stay, isQuiet, door } = process
  const rows = [...shown.members.values()].map(({ row }) => row)
  process.isQuiet = rows.every(({ active, queued }) => active + queued === 0)
  const ours = stay?.unix === true ? 0 : 1
  // As for the door, what was accepted in the moment in which it was told to stop is counted by the next look.
  const isLast = door.stopping && shown.info.connections <= ours
  if (isQuiet && process.isQuiet && isLast) stay?.close()
}

function toWorker(master: MasterSocket, process: Process): Channel {
  return master.to(process.pid, process.incarnation)
}

/** Why a process could not be read, for people; rethrows an abort or a bug unchanged. */
function words(error: unknown, ctx: CallContext): string {
  if (ctx.signal.aborted) throw ctx.signal.reason
  if (!isDrainableError(error)) throw error
  return error.message
}

/** The margin on top of `within`, because old processes are stopped only once the new one runs, ms. */
const WITHIN_MARGIN = 2_000
/** A slower answer can come from a process that stood still meanwhile, ms. */
const SLOW = 250

/** What is not known about earlier processes. */
export interface Blindness {
  readonly why: string
  /** Whether it refuses a drain before any change; otherwise idle is reported but not verified. */
  readonly refuses: boolean
}

/**
 * Knows whether there can be earlier processes that can't be reached. A master lists its old workers. Without one,
 * HAProxy tells nothing of a process that it replaced: only the time for which it has run can exclude one, by the
 * option oldWorkers.
 */
export class Unseen {
  readonly #settings: Settings
  readonly #label: string
  #facts: Facts | undefined
  #hasMaster = false
  /**
   * For how long HAProxy was seen to run, ms: by its clock and by ours, whichever says less. Its own clock does not show
   * every pause: that of 3.0 includes one in which nothing was due (measured: 4 s of SIGSTOP), while the timers of its
   * predecessor, including `hard-stop-after`, excluded it. So what passes without an answer does not count either.
   */
  #ran = 0
  #from: { readonly by: string; readonly ran: number; at: number; lived: number } | undefined
  /** When a process that was never seen can have been replaced at the latest, by that time. */
  #replacedAt = 0
  #lookedAt = -Infinity

  constructor(settings: Settings, label: string) {
    this.#settings = settings
    this.#label = label
  }

  /** Takes in the facts of the first process that was read. */
  learn(facts: Facts, hasMaster: boolean, now: number): void {
    this.#facts = facts
    this.#hasMaster = hasMaster
    this.#ran = facts.info.lived
    this.note(facts.info, now, now)
  }

  /** The process that serves was replaced. Two reloads may lie between two looks, and what was in between is unknown. */
  succeed(): void {
    this.#replacedAt = this.#ran
    if (this.#facts !== undefined) this.#facts = { ...this.#facts, neverReloaded: false }
  }

  /** Takes in an answer of the process that serves. */
  note(info: ProcessInfo, askedAt: number, answeredAt: number): void {
    const from = this.#from
    const by = incarnationOf(info)
    if (from?.by === by)
      this.#ran = from.ran + Math.max(0, Math.min(askedAt - from.at, info.lived - from.lived))
    if (from?.by !== by || answeredAt - askedAt > SLOW)
      this.#from = { by, ran: this.#ran, at: answeredAt, lived: info.lived }
    this.#lookedAt = askedAt
  }

  /** It did not answer. */
  fail(): void {
    this.#from = undefined
  }

  /** For how long HAProxy was seen to run, ms. */
  get ran(): number {
    return this.#ran
  }

  /** When the last look at the process that serves was asked for. */
  get lookedAt(): number {
    return this.#lookedAt
  }

  /**
   * Whether no process that was never seen can hold work any more, without a master: what is not listed has ended.
   * A drain that is resumed, and one that goes by steps, knows processes that this provider has never met.
   */
  get knowsAll(): boolean {
    if (this.#facts === undefined || this.#hasMaster) return false
    return this.#settings.oldWorkers === 'accept' || this.hasPassed(this.#replacedAt)
  }

  /** Why earlier processes may hold work unseen; undefined if that is excluded. */
  blindness(): Blindness | undefined {
    const facts = this.#facts
    if (facts === undefined || this.#hasMaster || this.hasPassed(this.#replacedAt)) return undefined
    const { oldWorkers } = this.#settings
    const remedy = `give its socket as 'master', or set oldWorkers: { within: <your hard-stop-after> }`
    const waits = typeof oldWorkers === 'object'
    if (facts.mworker === undefined) {
      const why = `${this.#label} can't be asked for old workers at level ${facts.level}: run HAProxy under a master (haproxy -W -S) and ${remedy}`
      return { why, refuses: oldWorkers !== 'accept' }
    }
    if (!facts.mworker) {
      const why = `HAProxy at ${this.#label} runs without a master, so a process that it replaced (haproxy -sf) would not be seen: run it under one (haproxy -W -S) and ${remedy}`
      return { why, refuses: waits }
    }
    const why = `HAProxy at ${this.#label} runs under a master (-W) whose socket is not known, so old workers of a reload would not be seen: start it with -S /run/haproxy-master.sock and ${remedy} or 'accept'`
    return { why, refuses: waits || (oldWorkers === 'wait' && !facts.neverReloaded) }
  }

  /** Whether a process that was replaced then, by {@link Unseen.ran}, has ended by the option oldWorkers. */
  hasPassed(replacedAt: number): boolean {
    const { oldWorkers } = this.#settings
    if (typeof oldWorkers !== 'object') return false
    return this.#ran - replacedAt >= oldWorkers.within + WITHIN_MARGIN
  }

  /** Whether a process does not prevent idle although it can't be read, or clients can come through it. */
  isGivenUp(process: Process): boolean {
    return this.#settings.oldWorkers === 'accept' || this.isOver(process)
  }

  /** Whether a replaced process has ended, by the longest time that it can live. */
  isOver({ replacedAt }: Process): boolean {
    return replacedAt !== undefined && this.hasPassed(replacedAt)
  }
}
