import type { CallContext } from '../../../provider/contract.js'
import { SHOW_STREAMS } from '../codec/commands.js'
import { incarnationOf, parseInfo, type ProcessInfo } from '../codec/replies.js'
import { countTunnels } from '../codec/streams.js'
import { ProcessView } from '../read/read.js'
import type { ShownProcess } from '../read/shown.js'
import { OffRowWork } from '../read/off-row.js'
import { StreamLines } from '../read/stream-lines.js'
import type { Channel } from './channel.js'
import type { RuntimeSocket, Within } from './socket.js'
import type { Socket } from 'node:net'

/** A HAProxy process that holds work, or may. */
export interface Process {
  /** The name of its scope: stable, and never used for another process, even if pids repeat (containers). */
  readonly scope: string
  readonly pid: number
  /** The process id of the master that listed it; undefined until one has. */
  master: number | undefined
  /** Its incarnation; undefined until it was read once. */
  incarnation: string | undefined
  readonly view: ProcessView
  /** A connection that keeps it alive until its last request was seen to end. */
  stay: Stay | undefined
  /** Whether its last look showed no work of any member that it was for. */
  isQuiet: boolean
  /** When it was seen to be replaced, by the time for which HAProxy ran; undefined while it serves. */
  replacedAt: number | undefined
  /** Whether clients can still come through it once it was replaced. */
  readonly door: Door
  /** What the lines of its streams tell: requests that are in no count, and ages. */
  readonly lines: StreamLines
  /** Work at its servers' addresses that is not in their rows. */
  readonly offRow: OffRowWork
}

/** @param info - undefined for an old worker that the master lists and that was not read yet */
export function toProcess(pid: number, info?: ProcessInfo): Process {
  return {
    scope: info === undefined ? `process ${pid}` : scopeOf(info),
    pid,
    master: undefined,
    incarnation: info && incarnationOf(info),
    view: new ProcessView(),
    stay: undefined,
    isQuiet: false,
    replacedAt: undefined,
    door: new Door(),
    lines: new StreamLines(),
    offRow: new OffRowWork(),
  }
}

/** The scope of the process that said this. */
export function scopeOf({ pid, start }: ProcessInfo): string {
  return `process ${pid}@${start}`
}

/** The shortest time between two lists of streams, ms, and the part of the time that lists can take. */
const DOOR_LOOK = 500
const DOOR_SHARE = 20

/**
 * Whether a client can still send a request through an old process. The process takes no changes, so it keeps its
 * state, and a client with an answer in progress at the reload keeps its connection: its next request still goes to the
 * server. No client can come once only connections with a tunnel are left. It accepts no connections, so that stays so.
 */
export class Door {
  closed = false
  /** Whether it was seen to accept no more connections. */
  stopping = false
  /** How many connections could bring another request, as last counted. */
  left = 0
  #askedAt = -Infinity
  #cost = 0

  /**
   * Takes in a look.
   *
   * @param waits - whether a drain waits for the door: else what is left, such as WebSockets, has nothing to do with it
   */
  async note(
    { info }: ShownProcess,
    waits: boolean,
    channel: Channel,
    ctx: CallContext,
  ): Promise<void> {
    if (this.closed) return
    this.left = info.connections
    if (!info.stopping) return
    // The next look counts connections that were accepted at the moment of the stop.
    if (!this.stopping) {
      this.stopping = true
      return
    }
    this.closed = info.connections === 0
    const now = ctx.clock.now()
    const due = this.#askedAt + Math.max(DOOR_LOOK, this.#cost * DOOR_SHARE)
    if (this.closed || !waits || now < due) return
    this.#askedAt = now
    const { info: then, replies } = await channel.run([SHOW_STREAMS], ctx)
    this.#cost = ctx.clock.now() - now
    // Counted before the streams were listed: nothing is accepted any more, so the count can only be too high.
    this.left = Math.max(0, then.connections - countTunnels(replies[0] ?? ''))
    this.closed = this.left === 0
  }
}

/** How long HAProxy keeps the connection without a command: without looks for that long, the process can end. */
const IDLE = '300s'
/** The connection is used at least this often, so that it outlives pauses between two looks, ms. */
const REFRESH = 60_000
/** After a silence this long, a close can be HAProxy's own timeout and proves nothing, ms. */
const DOUBTFUL = 240_000

/**
 * A connection to the stats socket that stays with its process through a reload, and keeps an old worker alive until
 * its last request was seen to end: else it would be gone between two looks, and its work lost. What the worker does
 * is read over the master.
 */
export class Stay {
  /** `ended`: the process has gone. `lost`: the connection is over, which proves nothing about the process. */
  state: 'open' | 'ended' | 'lost' = 'open'
  /** Whether it leads to a unix socket: only then does its end mean that the process has gone. */
  readonly unix: boolean
  readonly #socket: Socket
  #usedAt = performance.now()

  private constructor(socket: Socket, unix: boolean) {
    this.unix = unix
    this.#socket = socket
    // A proxy in front of a TCP port (TLS, a tunnel) can close a connection too, while the process goes on.
    const end = (): void => this.#finish(unix ? 'ended' : 'lost')
    socket.on('end', end).on('error', end).on('close', end).unref()
    if (socket.readableEnded || socket.destroyed) end()
  }

  /** Opens one, and tells to which process it leads. */
  static async open(
    from: RuntimeSocket,
    ctx: Within,
  ): Promise<{ readonly stay: Stay; readonly info: ProcessInfo }> {
    // In prompt mode each reply ends with a prompt; some versions have one for each command, some one for the line.
    const isWhole = (text: string): boolean => /^Uptime_sec:/m.test(text) && text.endsWith('\n> ')
    const line = `prompt;set timeout cli ${IDLE};show info float`
    const { socket, text } = await from.keep(line, ctx, isWhole)
    const stay = new Stay(socket, from.unix)
    try {
      return { stay, info: parseInfo(text) }
    } catch (error) {
      stay.close()
      throw error
    }
  }

  /** Keeps HAProxy from closing it. */
  refresh(): void {
    if (performance.now() - this.#usedAt < REFRESH) return
    this.#usedAt = performance.now()
    this.#socket.write('show cli level\n')
  }

  close(): void {
    this.#finish('lost')
  }

  #finish(state: 'ended' | 'lost'): void {
    if (this.state !== 'open') return
    this.state = performance.now() - this.#usedAt > DOUBTFUL ? 'lost' : state
    this.#socket.destroy()
  }
}
