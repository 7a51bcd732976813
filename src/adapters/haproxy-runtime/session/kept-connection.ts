import type { Socket } from 'node:net'
import { DrainableError } from '../../../provider/error.js'
import { MAX_REPLY, PromptSplitter } from '../codec/replies.js'
import type { RuntimeSocket, Within } from './socket.js'

/** How long HAProxy keeps the connection without a command: after that no look is made any more, and an old process may go. */
const IDLE = '300s'
/** A use at the latest after that long, so that the connection outlives pauses between two looks. */
const REFRESH = 60_000
/** An end after a silence of that long may be HAProxy's own timeout: it proves nothing. */
const DOUBTFUL = 240_000

/**
 * A CLI connection that stays with one process: after a reload it goes on answering for the old one,
 * and keeps that process alive until it is closed. The only way to an old process without a master.
 */
export class KeptConnection {
  /** `ended`: the process has gone. `lost`: the connection broke, which says nothing of the process. */
  state: 'open' | 'ended' | 'lost' = 'open'
  readonly #socket: Socket
  readonly #label: string
  readonly #replyTimeout: number
  readonly #splitter = new PromptSplitter()
  /** One for each command sent, oldest first; a command that was given up still owes its reply. */
  /** When it was last sought among the connections of its process, ms of the call's clock. */
  soughtAt = -Infinity
  readonly #owed: ((reply: string | undefined) => void)[] = []
  #usedAt = performance.now()

  private constructor(socket: Socket, from: RuntimeSocket, replyTimeout: number) {
    this.#socket = socket
    this.#label = from.label
    this.#replyTimeout = replyTimeout
    socket.setEncoding('utf8')
    socket.on('data', (chunk: string) => {
      for (const reply of this.#splitter.push(chunk)) this.#owed.shift()?.(reply)
      if (this.#splitter.size > MAX_REPLY) this.#finish('lost')
    })
    // What stands before a TCP port (TLS, a tunnel) ends a connection too, and its process serves on.
    const over = from.unix ? 'ended' : 'lost'
    socket.on('end', () => this.#finish(over))
    socket.on('error', () => this.#finish(over))
    socket.on('close', () => this.#finish('lost'))
    socket.unref()
  }

  static async open(
    from: RuntimeSocket,
    replyTimeout: number,
    ctx: Within,
  ): Promise<KeptConnection> {
    const kept = new KeptConnection(await from.open(ctx), from, replyTimeout)
    try {
      await kept.run('prompt', ctx)
      await kept.run(`set timeout cli ${IDLE}`, ctx)
      return kept
    } catch (error) {
      kept.close()
      throw error
    }
  }

  /**
   * One command, one reply.
   *
   * @throws `CALL_TIMEOUT` where nothing comes (a frozen process), `CONNECTION_LOST` where the connection is gone
   */
  run(command: string, { clock, signal }: Within): Promise<string> {
    return new Promise((resolve, reject) => {
      if (signal.aborted) {
        reject(signal.reason)
        return
      }
      if (this.state !== 'open') {
        reject(this.#gone())
        return
      }
      const settle = (): void => {
        cancel()
        signal.removeEventListener('abort', onAbort)
        waiter.done = true
        this.#socket.unref()
      }
      const waiter = { done: false }
      const onAbort = (): void => {
        settle()
        reject(signal.reason)
      }
      const cancel = clock.setTimeout(() => {
        settle()
        reject(
          new DrainableError(
            'CALL_TIMEOUT',
            `${this.#label}: an earlier process of this socket did not answer within ${this.#replyTimeout} ms`,
            { provider: 'haproxy-runtime' },
          ),
        )
      }, this.#replyTimeout)
      // A clock may end the call in the moment in which it is asked for the limit.
      if (isAborted(signal)) {
        onAbort()
        return
      }
      this.#owed.push((reply) => {
        if (waiter.done) return
        settle()
        if (reply === undefined) reject(this.#gone())
        else resolve(reply)
      })
      signal.addEventListener('abort', onAbort, { once: true })
      this.#socket.ref()
      this.#usedAt = performance.now()
      this.#socket.write(`${command}\n`)
    })
  }

  /** Where it comes from, over TCP: a frontend of HAProxy's own before the socket counts it among its clients. */
  get localPort(): number | undefined {
    return this.#socket.localPort
  }

  /** Whether it should be used soon, lest HAProxy closes it. */
  get stale(): boolean {
    return performance.now() - this.#usedAt > REFRESH
  }

  close(): void {
    this.#finish('lost')
    this.#socket.destroy()
  }

  #finish(state: 'ended' | 'lost'): void {
    if (this.state !== 'open') return
    this.state = performance.now() - this.#usedAt > DOUBTFUL ? 'lost' : state
    for (const waiter of this.#owed.splice(0)) waiter(undefined)
    this.#socket.destroy()
  }

  #gone(): DrainableError {
    return new DrainableError(
      'CONNECTION_LOST',
      `${this.#label}: the connection kept to an earlier process is gone`,
      { provider: 'haproxy-runtime' },
    )
  }
}

/** Asked anew, where the compiler would remember an earlier answer. */
function isAborted(signal: AbortSignal): boolean {
  return signal.aborted
}
