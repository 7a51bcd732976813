import type { Socket } from 'node:net'
import { DrainableError, type ErrorCode } from '../../../provider/error.js'
import { parseInfo, type ProcessInfo } from '../codec/info.js'
import type { RuntimeSocket, Within } from './socket.js'

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
  }

  /** Opens one, and tells to which process it leads. */
  static async open(
    from: RuntimeSocket,
    replyTimeout: number,
    ctx: Within,
  ): Promise<{ readonly stay: Stay; readonly info: ProcessInfo }> {
    const socket = await from.open(ctx)
    try {
      const text = await greeted(socket, from.label, replyTimeout, ctx)
      const info = parseInfo(text)
      return { stay: new Stay(socket, from.unix), info }
    } catch (error) {
      socket.destroy()
      throw error
    }
  }

  /** Keeps HAProxy from closing it. */
  refresh(): void {
    if (this.state !== 'open' || performance.now() - this.#usedAt < REFRESH) return
    this.#usedAt = performance.now()
    this.#socket.write('show cli level\n')
  }

  /** Whether the process answers over it within that time, ms: a frozen one does not. */
  answers(limit: number, { clock, signal }: Within): Promise<boolean> {
    if (this.state !== 'open' || signal.aborted) return Promise.resolve(false)
    return new Promise((resolve) => {
      const socket = this.#socket
      const end = (answered: boolean): void => {
        cancel()
        signal.removeEventListener('abort', onOver)
        socket.off('data', onData).off('close', onOver).unref()
        resolve(answered)
      }
      const onData = (): void => end(true)
      const onOver = (): void => end(false)
      const cancel = clock.setTimeout(onOver, limit)
      signal.addEventListener('abort', onOver, { once: true })
      socket.on('data', onData).on('close', onOver).ref()
      socket.write('show cli level\n')
    })
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

/** Sends the first commands, and waits for their replies. */
function greeted(
  socket: Socket,
  label: string,
  limit: number,
  { clock, signal }: Within,
): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = ''
    const settle = (): void => {
      cancel()
      signal.removeEventListener('abort', onAbort)
      socket.off('data', onData).off('close', onClose).resume()
    }
    const fail = (error: unknown): void => {
      settle()
      reject(error)
    }
    const onAbort = (): void => fail(signal.reason)
    const broken = (code: ErrorCode, words: string): void =>
      fail(new DrainableError(code, `${label}: ${words}`, { provider: 'haproxy-runtime' }))
    const onClose = (): void => broken('CONNECTION_LOST', 'the connection was closed')
    const onData = (chunk: string): void => {
      text += chunk
      // In prompt mode each reply ends with a prompt; some versions have one for each command, some one for the line.
      if (!/^Uptime_sec:/m.test(text) || !text.endsWith('\n> ')) return
      settle()
      resolve(text)
    }
    const cancel = clock.setTimeout(
      () => broken('CALL_TIMEOUT', `no answer within ${limit} ms`),
      limit,
    )
    socket.setEncoding('utf8').on('close', onClose).on('data', onData)
    signal.addEventListener('abort', onAbort, { once: true })
    if (signal.aborted) onAbort()
    else socket.write(`prompt;set timeout cli ${IDLE};show info float\n`)
  })
}
