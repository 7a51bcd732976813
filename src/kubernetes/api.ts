/**
 * One call of the Kubernetes API: HTTP with JSON, with the address and the credentials of the user's kubeconfig.
 *
 * `@kubernetes/client-node` 2.0.1 is not used for calls: its list takes neither a time limit nor a signal, and one that
 * is accepted and never answered ends after 315 s. A watch is a reply without an end, one JSON object a line.
 */
import type { IncomingMessage } from 'node:http'
import type { Agent, RequestOptions } from 'node:https'
import { abortable, within } from '../provider/abort.js'
import { systemClock, type Clock } from '../provider/clock.js'
import {
  codesOf,
  DrainableError,
  isDrainableError,
  wordsOf,
  type ErrorCode,
} from '../provider/error.js'
import { missingMethods, readGiven } from '../provider/options.js'
import { quote } from '../provider/quote.js'

/** The part of a `KubeConfig` of `@kubernetes/client-node` (1 and 2) that is used: where the API is, and who asks. */
export interface KubeConfigLike {
  /** Returns the cluster of the current context; null if there is none. */
  getCurrentCluster(): { readonly server: string } | null
  /** Adds the credentials to the options of one request: headers, certificates, an agent. */
  applyToHTTPSOptions(options: RequestOptions): Promise<void>
}

/** A Kubernetes object, as far as all objects are alike. */
export interface KubeObject {
  readonly metadata?: {
    readonly name?: string
    readonly namespace?: string
    readonly uid?: string
    readonly resourceVersion?: string
    readonly creationTimestamp?: string
    readonly labels?: Readonly<Record<string, string>>
    readonly annotations?: Readonly<Record<string, string>>
    readonly continue?: string
  }
  readonly [field: string]: unknown
}

/** One request. */
export interface KubeCall {
  /** What it does, for messages: `list EndpointSlices in shop`. */
  readonly what: string
  readonly method?: 'GET' | 'POST' | 'PUT' | 'DELETE'
  readonly path: string
  readonly query?: Readonly<Record<string, string | undefined>>
  readonly body?: unknown
  readonly accept?: string
}

/** The answer to one request. */
export interface KubeReply {
  readonly status: number
  readonly object: KubeObject
}

/** The longest time from a request to the end of its answer, in milliseconds. */
export const CALL_LIMIT = 30_000
/** The longest time for a connection and its TLS: a frozen API server still accepts connections, its kernel does. */
const CONNECT_LIMIT = 5_000
/** How long a connection is kept for the next call, in milliseconds. The API server keeps it for 90 s. */
const KEPT = 20_000
/** How many objects are asked for at once. */
const PAGE = 500
/** The longest answer that is read, in bytes. A page of 500 Nodes has about ten million. */
const MOST_BYTES = 128 * 1024 * 1024

/** Loaded with the first call: an import of Node's HTTP reads all its names, one of which loads 20 ms of more. */
const nodeHttp = () => process.getBuiltinModule('node:http')
const nodeHttps = () => process.getBuiltinModule('node:https')

export class KubeApi {
  readonly #config: KubeConfigLike
  readonly #clock: Clock
  readonly #limit: number
  readonly #kept: Agent | undefined

  /**
   * @param limit - the longest time from a request to the end of its answer, in milliseconds
   * @param kept - whether connections are kept for the next call: for many short ones. A list or a watch takes a new
   *   one, because after an outage a kept one may be dead without a word
   * @throws `INVALID_OPTIONS` if it is no kubeconfig
   */
  constructor(
    config: KubeConfigLike,
    subject: string,
    { clock = systemClock, limit = CALL_LIMIT, kept = false } = {},
  ) {
    const missing = readGiven(`${subject}: config`, () =>
      missingMethods(config, ['getCurrentCluster', 'applyToHTTPSOptions']),
    )
    if (missing.length > 0) {
      const words = `${subject}: config: expected a KubeConfig of @kubernetes/client-node, with ${missing.join(', ')}`
      throw new DrainableError('INVALID_OPTIONS', words)
    }
    this.#config = config
    this.#clock = clock
    this.#limit = limit
    this.#kept = kept ? new (nodeHttps().Agent)({ keepAlive: true, timeout: KEPT }) : undefined
  }

