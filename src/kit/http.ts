import { isAscii } from 'node:buffer'
import type * as Undici from 'undici'
import type { Agent, Dispatcher } from 'undici'
import { abortable } from '../provider/abort.js'
import { pause, wallOf, type Clock } from '../provider/clock.js'
import { formatDuration } from '../provider/duration.js'
import type { Tls } from '../provider/option-schemas.js'
import { DrainableError, isDrainableError, type ErrorCode } from '../provider/error.js'
import { Connecting, connector, GivenUp } from './connect.js'
import { parseHttpUrl } from './options.js'
import { toTlsConnect, type TlsConnect } from './tls.js'
import {
  codeOf,
  inWords,
  isLasting,
  isOtherProtocol,
  neverSent,
  refusedOurs,
  wantsOurs,
  whyClosed,
  withoutReply,
} from './tls-words.js'
import { quote } from '../provider/quote.js'

/** Options of {@link HttpClient}. */
export interface HttpOptions {
  /** The name of the provider, for errors. */
  readonly provider: string
  /** The origin, such as `https://bigip:443`; user info is refused, and a path becomes a prefix of every path. */
  readonly url: string
  readonly tls?: Tls | undefined
  /** Unix socket to connect to instead of the URL's host. */
  readonly socketPath?: string | undefined
  /** The caller's dispatcher: it takes precedence, and the client never closes it. */
  readonly dispatcher?: Dispatcher | undefined
  /** The most sockets at once. Default 4. */
  readonly connections?: number
  /**
   * The time limit for a connect, including the TLS handshake, in milliseconds on the clock of the call. Default
   * 5,000.
   */
  readonly connectTimeout?: number
  /** The time limit for a whole call, including the connect, in milliseconds. Default 10,000. */
  readonly callTimeout?: number
  /** Largest reply, in bytes. Default 32 MiB. */
  readonly maxReply?: number
  /** Whether to send credentials over plain HTTP to hosts other than loopback. */
  readonly allowPlaintext?: boolean | undefined
}

/** One HTTP call. */
export interface HttpCall {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** The path and query, already encoded. */
  readonly path: string
  readonly headers?: Readonly<Record<string, string>>
  /** The body, sent as JSON; a text is sent unchanged. */
  readonly body?: unknown
  readonly signal: AbortSignal
  /** The clock for {@link HttpCall.timeout}. */
  readonly clock: Clock
  /**
   * Takes the body of an answer with status 200 in pieces instead of as a whole, because decoding a large body blocks
   * the event loop. Called for the next piece once its promise has resolved; the reply's text is then empty.
   */
  readonly take?: (text: string) => Promise<void> | void
  /** The time limit for this call in milliseconds, in place of {@link HttpOptions.callTimeout}. */
  readonly timeout?: number
  /** When its caller gives up for good: `until` of `CallContext` in `drainable/provider`. */
  readonly until?: number | undefined
  /**
   * Called at the time-out, instead of ending the call: the call keeps waiting for its answer until
   * {@link HttpCall.signal} fires. For something that the product may already have created and that only the answer
   * names.
   */
  readonly late?: (error: DrainableError) => void
}

/** One reply, of any status. */
export interface HttpReply {
  readonly status: number
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly text: string
  /** For how long the product wants no request, in milliseconds, as far as that is believed: of a `Retry-After`. */
  readonly retryAfter?: number
}

/** Loaded at the first call, so that an import of an adapter does not wait for it. */
let loaded: Promise<typeof Undici> | undefined
export const undici = (): Promise<typeof Undici> =>
  (loaded ??= import('undici').then(genuine, (cause: unknown) => {
    throw notLoaded(cause)
  }))

/**
 * Refuses Bun's own module of this name: its `request` ignores the dispatcher, and with it `tls`, `socketPath` and
 * every limit (Bun 1.4.5). Its agent is empty.
 */
export function genuine(found: typeof Undici): typeof Undici {
  const { destroy } = found.Agent.prototype as Partial<Agent>
  if (typeof destroy === 'function') return found
  throw new DrainableError(
    'UNSUPPORTED',
    'undici was replaced by a module that ignores TLS options and timeouts, as Bun does: run adapters that speak HTTP on Node.js or Deno (docs/questions.md, "Which runtimes does it run on?")',
  )
}

/**
 * The error if undici can't be loaded. It is CommonJS and requires modules of Node: a bundle of ES modules has no
 * `require` unless it is given one.
 */
function notLoaded(cause: unknown): DrainableError {
  const words = cause instanceof Error ? cause.message : String(cause)
  return new DrainableError(
    'UNSUPPORTED',
    `undici could not be loaded: ${words}; in a bundle of ES modules give it a require, or leave undici outside (docs/questions.md, "How do I bundle it?")`,
    { cause },
  )
}

/** The longest that a `Retry-After` is believed, in milliseconds. */
const LONGEST_PAUSE = 60_000
/** The longest that one call waits for such a pause, in milliseconds: it may keep others of its product waiting. */
const PATIENCE = 12_000
/** So long before its caller gives up a call is sent all the same: half of the time that an undo has, in milliseconds. */
const LAST_TRY = 15_000

