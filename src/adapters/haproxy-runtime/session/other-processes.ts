import type { CallContext, MemberRef } from '../../../provider/contract.js'
import { isDrainableError } from '../../../provider/error.js'
import type { MasterSocket } from './master.js'
import { type Channel, keptChannel, WorkerGone } from './channel.js'
import { parseProc, type Workers } from '../codec/info.js'
import type { LocalProcesses } from './local-processes.js'
import { isLeftToUs } from './door.js'
import { checkOld, isEmpty, look, type Question } from './look-beside.js'
import { isSettled, type Process, toProcess, unreadProcess } from './process.js'
import type { ProcessSight } from '../read/read.js'
import type { Unseen } from './unseen.js'

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
  /** Whether the master listed every process, and each was read: a process not among them has ended. */
  readonly complete: boolean
}

/** The way to an old process, and the names that servers had there if not their own. */
export interface OldChannel {
  readonly channel: Channel
  readonly namesOf: (ref: MemberRef) => readonly MemberRef[]
}

interface Other {
  readonly process: Process
  old: boolean
}

/** Names of ended processes that are still said to have ended, where nothing lists all of them. */
const ENDED_SAID = 200
/** How long a process that can't be reached is still reported after its last answer, ms. */
const NO_WAY_KEPT = 60_000
const OF_ANOTHER_MASTER =
  'not readable: another master runs HAProxy now, which does not know it; it ends with its last connection, or by hard-stop-after, see the option oldWorkers'
const NO_WAY =
  "not readable: a reload replaced it and it cannot be reached, give the master socket as 'master', or see the option oldWorkers"

/** The processes beside the one that serves the socket: old workers, and one that is about to serve it. */
export class OtherProcesses {
  readonly #others = new Map<string, Other>()
  /** The names of the processes that have ended. */
  #ended: readonly string[] = []
  readonly #unseen: Pick<Unseen, 'isGivenUp' | 'knowsAll'>
  readonly #local: LocalProcesses
  /**
   * Whether a process is no longer reported that was never seen to end: then an unlisted process need not have ended.
   */
  #hasForgotten = false
  /** The process id of the master that answered last. */
  #master: number | undefined

  constructor(unseen: Pick<Unseen, 'isGivenUp' | 'knowsAll'>, local: LocalProcesses) {
    this.#unseen = unseen
    this.#local = local
  }

  /** The names of ended processes. */
  get ended(): readonly string[] {
    return this.#ended
  }

  /** Whether no process is known beside the current one. */
  get none(): boolean {
    return this.#others.size === 0
  }

  /** Process ids of those that are known. */
  get pids(): number[] {
    return this.#alive().map(({ pid }) => pid)
  }

  hasStrays(ref: MemberRef): boolean {
    return this.#alive().some(({ strays }) => strays.of(ref) > 0)
  }

  /** The current process was replaced. */
  demote(process: Process, now: number): void {
    // Not when its successor was started: it reads its configuration before it tells this one to stop.
    process.replacedAt = now
    this.#others.set(process.scope, { process, old: true })
  }

