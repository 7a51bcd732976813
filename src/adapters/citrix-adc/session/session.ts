import { systemClock, type Clock } from '../../../provider/clock.js'
import { DrainableError, isDrainableError } from '../../../provider/error.js'
import type { CallContext } from '../../../provider/contract.js'
import { ApplianceClient, type CallLimits, type Request } from '../../../kit/appliance-client.js'
import type { HttpReply } from '../../../kit/http.js'
import { cutShort } from '../../../kit/json.js'
import type { Spending } from '../../../kit/look-cost.js'
import { SharedLogin, type LoginContext, type SharedTrials } from '../../../kit/login.js'
import { askedAgain, doubling } from '../../../kit/retry.js'
import { Turnstile } from '../../../kit/turnstile.js'
import { type Command, type NitroReply, parseReply, pathOf } from '../codec/nitro.js'
import { classify, isBusy, toError, type ReplyClass } from '../codec/errors.js'
import { whyNoHeader, type Settings } from '../options.js'

/** A busy appliance is asked four times in all, in milliseconds between two tries. */
export const BUSY = doubling(250, 3)
/** What a logout may take, in milliseconds. */
const LOGOUT_LIMIT = 2_000

/**
 * One address of an appliance, and the one session we have there.
 *
 * Sessions are few (445) and forgotten ones block all clients until they time out: there is one at a
 * time, its token is shared by all calls, at most two calls are under way, and it is logged out at
 * the end whatever happened. An ended session shows by errorcode, under 401 or under 200: we log in
 * again once and send the call once more, which is safe for changes too since it was not carried out.
 */
export class NitroSession {
  readonly url: string
  readonly #options: Settings
  readonly #client: ApplianceClient
  readonly #gate = new Turnstile(2)
  readonly #login = new SharedLogin<string>((ctx) => this.#logIn(ctx))
  #logins = 0

  /** @param trials - what the other addresses say of the password */
  constructor(url: string, options: Settings, trials?: SharedTrials) {
    this.#options = options
    this.url = new URL(url).origin
    const subject = this.url
    const settings = options
    this.#client = new ApplianceClient({ provider: 'citrix-adc', url, subject, settings, trials })
  }

  /** What its requests take. */
  get spending(): Spending {
    return this.#client.spending
  }

  /**
   * Reads. A busy appliance is asked again after a while.
   *
   * @returns the reply, of class `ok` or `absent`
   * @throws for every other reply, and where none came
   */
  async get(path: string, ctx: CallContext): Promise<NitroReply> {
    const reply = await askedAgain(ctx, BUSY, isBusy, () => this.send({ method: 'GET', path }, ctx))
    const kind = classify(reply)
    // A reading of no bytes, or of a stranger's JSON, says nothing: it must not pass for "no rows".
    const usable = kind === 'ok' && !reply.empty && reply.stated
    if (usable || (kind === 'absent' && reply.readable)) return reply
    throw this.error(`GET ${path}`, reply)
  }

  /** Sends a change, once. Every reply is a value. */
  post({ method = 'POST', ...command }: Command, ctx: CallContext): Promise<NitroReply> {
    return this.send({ method, ...command }, ctx)
  }

  /** How often it was logged in: a login more can mean that the appliance has started anew. */
  get logins(): number {
    return this.#logins
  }

  /** A reply as an error, without what the product may have repeated of our secrets. */
  error(what: string, reply: NitroReply): DrainableError {
    const kind = classify(reply) === 'ok' ? 'unreadable' : classify(reply)
    return toError(`${this.url}: ${what.split('?')[0] ?? ''}`, this.#clean(reply), kind)
  }

  async send(call: Request, ctx: CallContext): Promise<NitroReply> {
    return this.#gate.run(ctx.signal, async () => {
      this.#client.assertOpen()
      if (this.#options.auth === 'headers') return this.#callWithPassword(call, ctx)
      const token = await this.#login.get(ctx)
      const reply = await this.#call(call, withToken(token), ctx)
      if (classify(reply) !== 'relogin') return reply
      this.#login.forget(token)
      return this.#call(call, withToken(await this.#login.get(ctx)), ctx)
    })
  }