/**
 * The HTTP client for one product: its own Agent (nothing is shared with the caller's global one), bounded sockets,
 * times and reply sizes, no redirects, no compression, TLS verified.
 *
 * A refusal with `Retry-After` is honoured by the calls that follow, up to 60 s. One call waits for at most 12 s of that;
 * then it is `UNREACHABLE` with {@link DrainableError.retryAfter}, and nothing was sent. A call is sent all the same in the
 * last 15 s before its caller gives up ({@link HttpCall.until}), or after 12 s where that is not known. One with a shorter
 * time limit of its own does not wait.
 *
 * A reply of any status is a value; it throws only if no reply came: `UNREACHABLE` (nothing was sent),
 * `CALL_TIMEOUT`, `CONNECTION_LOST` (it may have been executed), `MALFORMED_REPLY` (too large), or `signal.reason`.
 */
export class HttpClient implements AsyncDisposable {
  readonly origin: string
  readonly #prefix: string
  readonly #options: HttpOptions
  readonly #secure: TlsConnect
  readonly #connecting = new Connecting()
  /** Made at the first call. */
  #own: Promise<Agent> | undefined
  #closed = false
  /** Until when the product wants no request. */
  #notBefore = -Infinity

  constructor(options: HttpOptions) {
    const url = parseHttpUrl(options.url, 'url')
    this.origin = url.origin
    this.#prefix = url.pathname.replace(/\/$/, '')
    this.#options = options
    this.#secure = toTlsConnect(options.tls)
  }

  /** Sends one request and reads the whole reply. */
  async call(call: HttpCall): Promise<HttpReply> {
    call.signal.throwIfAborted()
    await this.#waitTurn(call)
    const limit = new AbortController()
    const ms = call.timeout ?? this.#options.callTimeout ?? 10_000
    const tooLate = (): void => {
      if (call.late === undefined) limit.abort()
      else call.late(this.#toError(undefined, ms, call))
    }
    const cancel = call.clock.setTimeout(tooLate, ms)
    const signal = AbortSignal.any([call.signal, limit.signal])
    const end = this.#connecting.begin(call.clock)
    try {
      const reply = await this.#request(call, signal)
      const { statusCode: status, headers, body } = reply
      const wait = this.#noteRetryAfter(reply, call.clock)
      const asked = wait === 0 ? {} : { retryAfter: wait }
      const coding = headers['content-encoding'] ?? 'identity'
      if (coding !== 'identity') {
        body.on('error', () => undefined).destroy()
        throw this.#compressed(String(coding), call)
      }
      if (call.take === undefined || status !== 200) {
        return { status, headers, text: await body.text(), ...asked }
      }
      await inPieces(body as AsyncIterable<Uint8Array>, call.take)
      return { status, headers, text: '' }
    } catch (cause) {
      if (call.signal.aborted) throw call.signal.reason
      if (cause instanceof NotTaken) throw cause.error
      throw this.#toError(cause, limit.signal.aborted ? ms : undefined, call)
    } finally {
      cancel()
      end()
    }
  }

  /**
   * Waits as the product has asked for, as long as that does no harm.
   *
   * @throws `UNREACHABLE` where there is more to wait than one call may
   */
  async #waitTurn(call: HttpCall): Promise<void> {
    const { clock, signal, timeout = Infinity } = call
    const begun = clock.now()
    const { until = begun + PATIENCE + LAST_TRY } = call
    const left = (): number => Math.min(this.#notBefore, until - LAST_TRY) - clock.now()
    // More than that ahead was noted by another clock.
    const isForeign = this.#notBefore - begun > LONGEST_PAUSE
    if (left() <= 0 || isForeign || timeout < PATIENCE) return
    // A timer of Node can be up to a millisecond early, and another call may have been told to wait meanwhile.
    const end = begun + PATIENCE
    while (left() > 0 && clock.now() < end)
      await pause(clock, Math.min(left(), end - clock.now()), signal)
    if (left() <= 0) return
    const retryAfter = Math.ceil(this.#notBefore - clock.now())
    throw new DrainableError(
      'UNREACHABLE',
      `${this.origin} asked for no request for another ${formatDuration(retryAfter)} (Retry-After)`,
      { provider: this.#options.provider, retryAfter },
    )
  }

  #noteRetryAfter({ statusCode, headers }: Undici.Dispatcher.ResponseData, clock: Clock): number {
    const asked = statusCode < 300 ? undefined : retryAfter(headers['retry-after'], clock)
    const wait = Math.min(asked ?? 0, LONGEST_PAUSE)
    this.#notBefore = wait === 0 ? -Infinity : clock.now() + wait
    return wait
  }

  #compressed(coding: string, { method, path }: HttpCall): DrainableError {
    const what = `${method} ${path.split('?')[0] ?? ''} at ${this.origin}`
    return new DrainableError(
      'MALFORMED_REPLY',
      `${what}: the answer is compressed (${quote(coding, 40)}), which was not asked for: check what stands in between`,
      { provider: this.#options.provider },
    )
  }

  /** Repeats the request if its connection was given up together with earlier calls. */
  async #request(call: HttpCall, signal: AbortSignal): Promise<Undici.Dispatcher.ResponseData> {
    const { request } = await undici()
    const text = typeof call.body === 'string'
    for (;;) {
      try {
        const sent = request(`${this.origin}${this.#prefix}${call.path}`, {
          method: call.method,
          dispatcher: this.#options.dispatcher ?? (await this.#agent()),
          signal,
          headers: {
            accept: 'application/json',
            'accept-encoding': 'identity',
            ...(call.body === undefined || text ? {} : { 'content-type': 'application/json' }),
            ...call.headers,
          },
          body: call.body === undefined ? null : text ? call.body : JSON.stringify(call.body),
        })
        // undici reports an abort to a request that waits for its connection only when the connection is made or has
        // failed.
        return await abortable(sent, signal)
      } catch (error) {
        if (!(error instanceof GivenUp) || signal.aborted) throw error
      }
    }
  }

  #toError(cause: unknown, late: number | undefined, call: HttpCall): DrainableError {
    if (isDrainableError(cause, 'UNSUPPORTED', 'MALFORMED_REPLY')) return cause
    const what = `${call.method} ${call.path.split('?')[0] ?? ''} at ${this.origin}`
    const data = { provider: this.#options.provider, cause: withoutReply(cause) }
    if (late !== undefined) {
      const words = `${what}: no complete answer within ${late} ms`
      return new DrainableError('CALL_TIMEOUT', words, data)
    }
    if (codeOf(cause) === 'UND_ERR_RES_EXCEEDED_MAX_SIZE') {
      return new DrainableError(
        'MALFORMED_REPLY',
        `${what}: the answer is larger than allowed`,
        data,
      )
    }
    const refused = refusedOurs(cause)
    if (refused !== undefined) {
      const words = `${what}: ${wantsOurs(refused)}`
      return new DrainableError('UNAUTHENTICATED', words, { ...data, retryable: false })
    }
    const words = `${what}: ${inWords(cause)}`
    if (neverSent(cause)) {
      const lasting = isLasting(cause) ? { retryable: false } : {}
      return new DrainableError('UNREACHABLE', words, { ...data, ...lasting })
    }
    const code: ErrorCode = isOtherProtocol(cause) ? 'MALFORMED_REPLY' : 'CONNECTION_LOST'
    const isTls = this.origin.startsWith('https:')
    return new DrainableError(code, `${words}${isTls ? whyClosed(cause, this.#options) : ''}`, data)
  }

  #agent(): Promise<Agent> {
    this.#own ??= this.#makeAgent()
    return this.#own
  }

