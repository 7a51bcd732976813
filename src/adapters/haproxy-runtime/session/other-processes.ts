import type { CallContext, MemberRef } from '../../../provider/contract.js'
import { isDrainableError } from '../../../provider/error.js'
import type { MasterSocket } from './master.js'
import { type Channel, WorkerGone } from './channel.js'
import { parseProc, type Workers } from '../codec/info.js'
import { type Process, toProcess } from './process.js'
import { keyOf, type ProcessSight, type Wanted } from '../read/read.js'
import type { Unseen } from './unseen.js'

/** What one look is for. */
export interface Question {
  readonly wanted: Wanted | 'all'
  /** The servers that drains may be at: those that are wanted, or held if that is everything. */
  readonly refs: readonly MemberRef[]
  /** The process that serves, and what it has. */
  readonly current: Process
  readonly serves: ProcessSight
}

/** A process beside the current one that was just read. */
export interface ReadProcess {
  readonly process: Process
  readonly sight: ProcessSight
  /** False for a worker started by a reload that does not serve the socket yet. */
  readonly old: boolean
}

/** A process that exists, or may exist, and could not be read. */
export interface UnreadProcess {
  readonly process: Process
  /** Whether it is known to exist; its members are not known. */
  readonly listed: boolean
  readonly note: string
}

/** The result of one look at the processes beside the current one. */
export interface OtherSight {
  readonly read: readonly ReadProcess[]
  readonly unread: readonly UnreadProcess[]
  /** Why the master could not be asked: there can be processes that are not known at all. */
  readonly blind: string | undefined
  /** Whether every process is known, and each was read: a process not among them has ended. */
  readonly complete: boolean
}

/** An old process, and the way to it. */
export interface OldProcess {
  readonly process: Process
  readonly channel: Channel
}

interface Other {
  readonly process: Process
  old: boolean
}

/** Names of ended processes that are still said to have ended, where nothing lists all of them. */
const ENDED_SAID = 200
/** The most processes that are known beside the current one. */
const MOST = 200
const OF_ANOTHER_MASTER =
  'not readable: another master runs HAProxy now, which does not know it; it ends with its last connection, or by hard-stop-after, see the option oldWorkers'
const NO_WAY =
  "not readable: a reload replaced it and it cannot be reached, give the master socket as 'master', or see the option oldWorkers"

/** The processes beside the one that serves the socket: old workers, and one that is about to serve it. */
export class OtherProcesses {
  readonly #others = new Map<string, Other>()
  /** The names of the processes that have ended. */
  #ended: readonly string[] = []
  readonly #unseen: Pick<Unseen, 'isGivenUp' | 'knowsAll' | 'ran'>

  constructor(unseen: Pick<Unseen, 'isGivenUp' | 'knowsAll' | 'ran'>) {
    this.#unseen = unseen
  }

  /** The names of ended processes. */
  get ended(): readonly string[] {
    return this.#ended
  }

  /** Whether no process is known beside the current one. */
  get none(): boolean {
    return this.#others.size === 0
  }

