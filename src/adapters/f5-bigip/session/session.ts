import { pause } from '../../../provider/clock.js'
import type { CallContext } from '../../../provider/contract.js'
import { DrainableError, isDrainableError } from '../../../provider/error.js'
import { HttpClient, type HttpCall, type HttpReply } from '../../../kit/http.js'
import { readSecret, redact } from '../../../kit/secret.js'
import { Turnstile } from '../../../kit/turnstile.js'
import { parseLogin } from '../codec/device.js'
import { classify, type Meaning } from '../codec/errors.js'
import type { Settings } from '../options.js'
import { Pace } from './pace.js'

export const PROVIDER = 'f5-bigip'

/** Waits before a read is repeated while the control plane is busy, in milliseconds; longer troubles are the caller's to wait for. */
const BACKOFF = [250]
/** Waits after a refused login: repeated ones lock the account. */
const LOGIN_BACKOFF = [30_000, 300_000]
/** How long the password is sent with each request once the device had no token left. */
const BASIC_FOR = 300_000
const LOGOUT_TIMEOUT = 2_000
/** Open connections are no configuration. */
const CONNECTIONS = '/mgmt/tm/sys/connection'

export interface Ask {
  readonly method: HttpCall['method']
  readonly path: string
  readonly body?: unknown
  /** Transaction the request belongs to. */
  readonly transaction?: string
  /** Repeat while the device is busy; only for what changes nothing. Default: for GET. */
  readonly patient?: boolean
}

/** An answer to what must not be repeated, which leaves it open whether it was done. */
export function uncertain(error: DrainableError, kind: Meaning['kind']): DrainableError {
  if (kind !== 'later' && kind !== 'garbage') return error
  return new DrainableError('CONNECTION_LOST', `${error.message}; it may have been carried out`, {
    provider: PROVIDER,
    cause: error,
  })
}

interface Token {
  readonly name: string
  /** `performance.now()` after which a new one is asked for. */
  readonly renewAt: number
}

/**
 * One unit's REST interface under one login: a request at a time, a token shared by all of them and
 * renewed before it runs out, one repeat after a 401, patience while the control plane restarts.
 */
export class Session {
  /** Host and port, for messages and as the name of the scope. */
  readonly host: string
  /** How many changes of the configuration were sent. */
  changes = 0
  readonly #settings: Settings
  readonly #http: HttpClient
  /** One request at a time: see {@link Pace}. */
  readonly #turn = new Turnstile()
  readonly #pace = new Pace()
  readonly #secrets = new Set<string>()
  #token: Token | undefined
  #basicUntil = 0
  #refused:
    { readonly password: string; readonly until: number; readonly times: number } | undefined
  #lastRefusal = ''
  #closed = false