  async #makeAgent(): Promise<Agent> {
    const { Agent, buildConnector } = await undici()
    const { connections = 4, maxReply = 32 * 1024 * 1024 } = this.#options
    const agent = new Agent({
      connections,
      connect: connector(this.#options, this.#secure, buildConnector, this.#connecting),
      pipelining: 1,
      bodyTimeout: 0,
      headersTimeout: 0,
      maxResponseSize: maxReply,
    })
    // A call after the close is refused by a destroyed agent.
    if (this.#closed) await agent.destroy()
    return agent
  }

  /** Closes every socket of its own, even one that is connecting; the caller's dispatcher stays open. */
  async close(): Promise<void> {
    this.#closed = true
    const agent = await this.#own
    const destroyed = agent?.destroy()
    this.#connecting.giveUp()
    await destroyed
  }

  /** As {@link HttpClient.close}. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }
}

/** Milliseconds of a `Retry-After`, which is a number of seconds or a date; undefined if it is neither. */
function retryAfter(header: string | string[] | undefined, clock: Clock): number | undefined {
  const text = [header ?? []].flat()[0]?.trim().slice(0, 60)
  if (text === undefined) return undefined
  if (/^\d{1,9}$/.test(text)) return Number(text) * 1_000
  const date = /^[A-Z][a-z]{2}, .* GMT$/.test(text) ? Date.parse(text) : Number.NaN
  return Number.isNaN(date) ? undefined : Math.max(0, date - wallOf(clock))
}

/** An error that {@link HttpCall.take} threw, not a failure of the connection. */
class NotTaken {
  readonly error: unknown

  constructor(error: unknown) {
    this.error = error
  }
}

async function inPieces(
  body: AsyncIterable<Uint8Array>,
  take: NonNullable<HttpCall['take']>,
): Promise<void> {
  const decoder = new TextDecoder()
  const hand = async (text: string): Promise<void> => {
    try {
      await take(text)
    } catch (error) {
      throw new NotTaken(error)
    }
  }
  // A decoder that is fed piece by piece is ten times slower than a copy, and most replies are plain ASCII.
  let isPlain = true
  for await (const chunk of body) {
    isPlain &&= isAscii(chunk)
    const { buffer, byteOffset: at, byteLength } = chunk
    const copy = (): string => Buffer.from(buffer, at, byteLength).toString('latin1')
    await hand(isPlain ? copy() : decoder.decode(chunk, { stream: true }))
  }
  await hand(decoder.decode())
}