  /**
   * Sends a request and reads the answer.
   *
   * @param also - statuses that are answers, beside 2xx
   * @throws `UNREACHABLE`, `CONNECTION_LOST`, `CALL_TIMEOUT` after the limit, `MALFORMED_REPLY`; `signal.reason`; the error of
   *   {@link refused} for any other status
   */
  async call(
    call: KubeCall,
    signal: AbortSignal,
    also: readonly number[] = [],
  ): Promise<KubeReply> {
    const reply = await this.#bounded(call, signal, async (given) =>
      this.#whole(await this.#send(call, given), call),
    )
    const { status } = reply
    if ((status >= 200 && status < 300) || also.includes(status)) return reply
    throw refused(call, reply)
  }

  async #whole(reply: IncomingMessage, call: KubeCall): Promise<KubeReply> {
    const { statusCode: status = 0 } = reply
    return { status, object: parseObject(await this.#textOf(reply, call), status, call) }
  }

  /**
   * Reads a whole list, page by page.
   *
   * @param keep - what is kept of each object, while the next page is read
   * @returns what was kept, and the version from which a watch can go on
   * @throws as {@link call}
   */
  async list<T>(
    call: KubeCall,
    signal: AbortSignal,
    keep: (object: KubeObject) => T,
  ): Promise<{ readonly kept: readonly T[]; readonly version: string }> {
    const kept: T[] = []
    let next: string | undefined
    for (;;) {
      const query = { ...call.query, limit: String(PAGE), continue: next }
      const { object: list } = await this.call({ ...call, query }, signal)
      const items = list['items'] ?? [] // null: none
      if (!Array.isArray(items)) throw malformed(call, 'a list without items')
      for (const one of items as KubeObject[]) kept.push(keep(one))
      next = list.metadata?.continue
      if (next !== undefined && next !== '') continue
      const version = list.metadata?.resourceVersion
      if (version === undefined) throw malformed(call, 'a list without a resourceVersion')
      return { kept, version }
    }
  }

  /**
   * Begins a watch. The stream has no limit of its own: whoever reads it gives it up.
   *
   * @returns the stream, or the reply that refuses it
   * @throws as {@link call}
   */
  watch(call: KubeCall, signal: AbortSignal): Promise<IncomingMessage | KubeReply> {
    return this.#bounded(call, signal, async (given) => {
      // The stream outlives the wait for its head, so it ends by the caller's signal.
      const reply = await abortable(this.#send(call, signal), given)
      return reply.statusCode === 200 ? reply : this.#whole(reply, call)
    })
  }

  #bounded<T>(
    { what }: KubeCall,
    signal: AbortSignal,
    run: (signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    const bound = {
      clock: this.#clock,
      limit: this.#limit,
      signals: [signal],
      peer: () => 'the Kubernetes API',
      late: (words: string) => new DrainableError('CALL_TIMEOUT', `${what}: ${words}`),
    }
    return within(bound, run)
  }

  async #send(call: KubeCall, signal: AbortSignal): Promise<IncomingMessage> {
    const { method = 'GET', path, query = {}, body, accept = 'application/json' } = call
    const options: RequestOptions = { method, headers: { accept }, signal }
    const url = await this.#urlFor(path, query, options, call)
    // An agent of another class leads through a proxy.
    const isPlain = options.agent === undefined || isExactly(options.agent, nodeHttps().Agent)
    if (this.#kept !== undefined && url.protocol === 'https:' && isPlain) options.agent = this.#kept
    const text = body === undefined ? undefined : JSON.stringify(body)
    const headers = {
      ...(options.headers as Readonly<Record<string, string>>),
      ...(text === undefined ? {} : { 'content-type': 'application/json' }),
      'content-length': Buffer.byteLength(text ?? ''),
    }
    return this.#sendOn({ url, options: { ...options, headers }, text, call, signal })
  }

  #sendOn(sent: Sent): Promise<IncomingMessage> {
    const { url, options, text, call, signal } = sent
    return new Promise((resolve, reject) => {
      const send = url.protocol === 'http:' ? nodeHttp().request : nodeHttps().request
      const request = send(url, options, resolve)
      const tooLate = (): void => {
        const words = `${call.what}: no connection within 5 s`
        request.destroy(new DrainableError('UNREACHABLE', words))
      }
      const cancel = this.#clock.setTimeout(tooLate, CONNECT_LIMIT)
      request.once('finish', cancel) // sent: it is connected
      request.once('close', cancel)
      request.on('error', (error) => {
        // The API server had just closed a kept connection: it has not seen the request.
        if (request.reusedSocket && codesOf(error).includes('ECONNRESET') && !signal.aborted)
          this.#sendOn({ ...sent, options: { ...options, agent: false } }).then(resolve, reject)
        else reject(signal.aborted ? reasonOf(signal) : lost(call, error))
      })
      request.end(text)
    })
  }

  async #urlFor(
    path: string,
    query: NonNullable<KubeCall['query']>,
    options: RequestOptions,
    { what }: KubeCall,
  ): Promise<URL> {
    const cluster = this.#config.getCurrentCluster()
    if (cluster === null) {
      const words = `${what}: the kubeconfig has no current cluster, set its context`
      throw new DrainableError('INVALID_OPTIONS', words)
    }
    const url = new URL(cluster.server.replace(/\/$/, '') + path)
    for (const [key, value] of Object.entries(query))
      if (value !== undefined) url.searchParams.set(key, value)
    try {
      await this.#config.applyToHTTPSOptions(options)
    } catch (cause) {
      const words = `${what}: the kubeconfig gave no credentials: ${quote(wordsOf(cause))}`
      throw new DrainableError('UNAUTHENTICATED', words, { cause })
    }
    return url
  }

  async #textOf(reply: IncomingMessage, call: KubeCall): Promise<string> {
    const parts: Buffer[] = []
    let size = 0
    try {
      for await (const part of reply as AsyncIterable<Buffer>) {
        size += part.length
        if (size > MOST_BYTES) throw malformed(call, `an answer of more than ${MOST_BYTES} bytes`)
        parts.push(part)
      }
    } catch (error) {
      throw lost(call, error)
    }
    return Buffer.concat(parts).toString('utf8')
  }
}

