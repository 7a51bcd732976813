import type { Socket } from 'node:net'
import { DrainableError } from '../../../provider/error.js'
import { MAX_REPLY, PromptSplitter } from '../codec/replies.js'
import type { RuntimeSocket, Within } from './socket.js'

/** How long HAProxy keeps the connection without a command: without looks for that long, the old process can end. */
const IDLE = '300s'
/** The connection is used at least this often, so that it outlives pauses between two looks. */
const REFRESH = 60_000
/** After a silence this long, a close can be HAProxy's own timeout and proves nothing. */
const DOUBTFUL = 240_000

/**
 * A CLI connection that stays with one process: after a reload it still answers for the old one, and keeps that
 * process alive until it is closed. Without a master, nothing else reaches an old process.
 */
export class KeptConnection {
  /** `ended`: the process has gone. `lost`: the connection broke, which proves nothing about the process. */
  state: 'open' | 'ended' | 'lost' = 'open'
  readonly #socket: Socket
  readonly #label: string
  readonly #replyTimeout: number
  readonly #splitter = new PromptSplitter()
  /** When it was last searched among the connections of its process, ms of the call's clock. */
  soughtAt = -Infinity
  /** One entry for each command sent, oldest first; the reply to a command that was given up still has to come. */
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
    // A proxy in front of a TCP port (TLS, a tunnel) can close a connection too, while the process goes on.
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
   * Sends one command and returns its reply.
   *
   * @throws `CALL_TIMEOUT` if no reply comes (a frozen process), `CONNECTION_LOST` if the connection is gone
   */
  async run(command: string, ctx: Within): Promise<string> {
    const [reply = ''] = await this.runAll([command], ctx)
    return reply
  }

  /**
   * Sends commands, one a line, and returns their replies in order. The lines go out together: all versions answer
   * them one by one (seen on 2.6 to 3.4).
   *
   * @param limit - the time for all replies, ms
   * @throws as {@link run}
   */
  runAll(
    commands: readonly string[],
    { clock, signal }: Within,
    limit = this.#replyTimeout,
  ): Promise<readonly string[]> {
    return new Promise((resolve, reject) => {
      if (signal.aborted) {
        reject(signal.reason)
        return
      }
      if (this.state !== 'open') {
        reject(this.#gone())
        return
      }
      let done = false
      const settle = (): void => {
        done = true
        cancel()
        signal.removeEventListener('abort', onAbort)
        this.#socket.unref()
      }
      const onAbort = (): void => {
        settle()
        reject(signal.reason)
      }
      const cancel = clock.setTimeout(() => {
        settle()
        reject(
          new DrainableError(
            'CALL_TIMEOUT',
            `${this.#label}: an earlier process of this socket did not answer within ${limit} ms`,
            { provider: 'haproxy-runtime' },
          ),
        )
      }, limit)
      // A clock can end the call while it sets the limit.
      if (isAborted(signal)) {
        onAbort()
        return
      }
      const replies: string[] = []
      const take = (reply: string | undefined): void => {
        if (done) return
        if (reply !== undefined) replies.push(reply)
        if (reply !== undefined && replies.length < commands.length) return
        settle()
        if (reply === undefined) reject(this.#gone())
        else resolve(replies)
      }
      this.#owed.push(...commands.map(() => take))
      signal.addEventListener('abort', onAbort, { once: true })
      this.#socket.ref()
      this.#usedAt = performance.now()
      this.#socket.write(`${commands.join('\n')}\n`)
    })
  }

  /** Whether no reply is awaited: also none to a command that was given up. */
  get isQuiet(): boolean {
    return this.#owed.length === 0
  }

  /** Its local port, over TCP: a frontend of the same HAProxy in front of the socket counts it among its clients. */
  get localPort(): number | undefined {
    return this.#socket.localPort
  }

  /** Whether it must be used soon, so that HAProxy does not close it. */
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

/** A function, because the compiler would assume that the value has not changed. */
function isAborted(signal: AbortSignal): boolean {
  return signal.aborted
}
