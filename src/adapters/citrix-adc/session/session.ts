import { abortable } from '../../../provider/abort.js'
import type { CallContext } from '../../../provider/contract.js'
import { pause } from '../../../provider/clock.js'
import { DrainableError, isDrainableError } from '../../../provider/error.js'
import { HttpClient, type HttpCall } from '../../../kit/http.js'
import { readSecret, redact } from '../../../kit/secret.js'
import { Turnstile } from '../../../kit/turnstile.js'
import { type Command, type NitroReply, parseReply, pathOf, toText } from '../codec/nitro.js'
import { classify, toError } from '../codec/errors.js'
import type { Settings } from '../options.js'

/** How often a busy appliance is asked the same thing, and the first wait in between, in milliseconds. */
const TRIES = 4
const FIRST_WAIT = 250
/** What a logout may take, in milliseconds. */
const LOGOUT_LIMIT = 2_000

/** A login under way, shared by everybody who waits for it. */
interface Login {
  readonly done: Promise<string>
  waiting: number
  readonly stop: AbortController
}

/**
 * One address of an appliance, and the one session we have there.
 *
 * Sessions are few (445) and forgotten ones block everybody until they time out: there is one at a
 * time, its token is shared by all calls, at most two calls are under way, and it is logged out at
 * the end whatever happened. An ended session shows by errorcode, under 401 or under 200: we log in
 * again once and send the call once more, which is safe for changes too since nobody carried it out.
 */
export class NitroSession {
  readonly url: string
  readonly #options: Settings
  readonly #http: HttpClient
  readonly #gate = new Turnstile(2)
  readonly #closing = new AbortController()
  #token: string | undefined
  #login: Login | undefined
  #secrets: readonly string[] = []