  /**
   * Called when the process that serves stood still for this long, and the others with it: they end that much later.
   */
  delay(stood: number): void {
    if (stood === 0) return
    for (const { process } of this.#others.values()) {
      if (process.replacedAt !== undefined) process.replacedAt += stood
    }
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

  async read(
    question: Question,
    master: MasterSocket | undefined,
    ctx: CallContext,
  ): Promise<OtherSight> {
    return master === undefined
      ? this.#readKept(question, ctx)
      : this.#readListed(question, master, ctx)
  }

  /** Channels to those that can be reached. */
  channels(master: MasterSocket | undefined): OldChannel[] {
    const channels: OldChannel[] = []
    for (const process of this.#alive()) {
      const namesOf = (ref: MemberRef): readonly MemberRef[] => process.renamed.namesOf(ref)
      if (master !== undefined) channels.push({ channel: toWorker(master, process), namesOf })
      else if (process.kept?.state === 'open')
        channels.push({ channel: keptChannel(process.kept), namesOf })
    }
    return channels
  }

  close(): void {
    for (const { process } of this.#others.values()) process.kept?.close()
  }

  async #readListed(
    question: Question,
    master: MasterSocket,
    ctx: CallContext,
  ): Promise<OtherSight> {
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
    await this.#meetMaster(workers, current, ctx)
    const orphans = this.#endUnlisted(pids, workers.master)
    const looks = await Promise.all([
      ...pids.map((pid) => this.#readWorker(pid, workers, question, master, ctx)),
      ...orphans.map((process) => this.#readOrphan(process, OF_ANOTHER_MASTER, question, ctx)),
    ])
    const unread = looks.flatMap((look) => ('note' in look ? [look] : []))
    return {
      read: looks.flatMap((look) => ('sight' in look ? [look] : [])),
      unread,
      blind: undefined,
      complete: unread.length === 0 && !this.#hasForgotten,
    }
  }

  /** Handles a new master: it may have taken over from another one whose workers are still busy. */
  async #meetMaster({ master }: Workers, current: Process, { clock }: CallContext): Promise<void> {
    if (master === this.#master) return
    this.#master = master
    const known = [current, ...this.#alive()].map(({ pid }) => pid)
    for (const pid of await this.#local.unlisted(master, current)) {
      if (known.includes(pid)) continue
      const process = unreadProcess(pid, clock.now())
      process.master = 0 // none that lists it
      process.replacedAt = clock.now()
      this.#others.set(process.scope, { process, old: true })
    }
  }

  /**
   * Ends processes that their own master does not list.
   *
   * @returns the processes that another master listed: a new master (`haproxy -W -sf`, or a start while the previous
   *   one still finishes its work) knows only its own workers
   */
  #endUnlisted(pids: readonly number[], master: number): Process[] {
    const unlisted = this.#alive().filter(({ pid }) => !pids.includes(pid))
    const isOrphan = (process: Process): boolean =>
      process.master !== undefined && process.master !== master
    for (const process of unlisted) if (!isOrphan(process)) this.#end(process)
    return unlisted.filter(isOrphan)
  }

  /**
   * Reads a process that no master knows over its kept connection. Without one, the operating system shows whether it
   * still exists.
   */
  async #readOrphan(
    process: Process,
    note: string,
    question: Question,
    ctx: CallContext,
  ): Promise<ReadProcess | UnreadProcess | { readonly gone: true }> {
    const seen = await this.#readOld(process, question, ctx)
    if (seen === undefined) return this.#gone(process)
    if (!('note' in seen) || isOpen(process)) return seen
    const fate = await this.#local.fate(process, question.current)
    if (fate === 'ended') return this.#gone(process)
    const now = ctx.clock.now()
    if (fate === 'there') process.seenAt = now
    else if (now - process.seenAt > NO_WAY_KEPT) {
      this.#others.delete(process.scope)
      this.#hasForgotten = true
    }
    // Where it is known to be there it is so for every member, until it is given up.
    const listed = fate === 'there' && !this.#unseen.isGivenUp(process)
    return { process, listed, note }
  }

  async #readWorker(
    pid: number,
    workers: Workers,
    question: Question,
    master: MasterSocket,
    ctx: CallContext,
  ): Promise<ReadProcess | UnreadProcess | { readonly gone: true }> {
    const old = workers.old.includes(pid)
    let process = this.#alive().find((candidate) => candidate.pid === pid)
    try {
      if (process?.incarnation === undefined) {
        const { info } = await master.to(pid, undefined).run([], ctx)
        // Known only by its pid until now.
        if (process !== undefined) this.#end(process)
        process = toProcess(info, ctx.clock.now())
      }
      process.master = workers.master
      this.#others.set(process.scope, { process, old })
      if (old) process.replacedAt ??= ctx.clock.now()
      if (process.kept?.state === 'open') {
        const seen = await this.#readOld(process, question, ctx)
        // Where the connection broke, the master leads to it all the same.
        const isBroken = seen !== undefined && 'note' in seen && !isOpen(process)
        if (seen !== undefined && !isBroken) return seen
      }
      const channel = toWorker(master, process)
      const sight = await look(process, channel, question, old, ctx)
      if (old) await checkOld(process, sight, question, channel, ctx)
      return { process, sight, old }
    } catch (error) {
      if (error instanceof WorkerGone) return this.#gone(process)
      const note = `not readable: ${words(error, ctx)}`
      process ??= unreadProcess(pid, ctx.clock.now())
      this.#others.set(process.scope, { process, old })
      return { process, listed: true, note }
    }
  }

  async #readKept(question: Question, ctx: CallContext): Promise<OtherSight> {
    for (const process of this.#alive())
      if (!isOpen(process) && this.#unseen.isGivenUp(process)) this.#end(process)
    const looks = await Promise.all(
      this.#alive().map((process) => this.#readOrphan(process, NO_WAY, question, ctx)),
    )
    const unread = looks.flatMap((look) => ('note' in look ? [look] : []))
    return {
      read: looks.flatMap((look) => ('sight' in look ? [look] : [])),
      unread,
      blind: undefined,
      complete: unread.length === 0 && !this.#hasForgotten && this.#unseen.knowsAll,
    }
  }

  /**
   * Reads a process over its kept connection.
   *
   * @returns undefined if the connection has ended, as it does with its process. A master knows better, because a
   *   proxy in front of the socket (TLS, a tunnel) can close a connection too
   */
  async #readOld(
    process: Process,
    question: Question,
    ctx: CallContext,
  ): Promise<ReadProcess | UnreadProcess | { readonly gone: true } | undefined> {
    const { kept } = process
    if (kept?.state !== 'open')
      return kept?.state === 'ended' ? undefined : { process, listed: false, note: NO_WAY }
    try {
      const settled = isSettled(process, question.watched, ctx.clock.now())
      const channel = keptChannel(kept)
      const sight = await look(process, channel, question, this.isOld(process.scope), ctx)
      const { stopping, connections } = sight.info
      // The connection keeps the process alive: it is given up once no other client is connected there,
      // and its zero was reported, so that its end is no loss.
      // As for the door, what was accepted in the moment in which it was told to stop is counted by the next look.
      const idle = settled && stopping && process.door.stopping && isEmpty(sight)
      if (idle && (await isLeftToUs(kept, connections, channel, ctx))) {
        kept.close()
        return this.#gone(process)
      }
      await checkOld(process, sight, question, channel, ctx)
      return { process, sight, old: this.isOld(process.scope) }
    } catch (error) {
      if (error instanceof WorkerGone) return undefined
      return { process, listed: false, note: `not readable: ${words(error, ctx)}` }
    }
  }

  #gone(process: Process | undefined): { readonly gone: true } {
    if (process !== undefined) this.#end(process)
    return { gone: true }
  }

  #end(process: Process): void {
    process.ended = true
    this.#others.delete(process.scope)
    this.#ended = [...this.#ended, process.scope].slice(-ENDED_SAID)
  }

  #alive(): Process[] {
    return [...this.#others.values()].map(({ process }) => process).filter(({ ended }) => !ended)
  }
}

/** A function, because the connection can break during a look. */
function isOpen({ kept }: Process): boolean {
  return kept?.state === 'open'
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