/** A request as it is sent. */
interface Sent {
  readonly url: URL
  readonly options: RequestOptions
  readonly text: string | undefined
  readonly call: KubeCall
  readonly signal: AbortSignal
}

function isExactly(value: object | boolean, kind: typeof Agent): boolean {
  return typeof value === 'object' && Object.getPrototypeOf(value) === kind.prototype
}

/** The error of a reply that refuses: one line with the API's own words, and not the reply with its headers. */
export function refused({ what }: KubeCall, { status, object }: KubeReply): DrainableError {
  const { message } = object
  const said = typeof message === 'string' && message !== '' ? `: ${quote(message)}` : ''
  const words = `${what}: ${status} ${nodeHttp().STATUS_CODES[status] ?? 'answered'}${said}`
  const retryable = status === 429 || status >= 500
  return new DrainableError(retryable ? 'UNREACHABLE' : (CODES[status] ?? 'REJECTED'), words, {
    retryable: retryable || status === 409,
  })
}

export function malformed({ what }: KubeCall, found: string): DrainableError {
  return new DrainableError('MALFORMED_REPLY', `${what}: expected an object, found ${found}`)
}

/** The error of a connection that failed. */
export function lost({ what }: KubeCall, cause: unknown): DrainableError {
  if (isDrainableError(cause)) return cause
  const refusing = codesOf(cause).some((code) => NOT_THERE.has(code))
  const words = `${what}: ${quote(wordsOf(cause))}`
  return new DrainableError(refusing ? 'UNREACHABLE' : 'CONNECTION_LOST', words, { cause })
}

const CODES: Readonly<Record<number, ErrorCode>> = {
  401: 'UNAUTHENTICATED',
  403: 'FORBIDDEN',
  404: 'NOT_FOUND',
  409: 'CONFLICT',
}

const NOT_THERE: ReadonlySet<string> = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ETIMEDOUT',
])

function parseObject(text: string, status: number, call: KubeCall): KubeObject {
  try {
    const value: unknown = JSON.parse(text)
    if (typeof value === 'object' && value !== null && !Array.isArray(value))
      return value as KubeObject
  } catch {
    // Said below. A proxy in front of the API refuses in words of its own.
  }
  if (status >= 300) return { message: text }
  throw malformed(call, `'${quote(text)}'`)
}

function reasonOf(signal: AbortSignal): Error {
  return signal.reason as Error
}