  constructor(url: string, options: Settings) {
    this.#options = options
    this.#http = new HttpClient({
      provider: 'citrix-adc',
      url,
      tls: options.tls,
      dispatcher: options.dispatcher,
      connections: 2,
      callTimeout: options.callTimeout,
      allowPlaintext: options.allowPlaintext,
    })
    this.url = this.#http.origin
  }

  /**
   * Reads. A busy appliance is asked again after a while.
   *
   * @returns the reply, of class `ok` or `absent`
   * @throws for every other reply, and where none came
   */
  async get(path: string, ctx: CallContext): Promise<NitroReply> {
    for (let attempt = 1; ; attempt++) {
      const reply = await this.send({ method: 'GET', path }, ctx)
      const kind = classify(reply)
      // A reading of no bytes, or of a stranger's JSON, says nothing: it must not pass for "no rows".
      const usable = kind === 'ok' && !reply.empty && reply.stated
      if (usable || (kind === 'absent' && reply.readable)) return reply
      if (kind !== 'busy' || attempt === TRIES) throw this.error(`GET ${path}`, reply)
      await pause(ctx.clock, FIRST_WAIT * 2 ** (attempt - 1), ctx.signal)
    }
  }

  /** Sends a change, once. Every reply is a value. */
  post(command: Command, ctx: CallContext): Promise<NitroReply> {
    return this.send({ method: 'POST', path: command.path, body: command.body }, ctx)
  }

  /** A reply as an error, without what the product may have repeated of our secrets. */
  error(what: string, reply: NitroReply): DrainableError {
    const kind = classify(reply) === 'ok' ? 'unreadable' : classify(reply)
    return toError(`${this.url}: ${what.split('?')[0] ?? ''}`, this.#clean(reply), kind)
  }

  async send(call: Omit<HttpCall, 'signal' | 'headers'>, ctx: CallContext): Promise<NitroReply> {
    const signal = AbortSignal.any([ctx.signal, this.#closing.signal])
    return this.#gate.run(signal, async () => {
      const token = await this.#enter(signal)
      const reply = await this.#call(call, token, signal)
      if (classify(reply) !== 'relogin') return reply
      if (this.#options.auth === 'headers')
        throw toError(this.url, this.#clean(reply), 'credentials')
      if (this.#token === token) this.#token = undefined
      return this.#call(call, await this.#enter(signal), signal)
    })
  }

  /** Logs out and closes every socket. */
  async close(): Promise<void> {
    if (this.#closing.signal.aborted) return
    const closed = 'this provider is closed, make a new one'
    this.#closing.abort(
      new DrainableError('CONNECTION_LOST', `${this.url}: ${closed}`, {
        provider: 'citrix-adc',
        retryable: false,
      }),
    )
    await this.#login?.done.catch(() => undefined)
    const token = this.#token
    this.#token = undefined
    if (token !== undefined) {
      const signal = AbortSignal.timeout(LOGOUT_LIMIT)
      const path = pathOf('config', 'logout')
      // Whatever comes of it: the session ends by itself after sessionTimeout.
      await this.#call({ method: 'POST', path, body: { logout: {} } }, token, signal).catch(
        () => undefined,
      )
    }
    await this.#http.close()
  }

  async #call(
    call: Omit<HttpCall, 'signal' | 'headers'>,
    token: string,
    signal: AbortSignal,
  ): Promise<NitroReply> {
    const headers =
      this.#options.auth === 'headers'
        ? { 'x-nitro-user': this.#options.username, 'x-nitro-pass': token }
        : { cookie: `NITRO_AUTH_TOKEN=${token}` }
    const reply = await this.#http.call({ ...call, headers, signal })
    const warning = [reply.headers['x-nitro-warning'] ?? []].flat()[0]
    return parseReply(reply.status, reply.text, warning)
  }

  /** The token, or with header authentication the password. */
  async #enter(signal: AbortSignal): Promise<string> {
    if (this.#options.auth === 'headers') return this.#password()
    if (this.#token !== undefined) return this.#token
    this.#login ??= this.#startLogin()
    const login = this.#login
    login.waiting += 1
    try {
      return await abortable(login.done, signal)
    } finally {
      login.waiting -= 1
      // Nobody waits for it any more: no socket is left behind.
      if (login.waiting === 0) login.stop.abort(signal.reason)
    }
  }

  #startLogin(): Login {
    const stop = new AbortController()
    const done = this.#logIn(stop.signal).finally(() => {
      this.#login = undefined
    })
    done.catch(() => undefined)
    return { done, waiting: 0, stop }
  }

  async #logIn(signal: AbortSignal): Promise<string> {
    const seconds = Math.round(this.#options.sessionTimeout / 1_000)
    let first = await this.#password()
    let reply = await this.#postLogin(first, seconds, signal)
    if (reply.errorcode === 1219) reply = await this.#postLogin(first, undefined, signal)
    if (classify(reply.reply) === 'credentials' && typeof this.#options.password === 'function') {
      // It may have been rotated since: one more time, and only with another one.
      const again = await this.#password()
      if (again !== first) {
        first = again
        reply = await this.#postLogin(first, seconds, signal)
      }
    }
    if (reply.token === undefined) {
      const kind = classify(reply.reply)
      // Whatever the appliance calls it: with these credentials nobody gets in.
      const refused =
        kind === 'relogin' || kind === 'rights'
          ? 'credentials'
          : kind === 'ok'
            ? 'unreadable'
            : kind
      throw toError(
        `${this.url}: login as '${this.#options.username}'`,
        this.#clean(reply.reply),
        refused,
      )
    }
    this.#secrets = [first, reply.token, decoded(reply.token)]
    await this.#switchPartition(reply.token, signal)
    // Only now: whoever finds a token uses it, and would be in the default partition before.
    this.#token = reply.token
    return reply.token
  }

  async #postLogin(
    password: string,
    timeout: number | undefined,
    signal: AbortSignal,
  ): Promise<{ reply: NitroReply; errorcode: number; token: string | undefined }> {
    const { username } = this.#options
    const login = { username, password, ...(timeout === undefined ? {} : { timeout }) }
    const path = pathOf('config', 'login')
    const answer = await this.#http.call({ method: 'POST', path, body: { login }, signal })
    const reply = parseReply(answer.status, answer.text)
    const token =
      classify(reply) === 'ok'
        ? (cookieOf(answer.headers['set-cookie']) ?? tokenOf(reply.body['sessionid']))
        : undefined
    return { reply, errorcode: reply.errorcode, token }
  }

  async #switchPartition(token: string, signal: AbortSignal): Promise<void> {
    const { partition } = this.#options
    if (partition === undefined) return
    const path = pathOf('config', 'nspartition', undefined, 'action=Switch')
    const body = { nspartition: { partitionname: partition } }
    try {
      const reply = await this.#call({ method: 'POST', path, body }, token, signal)
      if (classify(reply) !== 'ok') {
        throw toError(`${this.url}: partition '${partition}'`, this.#clean(reply))
      }
    } catch (error) {
      // A session outside its partition would read and change other people's objects.
      await this.#call(
        { method: 'POST', path: pathOf('config', 'logout'), body: { logout: {} } },
        token,
        AbortSignal.timeout(LOGOUT_LIMIT),
      ).catch(() => undefined)
      throw error
    }
  }

  async #password(): Promise<string> {
    const password = await readSecret(this.#options.password, 'password')
    this.#secrets = [...new Set([...this.#secrets, password])].slice(-4)
    return password
  }

  #clean(reply: NitroReply): NitroReply {
    return { ...reply, message: redact(reply.message, this.#secrets) }
  }
}

/** The value as it stands in Set-Cookie: it goes back the same way. */
function cookieOf(header: string | string[] | undefined): string | undefined {
  for (const line of [header ?? []].flat()) {
    const match = /^\s*NITRO_AUTH_TOKEN=([^;\s]+)/i.exec(line)
    if (match?.[1] !== undefined && !/^deleted$/i.test(match[1]))
      return match[1].replace(/^"|"$/g, '')
  }
  return undefined
}

/** The token without its percent-encoding, where it has a proper one. */
function decoded(token: string): string {
  try {
    return decodeURIComponent(token)
  } catch {
    return token
  }
}

function tokenOf(sessionid: unknown): string | undefined {
  const text = toText(sessionid)
  return text === undefined || text === '' ? undefined : encodeURIComponent(text)
}

/** Whether an error means that the network, not the appliance, said no. */
export function isNetworkError(error: unknown): error is DrainableError {
  return isDrainableError(error, 'UNREACHABLE', 'CONNECTION_LOST', 'CALL_TIMEOUT')
}
