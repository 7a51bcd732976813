import { type HttpCall, HttpClient, type HttpReply } from '../../../kit/http.js'
import { Credentials } from '../../../kit/login.js'
import { instanceOf, redact } from '../../../kit/options.js'
import { retried } from '../../../kit/retry.js'
import type {
  AdminState,
  CallContext,
  ChangeResult,
  MemberRef,
} from '../../../provider/contract.js'
import {
  closedError,
  DrainableError,
  isDrainableError,
  type ErrorCode,
} from '../../../provider/error.js'
import { formatDuration } from '../../../provider/duration.js'
import { refKey } from '../../../provider/member-ref.js'
import { infoPath, type Paths, pathsOf } from '../codec/paths.js'
import {
  type Generation,
  parseErrorWords,
  parseGeneration,
  saysNotFound,
} from '../codec/replies.js'
import type { Settings } from '../options.js'

export const PROVIDER = 'haproxy-dataplane'

/** What is under every call: which tree, and its paths. */
export interface Served extends Generation {
  readonly paths: Paths
}

/** A reply with the words of its error, secrets blacked out. */
export interface Reply {
  readonly status: number
  readonly text: string
  /** The version of the configuration that every reply carries. */
  readonly configVersion: string | undefined
  readonly reloadId: string | undefined
  /** The product's own words, for a status of 400 and above. */
  readonly words: string
  /** For how long no request is wanted, in milliseconds: a front's `Retry-After`. */
  readonly retryAfter?: number
  /** What the request carried and no message may repeat. */
  readonly secrets: readonly string[]
}

/** What Go says of HAProxy's socket in the words of a 500: nothing listens there, or gone before its answer. */
const NO_HAPROXY =
  /\bdial (unix|tcp)\b|connection (refused|reset)|broken pipe|i\/o timeout|\bEOF\b/i
const LOST: readonly ErrorCode[] = [
  'UNREACHABLE',
  'CONNECTION_LOST',
  'CALL_TIMEOUT',
  'MALFORMED_REPLY',
]

/** Whether a write that failed so may have been executed, or may still be. */
export function isLost({ code }: DrainableError): boolean {
  return LOST.includes(code)
}

type Write = { readonly method: 'POST' | 'PUT' | 'DELETE'; readonly path: string } & {
  readonly body?: unknown
  readonly timeout?: number
}

/**
 * The Data Plane API as a place to send requests to: credentials, detection of the generation,
 * repeats where a repeat is safe, errors mapped once.
 *
 * Reads are repeated after a lost connection; writes only where nothing was sent, or where the
 * answer was 401 (then nothing was done). No call outlives its time or its signal.
 */
export class DataplaneApi implements AsyncDisposable {
  readonly instance: string
  readonly unresolved = new Unresolved()
  readonly #http: HttpClient
  readonly #settings: Settings
  readonly #closed = new AbortController()
  readonly #credentials: Credentials
  #served: Served | undefined