  /** The current process was replaced. */
  demote(process: Process): void {
    // Not when its successor was started: it reads its configuration before it tells this one to stop.
    process.replacedAt = this.#unseen.ran
    this.#others.set(process.scope, { process, old: true })
    // Without a master nothing ends them. Any of them keeps a new drain from idle, and a drain remembers its own.
    const [oldest] = this.#others.keys()
    if (this.#others.size > MOST && oldest !== undefined) this.#others.delete(oldest)
  }

  /** Whether that scope belongs to a replaced process that may still exist. */
  isOld(scope: string): boolean {
    return this.#others.get(scope)?.old === true
  }

  /** Removes and returns a worker that serves the socket now. */
  take(scope: string): Process | undefined {
    const other = this.#others.get(scope)
    if (other === undefined || other.old) return undefined
    this.#others.delete(scope)
    return other.process
  }

  /** The known processes, without a look at any of them. */
  unasked(note: string): OtherSight {
    const unread = this.#alive().map((process) => ({ process, listed: true, note }))
    return { read: [], unread, blind: undefined, complete: false }
  }

  /**
   * Without a master, nothing leads to a process that was replaced: it is unread until the option oldWorkers gives it up.
   */
  unreachable(): OtherSight {
    for (const process of this.#alive()) if (this.#unseen.isGivenUp(process)) this.#end(process)
    const unread = this.#alive().map((process) => ({ process, listed: false, note: NO_WAY }))
    const complete = unread.length === 0 && this.#unseen.knowsAll
    return { read: [], unread, blind: undefined, complete }
  }

  /** Reads all that the master lists. */
  async read(question: Question, master: MasterSocket, ctx: CallContext): Promise<OtherSight> {
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
    const listed = [...workers.current, ...workers.old]
    if (listed.includes(current.pid)) current.master = workers.master
    const pids = listed.filter((pid) => pid !== current.pid)
    const orphans = this.#endUnlisted(pids, workers.master)
    const looks = await Promise.all(
      pids.map((pid) => this.#readWorker(pid, workers, question, master, ctx)),
    )
    const unread = [
      ...looks.flatMap((look) => (look !== undefined && 'note' in look ? [look] : [])),
      ...orphans.map((process) => ({ process, listed: false, note: OF_ANOTHER_MASTER })),
    ]
    return {
      read: looks.flatMap((look) => (look !== undefined && 'sight' in look ? [look] : [])),
      unread,
      blind: undefined,
      complete: unread.length === 0,
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
  async #readWorker(
    pid: number,
    workers: Workers,
    question: Question,
    master: MasterSocket,
    ctx: CallContext,
  ): Promise<ReadProcess | UnreadProcess | undefined> {
    const old = workers.old.includes(pid)
    let process = this.#alive().find((candidate) => candidate.pid === pid)
    try {
      if (process?.incarnation === undefined) {
        const { info } = await master.to(pid, undefined).run([], ctx)
        // Known only by its pid until now.
        if (process !== undefined) this.#end(process)
        process = toProcess(info.pid, info)
      }
      process.master = workers.master
      this.#others.set(process.scope, { process, old })
      if (old) process.replacedAt ??= this.#unseen.ran
      const channel = toWorker(master, process)
      const sight = await process.view.look(question.wanted, channel, ctx)
      if (old) await noteOld(process, sight, question, channel, ctx)
      return { process, sight, old }
    } catch (error) {
      if (error instanceof WorkerGone) {
        if (process !== undefined) this.#end(process)
        return undefined
      }
      const note = `not readable: ${words(error, ctx)}`
      process ??= toProcess(pid)
      this.#others.set(process.scope, { process, old })
      return { process, listed: true, note }
    }
  }

  #end(process: Process): void {
    process.stay?.close()
    this.#others.delete(process.scope)
    this.#ended = [...this.#ended, process.scope].slice(-ENDED_SAID)
  }

  #alive(): Process[] {
    return [...this.#others.values()].map(({ process }) => process)
  }
}

/** What a look at an old process tells beside its counts. */
async function noteOld(
  process: Process,
  sight: ProcessSight,
  { refs, serves }: Question,
  channel: Channel,
  ctx: CallContext,
): Promise<void> {
  const { view, door, lines, strays } = process
  const sights = refs.flatMap((ref) => sight.members.get(keyOf(ref)) ?? [])
  // A server that is not there can be there by another name.
  const isGone = sights.length < refs.length
  const isAtZero = sights.some(({ own, row }) => own !== 'maint' && row.active + row.queued === 0)
  await door.note(sight, isGone || isAtZero, channel, ctx)
  await lines.note(sights, true, channel, ctx)
  await strays.note(refs, { sight, view, serves, isOpen: !door.closed }, channel, ctx)
  letGo(process, sight)
}

/**
 * Closes the connection that keeps an old worker alive, once its zero was reported and no client is left in it. Over
 * TCP the connection can be one of its own clients (a frontend before the stats socket).
 */
function letGo(process: Process, sight: ProcessSight): void {
  const { stay, isQuiet, door } = process
  const rows = [...sight.members.values()].map(({ row }) => row)
  process.isQuiet = rows.every(({ active, queued }) => active + queued === 0)
  const ours = stay?.unix === true ? 0 : 1
  // As for the door, what was accepted in the moment in which it was told to stop is counted by the next look.
  const isLast = door.stopping && sight.info.connections <= ours
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