  /** Logs out and closes every socket. */
  async close(): Promise<void> {
    await this.#client.close(async () => {
      const token = await this.#login.end()
      if (token !== undefined) await this.#logOut(token, systemClock)
    })
  }

  /** A request with the credentials in its headers: no session, and no login to repeat. */
  async #callWithPassword(call: Request, ctx: CallLimits): Promise<NitroReply> {
    const reply = await this.#client.credentials.use(
      ctx,
      (password) => {
        const wrong = whyNoHeader(password)
        if (wrong !== undefined) {
          const words = `password: what the function returned ${wrong}; nothing was sent`
          throw new DrainableError('INVALID_OPTIONS', words, { provider: 'citrix-adc' })
        }
        const headers = { 'x-nitro-user': this.#options.username, 'x-nitro-pass': password }
        return this.#call(call, headers, ctx)
      },
      (answer) => refusalOf(answer, 'credentials', 'relogin'),
    )
    if (classify(reply) === 'relogin') throw toError(this.url, this.#clean(reply), 'credentials')
    return reply
  }

  async #call(
    call: Request,
    headers: Readonly<Record<string, string>>,
    ctx: CallLimits,
  ): Promise<NitroReply> {
    const reply = await this.#client.timed(
      { ...call, headers: { ...call.headers, ...headers } },
      ctx,
    )
    const warning = [reply.headers['x-nitro-warning'] ?? []].flat()[0]
    return this.#parse(call, reply, warning)
  }

  /** @throws `CONNECTION_LOST` where an answer that is a success ends in its middle */
  #parse({ method, path }: Request, { status, text }: HttpReply, warning?: string): NitroReply {
    const what = `${this.url}: ${method} ${path.split('?')[0] ?? ''}`
    const clean = (words: string): string => this.#client.credentials.clean(words)
    const source = { provider: 'citrix-adc', what, clean }
    const reply = parseReply(status, text, warning, source)
    if (reply.cut && status < 300) throw cutShort(source, text)
    return reply
  }

  async #logIn(ctx: LoginContext): Promise<string> {
    const seconds = Math.round(this.#options.sessionTimeout / 1_000)
    const answer = await this.#client.credentials.use(
      ctx,
      async (password) => {
        const first = await this.#postLogin(password, seconds, ctx)
        return first.errorcode === 1219 ? this.#postLogin(password, undefined, ctx) : first
      },
      // Whatever the appliance calls it: with these credentials no login works.
      ({ reply }) => refusalOf(reply, 'credentials', 'relogin', 'rights'),
      true,
    )
    const { token, reply } = answer
    if (token === undefined) {
      const kind = classify(reply)
      const refused =
        kind === 'relogin' || kind === 'rights'
          ? 'credentials'
          : kind === 'ok'
            ? 'unreadable'
            : kind
      const what = `${this.url}: login as '${this.#options.username}'`
      // What came with a success may have a token in it.
      const shown = reply.status < 300 ? { ...reply, message: '' } : this.#clean(reply)
      throw toError(what, shown, refused)
    }
    this.#logins += 1
    this.#client.credentials.hide(token)
    this.#client.credentials.hide(decoded(token))
    // Whoever finds a token uses it, and would be in the default partition before.
    await this.#switchPartition(token, ctx)
    return token
  }

  async #postLogin(
    password: string,
    timeout: number | undefined,
    ctx: LoginContext,
  ): Promise<{ reply: NitroReply; errorcode: number; token: string | undefined }> {
    const { username } = this.#options
    const login = { username, password, ...(timeout === undefined ? {} : { timeout }) }
    const path = pathOf('config', 'login')
    const call = { method: 'POST', path, body: { login } } as const
    const answer = await this.#client.call(call, ctx)
    const reply = this.#parse(call, answer)
    const token =
      classify(reply) === 'ok'
        ? (cookieOf(answer.headers['set-cookie']) ?? tokenOf(reply.body.at('sessionid').word()))
        : undefined
    return { reply, errorcode: reply.errorcode, token }
  }

  async #switchPartition(token: string, ctx: CallLimits): Promise<void> {
    const { partition } = this.#options
    if (partition === undefined) return
    const path = pathOf('config', 'nspartition', undefined, 'action=Switch')
    const body = { nspartition: { partitionname: partition } }
    try {
      const reply = await this.#call({ method: 'POST', path, body }, withToken(token), ctx)
      if (classify(reply) !== 'ok') {
        throw toError(`${this.url}: partition '${partition}'`, this.#clean(reply))
      }
    } catch (error) {
      // A session outside its partition would read and change other people's objects.
      await this.#logOut(token, ctx.clock)
      throw error
    }
  }

  /** Whatever comes of it: the session ends by itself after sessionTimeout. */
  async #logOut(token: string, clock: Clock): Promise<void> {
    const call = { method: 'POST', path: pathOf('config', 'logout'), body: { logout: {} } } as const
    const ctx = { clock, signal: new AbortController().signal }
    await this.#call({ ...call, timeout: LOGOUT_LIMIT }, withToken(token), ctx).catch(
      () => undefined,
    )
  }

  #clean(reply: NitroReply): NitroReply {
    return { ...reply, message: this.#client.credentials.clean(reply.message) }
  }
}

function withToken(token: string): Readonly<Record<string, string>> {
  return { cookie: `NITRO_AUTH_TOKEN=${token}` }
}

/** The words of an answer of one of these classes. */
function refusalOf(reply: NitroReply, ...classes: readonly ReplyClass[]): string | undefined {
  return classes.includes(classify(reply)) ? reply.message : undefined
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

function tokenOf(text: string | undefined): string | undefined {
  return text === undefined || text === '' ? undefined : encodeURIComponent(text)
}

/** Whether an error means that the network, not the appliance, said no. */
export function isNetworkError(error: unknown): error is DrainableError {
  return isDrainableError(error, 'UNREACHABLE', 'CONNECTION_LOST', 'CALL_TIMEOUT')
}
