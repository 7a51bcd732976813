import { pause } from '../../../provider/clock.js'
import type { CallContext } from '../../../provider/contract.js'
import { isDrainableError } from '../../../provider/error.js'
import { type Channel, keptChannel, type MasterSocket, WorkerGone } from './channel.js'
import { parseInfo, parseProc, type ProcessInfo, type Workers } from '../codec/info.js'
import type { KeptConnection } from './kept-connection.js'
import { type Process, toProcess, unreadProcess } from './process.js'
import type { ProcessSight, Wanted } from '../read/read.js'

/** One process beside the current one, as just read. */
export interface ReadProcess {
  readonly process: Process
  readonly sight: ProcessSight
  /** False: a worker of after a reload that does not serve the socket yet. */
  readonly old: boolean
}

/** One that exists, or may, and could not be read. */
export interface UnreadProcess {
  readonly process: Process
  /** The master says that it exists; else it is only not known to have ended. */
  readonly listed: boolean
  readonly note: string
}

/** What one look saw of the processes beside the current one. */
export interface OtherSight {
  readonly read: readonly ReadProcess[]
  readonly unread: readonly UnreadProcess[]
  /** The master could not be asked: there may be processes that are not known at all. */
  readonly blind: string | undefined
  /** The master listed every process, and each of them was read: what is not among them has ended. */
  readonly complete: boolean
}

interface Other {
  readonly process: Process
  old: boolean
}

/** The processes beside the one that serves the socket: old workers, and one that is about to serve it. */
export class OtherProcesses {
  readonly #others = new Map<string, Other>()
  readonly #isSettled: (scope: string) => boolean

  /** @param isSettled - whether the last reading of that scope that was given out held no work */
  constructor(isSettled: (scope: string) => boolean) {
    this.#isSettled = isSettled
  }

  /** The current process was replaced. */
  demote(process: Process): void {
    this.#others.set(process.scope, { process, old: true })
  }

  /** Whether that scope belongs to a process that was replaced and may still be there. */
  isOld(scope: string): boolean {
    return this.#others.get(scope)?.old === true
  }

  /** Hands over a worker that serves the socket now. */
  take(scope: string): Process | undefined {
    const other = this.#others.get(scope)
    if (other === undefined || other.old) return undefined
    this.#others.delete(scope)
    return other.process
  }

  /** Whether a scope that was listed once is positively gone. */
  hasEnded(scope: string): boolean {
    return this.#others.get(scope)?.process.ended === true
  }

  /** Drops what nobody asks for any more. */
  forget(isWanted: (scope: string) => boolean): void {
    for (const [scope, { process }] of this.#others) {
      const blind = process.kept?.state !== 'open'
      if ((process.ended || blind) && !isWanted(scope)) this.#others.delete(scope)
    }
  }

  async read(
    wanted: Wanted | 'all',
    current: Process,
    master: MasterSocket | undefined,
    ctx: CallContext,
  ): Promise<OtherSight> {
    return master === undefined
      ? this.#readKept(wanted, ctx)
      : this.#readListed(wanted, current, master, ctx)
  }

  /** Ways to those that can be spoken to. */
  channels(master: MasterSocket | undefined): Channel[] {
    const channels: Channel[] = []
    for (const { process } of this.#others.values()) {
      if (process.ended) continue
      if (master !== undefined) channels.push(toWorker(master, process))
      else if (process.kept?.state === 'open') channels.push(keptChannel(process.kept))
    }
    return channels
  }

  close(): void {
    for (const { process } of this.#others.values()) process.kept?.close()
  }

  async #readListed(
    wanted: Wanted | 'all',
    current: Process,
    master: MasterSocket,
    ctx: CallContext,
  ): Promise<OtherSight> {
    let workers: Workers
    try {
      workers = await askWorkers(master, ctx)
    } catch (error) {
      const note = `not readable: the master could not be asked (${words(error, ctx)})`
      const unread = this.#alive().map((process) => ({ process, listed: false, note }))
      return { read: [], unread, blind: note, complete: false }
    }
    const pids = [...workers.current, ...workers.old].filter((pid) => pid !== current.pid)
    for (const process of this.#alive()) if (!pids.includes(process.pid)) process.ended = true
    const looks = await Promise.all(
      pids.map((pid) => this.#readWorker(pid, workers.old.includes(pid), wanted, master, ctx)),
    )
    const unread = looks.flatMap((look) => ('note' in look ? [look] : []))
    return {
      read: looks.flatMap((look) => ('sight' in look ? [look] : [])),
      unread,
      blind: undefined,
      complete: unread.length === 0,
    }
  }

  async #readWorker(
    pid: number,
    old: boolean,
    wanted: Wanted | 'all',
    master: MasterSocket,
    ctx: CallContext,
  ): Promise<ReadProcess | UnreadProcess | { readonly gone: true }> {
    let process = this.#alive().find((candidate) => candidate.pid === pid)
    try {
      if (process === undefined) {
        const info = await whoIs(master, pid, ctx.signal)
        process = toProcess(info, ctx.clock.now())
      }
      this.#others.set(process.scope, { process, old })
      const { kept } = process
      if (kept?.state === 'open') return await this.#readOld(process, wanted, ctx)
      const sight = await look(process, toWorker(master, process), wanted, ctx)
      return { process, sight, old }
    } catch (error) {
      if (error instanceof WorkerGone) {
        if (process !== undefined) process.ended = true
        return { gone: true }
      }
      const note = `not readable: ${words(error, ctx)}`
      process ??= unreadProcess(pid, ctx.clock.now())
      this.#others.set(process.scope, { process, old })
      return { process, listed: true, note }
    }
  }

  async #readKept(wanted: Wanted | 'all', ctx: CallContext): Promise<OtherSight> {
    const looks = await Promise.all(
      this.#alive().map((process) => this.#readOld(process, wanted, ctx)),
    )
    return {
      read: looks.flatMap((look) => ('sight' in look ? [look] : [])),
      unread: looks.flatMap((look) => ('note' in look ? [look] : [])),
      blind: undefined,
      complete: false,
    }
  }