  constructor(url: string, settings: Settings) {
    this.host = new URL(url).host
    this.#settings = settings
    this.#http = new HttpClient({
      provider: PROVIDER,
      url,
      tls: settings.tls,
      dispatcher: settings.dispatcher,
      connections: 1,
      callTimeout: settings.callTimeout,
    })
  }

  /** Sends a request in its turn; every answer but a busy or unauthenticated one is a value. */
  async ask(ask: Ask, ctx: CallContext): Promise<Meaning> {
    const patient = ask.patient ?? ask.method === 'GET'
    for (let attempt = 0; ; attempt += 1) {
      const meaning = await this.#turn.run(ctx.signal, () => this.#once(ask, ctx))
      const wait = BACKOFF[attempt]
      if (meaning.kind !== 'later' || !patient || wait === undefined) return meaning
      await pause(ctx.clock, wait, ctx.signal)
    }
  }

  /** Reads an object; undefined where the device says that it is not there. */
  async get(path: string, ctx: CallContext): Promise<unknown> {
    const meaning = await this.ask({ method: 'GET', path }, ctx)
    if (meaning.kind === 'ok') return meaning.json ?? {}
    if (meaning.kind === 'absent') return undefined
    throw this.toError(meaning, `GET ${path.split('?')[0] ?? path}`)
  }

  /** An answer that is no success, as an error. */
  toError(meaning: Exclude<Meaning, { kind: 'ok' }>, what: string): DrainableError {
    const words = `${what} at ${this.host}: "${this.clean(meaning.message)}"`
    const data = { provider: PROVIDER }
    switch (meaning.kind) {
      case 'absent':
        return new DrainableError('NOT_FOUND', words, data)
      case 'later':
        return new DrainableError(
          'CONFLICT',
          `${words}, the control plane is busy or restarting`,
          data,
        )
      case 'unauthenticated':
        return new DrainableError('UNAUTHENTICATED', `${words}, check username and password`, data)
      case 'forbidden':
        return new DrainableError(
          'FORBIDDEN',
          `${words}, the user ${this.#settings.username} needs the role for it on this partition`,
          data,
        )
      case 'too-many-tokens':
        return new DrainableError(
          'REJECTED',
          `${words}, drop unused tokens of the user or set auth: 'basic'`,
          { ...data, retryable: true }, // they run out
        )
      case 'exists':
        return new DrainableError('CONFLICT', words, { ...data, retryable: false })
      case 'refused':
        return new DrainableError('REJECTED', words, data)
      case 'garbage':
        return new DrainableError('MALFORMED_REPLY', `${words}, expected JSON`, data)
      default:
        return meaning satisfies never
    }
  }

  /** Words of the device without secrets. */
  clean(text: string): string {
    return redact(text, [...this.#secrets])
  }

  /** Logs out, as tokens are counted, and closes the socket. */
  async close(): Promise<void> {
    if (this.#closed) return
    this.#closed = true
    const token = this.#token
    this.#token = undefined
    if (token !== undefined) await this.#drop(token, AbortSignal.timeout(LOGOUT_TIMEOUT))
    await this.#http.close()
  }

  async #once(ask: Ask, ctx: CallContext): Promise<Meaning> {
    if (this.#closed) {
      throw new DrainableError('CONNECTION_LOST', `the provider for ${this.host} is closed`, {
        provider: PROVIDER,
        retryable: false,
      })
    }
    if (ask.method !== 'GET' && ask.transaction === undefined) {
      await this.#pace.wait(ctx.clock, ctx.signal)
    }
    if (ask.method !== 'GET' && !ask.path.startsWith(CONNECTIONS)) this.changes += 1
    let repeated = false
    let renewed = false
    for (;;) {
      const headers = await this.#credentials(ctx)
      const reply = await this.#send(ask, headers, ctx.signal)
      const meaning = classify(reply.status, reply.text)
      if (meaning.kind !== 'unauthenticated') return meaning
      // Good credentials are turned away now and then as if they were not there: they are sent once more
      if (!repeated && !renewed && /no user authentication header/i.test(meaning.message)) {
        repeated = true
        continue
      }
      if ('authorization' in headers) {
        // Basic credentials that are refused count as failed logins
        this.#noteRefusal(await this.#password(), meaning.message)
        return meaning
      }
      if (renewed) return meaning
      renewed = true
      this.#token = undefined
    }
  }

  async #send(
    ask: Ask,
    headers: Readonly<Record<string, string>>,
    signal: AbortSignal,
  ): Promise<HttpReply> {
    try {
      return await this.#http.call({
        method: ask.method,
        path: ask.path,
        ...(ask.body === undefined ? {} : { body: ask.body }),
        headers: {
          ...headers,
          ...(ask.transaction === undefined
            ? {}
            : { 'x-f5-rest-coordination-id': ask.transaction }),
        },
        signal,
      })
    } catch (error) {
      if (this.#closed && isDrainableError(error)) {
        throw new DrainableError('CONNECTION_LOST', `the provider for ${this.host} was closed`, {
          provider: PROVIDER,
          retryable: false,
          cause: error,
        })
      }
      throw error
    }
  }

  async #credentials(ctx: CallContext): Promise<Record<string, string>> {
    if (this.#settings.auth === 'basic' || performance.now() < this.#basicUntil) {
      const password = await this.#password()
      this.#checkRefusal(password)
      return { authorization: this.#basic(password) }
    }
    const old = this.#token
    if (old === undefined || performance.now() >= old.renewAt) {
      this.#token = await this.#login(ctx)
      if (old !== undefined) await this.#drop(old, ctx.signal)
      if (this.#token === undefined) return this.#credentials(ctx)
    }
    return { 'x-f5-auth-token': this.#token?.name ?? '' }
  }

  /** One login; undefined where the user has no token left and Basic is used for a while. */
  async #login(ctx: CallContext): Promise<Token | undefined> {
    const password = await this.#password()
    this.#checkRefusal(password)
    const at = performance.now()
    const body = {
      username: this.#settings.username,
      password,
      loginProviderName: this.#settings.loginProvider,
    }
    const ask: Ask = { method: 'POST', path: '/mgmt/shared/authn/login', body }
    let reply = await this.#send(ask, {}, ctx.signal)
    let meaning = classify(reply.status, reply.text)
    if (meaning.kind === 'unauthenticated' && /no user authentication|html/i.test(reply.text)) {
      // 12.0 wanted Basic credentials on the login request too
      reply = await this.#send(ask, { authorization: this.#basic(password) }, ctx.signal)
      meaning = classify(reply.status, reply.text)
    }
    if (meaning.kind === 'ok') {
      this.#refused = undefined
      const { token, lifetime } = parseLogin(meaning.json)
      this.#secrets.add(token)
      return { name: token, renewAt: at + lifetime - Math.min(60_000, lifetime / 5) }
    }
    if (meaning.kind === 'too-many-tokens') {
      this.#basicUntil = performance.now() + BASIC_FOR
      return undefined
    }
    if (meaning.kind === 'unauthenticated') this.#noteRefusal(password, meaning.message)
    throw this.toError(meaning, 'login')
  }

  async #password(): Promise<string> {
    const password = await readSecret(this.#settings.password, 'password')
    this.#secrets.add(password)
    return password
  }

  #basic(password: string): string {
    const value = Buffer.from(`${this.#settings.username}:${password}`).toString('base64')
    this.#secrets.add(value)
    return `Basic ${value}`
  }

  /** The same password is not sent again at once: three wrong ones can lock the user. */
  #checkRefusal(password: string): void {
    const refused = this.#refused
    if (refused?.password !== password || performance.now() >= refused.until) return
    throw new DrainableError(
      'UNAUTHENTICATED',
      `login at ${this.host}: "${this.#lastRefusal}", the same password is not sent again for a while so that the account is not locked`,
      { provider: PROVIDER },
    )
  }

  #noteRefusal(password: string, message: string): void {
    const times = this.#refused?.password === password ? this.#refused.times + 1 : 0
    const wait = LOGIN_BACKOFF[Math.min(times, LOGIN_BACKOFF.length - 1)] ?? 0
    this.#lastRefusal = this.clean(message)
    this.#refused = { password, times, until: performance.now() + wait }
  }

  /** Best effort: an old token runs out by itself. */
  async #drop(token: Token, signal: AbortSignal): Promise<void> {
    try {
      await this.#http.call({
        method: 'DELETE',
        path: `/mgmt/shared/authz/tokens/${encodeURIComponent(token.name)}`,
        headers: { 'x-f5-auth-token': token.name },
        signal,
        timeout: LOGOUT_TIMEOUT,
      })
    } catch {
      // counted until it runs out
    }
  }
}