  constructor(settings: Settings) {
    this.#settings = settings
    this.#http = new HttpClient({
      provider: PROVIDER,
      url: settings.url,
      tls: settings.tls,
      socketPath: settings.socketPath,
      dispatcher: settings.dispatcher,
      connections: 2,
      connectTimeout: Math.min(settings.callTimeout, 5_000),
      callTimeout: settings.callTimeout,
      maxReply: 128 * 1024 * 1024, // statistics of a process with 100,000 servers
    })
    const where = settings.socketPath === undefined ? '' : `unix:${settings.socketPath} `
    this.instance = `${where}${instanceOf([settings.url])}`
    this.#credentials = new Credentials({
      provider: PROVIDER,
      subject: this.instance,
      username: settings.username,
      password: settings.password,
    })
  }

  /** The generation that is served; asked once, and again after the API was replaced by another. */
  async served(ctx: CallContext): Promise<Served> {
    // two calls at once may both ask: neither must end with the other's abort
    this.#served ??= await this.#detect(ctx)
    return this.#served
  }

  /** A read: repeated after a lost connection, never after a time-out; once more after the pause that a front asked for. */
  async get(path: string, ctx: CallContext): Promise<Reply> {
    const read = (): Promise<Reply> =>
      this.#repeated({ method: 'GET', path }, ctx, 'UNREACHABLE', 'CONNECTION_LOST')
    const reply = await read()
    // A call that looks once, such as select() and plan(), has no later read that would wait for it.
    return reply.retryAfter === undefined ? reply : read()
  }

  /** A write: repeated only where nothing was sent. */
  async send(call: Write, ctx: CallContext): Promise<Reply> {
    return this.#repeated(call, ctx, 'UNREACHABLE')
  }

  /** A good reply's text; every other one is thrown. */
  async read(path: string, ctx: CallContext): Promise<Reply> {
    const reply = await this.get(path, ctx)
    if (reply.status === 200) return reply
    throw this.toError(`GET ${path}`, reply)
  }

  /** What a decoder makes of a reply; the words of its complaint without secrets. */
  parse<T>(reply: Reply, decode: (text: string) => T): T {
    try {
      return decode(reply.text)
    } catch (error) {
      if (!isDrainableError(error)) throw error
      const complaint = complaintOf(decode, redact(reply.text, reply.secrets)) ?? error.message
      const message = redact(complaint, reply.secrets)
      if (message === error.message) throw error
      throw new DrainableError(error.code, message, {
        provider: PROVIDER,
        retryable: error.retryable,
      })
    }
  }

  /** The error of a reply that is not a good one. */
  toError(
    what: string,
    { status, words: said, retryAfter }: Pick<Reply, 'status' | 'words' | 'retryAfter'>,
  ): DrainableError {
    const subject = `${what.split('?')[0] ?? what} at ${this.instance}`
    const data = { provider: PROVIDER, ...(retryAfter === undefined ? {} : { retryAfter }) }
    if (status === 401) {
      // 2.9 and 3.0 repeat the password they were given: not a word of such a reply is shown
      return new DrainableError(
        'UNAUTHENTICATED',
        `${subject}: user '${this.#settings.username}' was refused, check username and password`,
        data,
      )
    }
    if (status >= 300 && status < 400) {
      const redirected = `${subject}: redirects are not followed (${status})`
      // a web server in front that restarts may redirect a change: what became of it is not known
      if (what.startsWith('GET ')) return new DrainableError('REJECTED', redirected, data)
      return new DrainableError('MALFORMED_REPLY', redirected, { ...data, retryable: true })
    }
    const asked =
      retryAfter === undefined
        ? ''
        : `, it asked for no request for another ${formatDuration(retryAfter)} (Retry-After)`
    const words = `status ${status}, '${said}'${asked}`
    if (status === 403) return new DrainableError('FORBIDDEN', `${subject}: ${words}`, data)
    if (saysNotFound(status, said)) {
      return new DrainableError('NOT_FOUND', `${subject}: ${words}`, data)
    }
    // a proxy in front that can't reach the API, or the API HAProxy; a read that fails may succeed the next time
    const gateway = [502, 503, 504].includes(status)
    const failed = what.startsWith('GET ') || NO_HAPROXY.test(said)
    if (gateway || (status >= 500 && failed)) {
      return new DrainableError('UNREACHABLE', `${subject}: ${words}`, data)
    }
    const transient = [406, 408, 409, 423, 429].includes(status)
    return new DrainableError(transient ? 'CONFLICT' : 'REJECTED', `${subject}: ${words}`, data)
  }

  async close(): Promise<void> {
    this.#closed.abort(closedError(PROVIDER, this.instance))
    await this.#http.close()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }

  async #detect(ctx: CallContext): Promise<Served> {
    for (const tree of ['v3', 'v2'] as const) {
      const path = infoPath(tree)
      const reply = await this.get(path, ctx)
      if (reply.status === 200) {
        const generation = this.parse(reply, (text) => parseGeneration(tree, text))
        return { ...generation, paths: pathsOf(tree) }
      }
      // the tree that is not served answers 404; 401 says nothing about which tree there is
      if (reply.status !== 404) throw this.toError(`GET ${path}`, reply)
    }
    throw new DrainableError(
      'NOT_FOUND',
      `${this.instance}: neither /v3/info nor /v2/info is there, check that the URL is that of a HAProxy Data Plane API`,
      { provider: PROVIDER },
    )
  }

  async #repeated(
    call: HttpCallLike,
    ctx: CallContext,
    ...safe: ('UNREACHABLE' | 'CONNECTION_LOST')[]
  ): Promise<Reply> {
    const signal = AbortSignal.any([ctx.signal, this.#closed.signal])
    const within = { ...ctx, signal }
    try {
      return await retried(
        within,
        {
          waits: [40, 80],
          again: (error) =>
            isDrainableError(error, ...safe) && error.retryable && error.retryAfter === undefined,
        },
        () => this.#once(call, within),
      )
    } catch (error) {
      signal.throwIfAborted()
      throw error
    }
  }

  async #once(call: HttpCallLike, ctx: Within): Promise<Reply> {
    ctx.signal.throwIfAborted()
    return this.#credentials.use(
      ctx,
      (password) => this.#call(call, password, ctx),
      // 2.9 and 3.0 repeat the password they were given: not a word of such a reply is shown
      ({ status }) => (status === 401 ? 'refused, check username and password' : undefined),
    )
  }

  async #call(call: HttpCallLike, password: string, ctx: Within): Promise<Reply> {
    const login = Buffer.from(`${this.#settings.username}:${password}`).toString('base64')
    const reply = await this.#http.call({
      ...call,
      // `configuration/raw` is plain text in v3
      headers: { accept: 'application/json, text/plain', authorization: `Basic ${login}` },
      ...ctx,
    })
    if (reply.status === 404) this.#forgetIfReplaced(reply)
    const secrets = [password, login]
    const clean = (words: string): string => redact(words, secrets)
    return {
      status: reply.status,
      text: reply.text,
      configVersion: header(reply, 'configuration-version'),
      reloadId: header(reply, 'reload-id'),
      ...(reply.retryAfter === undefined ? {} : { retryAfter: reply.retryAfter }),
      words: reply.status < 400 ? '' : parseErrorWords(reply.text, clean),
      secrets,
    }
  }

  /** An API that was replaced by one of the other tree answers so: the next call asks again which it is. */
  #forgetIfReplaced(reply: HttpReply): void {
    if (/path \/v[23]\/\S{1,500} was not found/.test(reply.text.slice(0, 4_000)))
      this.#served = undefined
  }
}