  async #readOld(
    process: Process,
    wanted: Wanted | 'all',
    ctx: CallContext,
  ): Promise<ReadProcess | UnreadProcess | { readonly gone: true }> {
    const { kept } = process
    if (kept?.state !== 'open') {
      if (kept?.state === 'ended') {
        process.ended = true
        return { gone: true }
      }
      return {
        process,
        listed: false,
        note: "not readable: a reload replaced it and there is no way to it, give the master socket as 'master', or see the option oldWorkers",
      }
    }
    try {
      const settled = this.#isSettled(process.scope)
      const sight = await look(process, keptChannel(kept), wanted, ctx)
      // The connection keeps the process alive: it is given up once nobody else is connected there,
      // and its zero was reported, so that its end is no loss.
      const info = await whoAnswers(kept, ctx.signal)
      if (settled && info.stopping && info.connections === 0 && isEmpty(sight)) {
        process.ended = true
        kept.close()
        return { gone: true }
      }
      return { process, sight, old: this.isOld(process.scope) }
    } catch (error) {
      if (error instanceof WorkerGone) {
        process.ended = true
        return { gone: true }
      }
      return { process, listed: false, note: `not readable: ${words(error, ctx)}` }
    }
  }

  #alive(): Process[] {
    return [...this.#others.values()].map(({ process }) => process).filter(({ ended }) => !ended)
  }
}

/** A reload makes the master execute itself anew: for a moment nobody listens on its socket (2.6). */
const MASTER_AWAY = 500
const MASTER_LOOK = 20

async function askWorkers(master: MasterSocket, ctx: CallContext): Promise<Workers> {
  const until = ctx.clock.now() + MASTER_AWAY
  for (;;) {
    try {
      return parseProc(await master.ask('show proc', ctx.signal))
    } catch (error) {
      const away = isDrainableError(error, 'UNREACHABLE', 'CONNECTION_LOST')
      if (!away || ctx.clock.now() >= until) throw error
      await pause(ctx.clock, MASTER_LOOK, ctx.signal)
    }
  }
}

/** Which process is at the other end. */
export async function whoAnswers(kept: KeptConnection, signal: AbortSignal): Promise<ProcessInfo> {
  return parseInfo(await kept.run('show info', signal))
}

async function whoIs(master: MasterSocket, pid: number, signal: AbortSignal): Promise<ProcessInfo> {
  let info: ProcessInfo | undefined
  await master
    .to(
      pid,
      () => undefined,
      (seen) => (info = seen),
    )
    .run([], signal)
  if (info === undefined) throw new WorkerGone()
  return info
}

function toWorker(master: MasterSocket, process: Process): Channel {
  return master.to(
    process.pid,
    () => process.incarnation,
    (info) => (process.incarnation ??= toProcess(info, 0).incarnation),
  )
}

async function look(
  process: Process,
  channel: Channel,
  wanted: Wanted | 'all',
  ctx: CallContext,
): Promise<ProcessSight> {
  const sight =
    wanted === 'all'
      ? await process.view.readAll(channel, ctx.clock, ctx.signal)
      : await process.view.read(wanted, channel, ctx.clock, ctx.signal)
  process.seenAt = ctx.clock.now()
  return sight
}

function isEmpty(sight: ProcessSight): boolean {
  return [...sight.members.values()].every(({ row }) => row.active + row.queued === 0)
}

/** Why a process could not be read, for a person; an abort and a bug go on as they are. */
function words(error: unknown, ctx: CallContext): string {
  if (ctx.signal.aborted) throw ctx.signal.reason
  if (!isDrainableError(error)) throw error
  return error.message
}