/** What a decoder says against a text; undefined where it says nothing. */
function complaintOf(decode: (text: string) => unknown, text: string): string | undefined {
  try {
    decode(text)
    return undefined
  } catch (error) {
    return isDrainableError(error) ? error.message : undefined
  }
}

type HttpCallLike = Omit<HttpCall, 'signal' | 'clock' | 'headers'>
type Within = Pick<CallContext, 'clock' | 'signal' | 'until'>

function header(reply: HttpReply, name: string): string | undefined {
  const value = reply.headers[name]
  return Array.isArray(value) ? value[0] : value
}

/** How long after a change looks may begin that it still speaks for, in milliseconds. */
const SPEAKS = 5_000

/**
 * Servers whose names do not resolve. The API shows the drain of such a server, and neither its maintenance nor that it
 * has none (masks 20, 21 and 29 read alike). So one that was seen drained, and then made ready here in the same process,
 * is known to be ready by that word alone; and only by looks that begin soon after it, because another client's
 * maintenance would not show.
 */
export class Unresolved {
  /** The process in which a server was seen drained. */
  readonly #drained = new Map<string, string>()
  /** Made ready here: in which process, and on the clock when the change was over. */
  readonly #opened = new Map<string, { readonly process: string; readonly endedAt: number }>()

  /** The API has answered that it set this state. */
  told(ref: MemberRef, state: AdminState): void {
    const process = this.#drained.get(refKey(ref))
    if (state === 'ready' && process !== undefined)
      this.#opened.set(refKey(ref), { process, endedAt: Infinity })
    else this.#opened.delete(refKey(ref))
  }

  /** A change is over. */
  ended(ref: MemberRef, status: ChangeResult['status'] | undefined, now: number): void {
    const opened = this.#opened.get(refKey(ref))
    if (status === 'rejected') this.#opened.delete(refKey(ref))
    else if (opened?.endedAt === Infinity)
      this.#opened.set(refKey(ref), { ...opened, endedAt: now })
  }

  /** The name does not resolve, and the own drain is shown. @param at - when the look was begun */
  drained(ref: MemberRef, process: string, at: number): void {
    this.#drained.set(refKey(ref), process)
    if (at > (this.#opened.get(refKey(ref))?.endedAt ?? Infinity)) this.#opened.delete(refKey(ref))
  }

  /** The name resolves: the own state is shown. */
  forget(ref: MemberRef): void {
    // Asked for every row of every look: nearly always nothing is known.
    if (this.#drained.size + this.#opened.size === 0) return
    this.#drained.delete(refKey(ref))
    this.#opened.delete(refKey(ref))
  }

  /** Whether a server whose own state is not shown was made ready. @param at - when the look was begun */
  isReady(ref: MemberRef, process: string, at: number): boolean {
    const opened = this.#opened.get(refKey(ref))
    return opened?.process === process && at <= opened.endedAt + SPEAKS
  }
}
