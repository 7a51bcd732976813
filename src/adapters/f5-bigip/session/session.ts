import { pause, systemClock } from '../../../provider/clock.js'
import { settledWithin } from '../../../provider/abort.js'
import { DrainableError } from '../../../provider/error.js'
import type { CallContext } from '../../../provider/contract.js'
import { ApplianceClient, type CallLimits, type Request } from '../../../kit/appliance-client.js'
import { JsonValue, type Source } from '../../../kit/json.js'
import { SharedLogin, type LoginContext, type SharedTrials } from '../../../kit/login.js'
import type { Spending } from '../../../kit/look-cost.js'
import { askedAgain } from '../../../kit/retry.js'
import { Turnstile } from '../../../kit/turnstile.js'
import { parseLogin } from '../codec/device.js'
import { classify, LEFT_OPEN, TROUBLES, type Meaning, type Trouble } from '../codec/errors.js'
import type { Settings } from '../options.js'

export const PROVIDER = 'f5-bigip'

/** Waits before a read is repeated while the control plane is busy, in milliseconds; longer troubles are the caller's to wait for. */
const BACKOFF = [250]
/** How long the password is sent with each request once the device had no token left. */
const BASIC_FOR = 300_000
const LOGOUT_TIMEOUT = 2_000
/** For how long a change without an answer keeps other requests waiting, in milliseconds. */
const LETS_IN_AFTER = 2_000
/** Waits before what came with credentials that a device did not see is sent again, in milliseconds. */
const UNSEEN = [0, 250, 500]
export interface Ask extends Pick<Request, 'method' | 'path' | 'body'> {
  /** Repeat while the device is busy; only for what changes nothing. Default: for GET. */
  readonly patient?: boolean
}

/** The error of an answer that says nothing of what became of a change that must not be repeated. */
export function mayBeDone(error: DrainableError): DrainableError {
  return new DrainableError('CONNECTION_LOST', `${error.message}; it may have been carried out`, {
    provider: PROVIDER,
    cause: error,
  })
}

/** What a login gave. */
interface Token {
  /** Undefined: the user has no token left, the password is sent with each request for a while. */
  readonly name: string | undefined
  /** On the clock: after which a new one is asked for. */
  readonly renewAt: number
}

/**
 * One unit's REST interface under one login: a request at a time, a token shared by all of them and
 * renewed before it runs out, one repeat after a 401, patience while the control plane restarts.
 */
export class Session {
  /** Host and port, for messages and as the name of the scope. */
  readonly host: string
  readonly #settings: Settings
  readonly #client: ApplianceClient
  /** One request at a time: the REST services are slow, and run out of memory under load. */
  readonly #turn = new Turnstile()
  readonly #login = new SharedLogin<Token>((ctx) => this.#logIn(ctx))

  /** @param trials - what the other units of the group say of the password */
  constructor(url: string, settings: Settings, trials?: SharedTrials) {
    this.host = new URL(url).host
    this.#settings = settings
    const subject = this.host
    this.#client = new ApplianceClient({ provider: PROVIDER, url, subject, settings, trials })
  }

  /** What its requests take. */
  get spending(): Spending {
    return this.#client.spending
  }

  /** Sends a request in its turn; every answer but a busy or unauthenticated one is a value. */
  async ask(ask: Ask, ctx: CallContext): Promise<Meaning> {
    const patient = ask.patient ?? ask.method === 'GET'
    const once = (): Promise<Meaning> => this.#inTurn(ask, ctx)
    if (!patient) return once()
    return askedAgain(ctx, BACKOFF, ({ kind }) => kind !== 'garbage' && LEFT_OPEN.has(kind), once)
  }

  /**
   * Reads an object.
   *
   * @param without - answers that mean that there is none, beside the one that says so
   */
  async get(
    path: string,
    ctx: CallContext,
    ...without: Trouble['kind'][]
  ): Promise<JsonValue | undefined> {
    const what = `GET ${pathOf({ path })}`
    const meaning = await this.ask({ method: 'GET', path }, ctx)
    if (meaning.kind === 'ok') return this.value(meaning, what)
    if (meaning.kind === 'absent' || without.includes(meaning.kind)) return undefined
    throw this.toError(meaning, what)
  }

  /**
   * Sends what must not be repeated.
   *
   * @param known - what else than a success the caller knows what to make of
   * @throws any other answer, in words that say so where it may have been carried out all the same
   */
  async change(ask: Ask, ctx: CallContext, ...known: Trouble['kind'][]): Promise<Meaning> {
    const meaning = await this.ask(ask, ctx)
    if (meaning.kind === 'ok' || known.includes(meaning.kind)) return meaning
    const error = this.toError(meaning, `${ask.method} ${pathOf(ask)}`)
    throw LEFT_OPEN.has(meaning.kind) && meaning.kind !== 'open' ? mayBeDone(error) : error
  }

  /** An answer as a value to look into. */
  value({ json }: Extract<Meaning, { kind: 'ok' }>, what: string): JsonValue {
    return new JsonValue(json, this.#source(what))
  }

  /** An answer that is no success, as an error. */
  toError({ kind, message }: Trouble, what: string): DrainableError {
    const { code, says, ...more } = TROUBLES[kind]
    const remedy = says.replace('{user}', () => this.#settings.username)
    const words = `${what} at ${this.host}: "${this.clean(message)}"${remedy}`
    return new DrainableError(code, words, { provider: PROVIDER, ...more })
  }

  /** Words of the device without secrets. */
  clean(text: string): string {
    return this.#client.credentials.clean(text)
  }

  /** Logs out, as tokens are counted, and closes the socket. */
  async close(): Promise<void> {
    const ctx = { clock: systemClock, signal: new AbortController().signal }
    await this.#client.close(async () => {
      const token = await this.#login.end()
      if (token !== undefined) await this.#drop(token, token, ctx)
    })
  }

  /** A change that gets no answer lets looks in after a while: they show what happens meanwhile. */
  async #inTurn(ask: Ask, ctx: CallContext): Promise<Meaning> {
    if (ask.method === 'GET') return this.#turn.run(ctx.signal, () => this.#answered(ask, ctx))
    const { answer } = await this.#turn.run(ctx.signal, async () => {
      const answer = this.#answered(ask, ctx)
      await settledWithin(answer, ctx.clock, LETS_IN_AFTER)
      return { answer } // in an object, so that the turn ends without it
    })
    return answer
  }

  /** An answer to good credentials, as far as another try or another token makes them good. */
  async #answered(ask: Ask, ctx: CallContext): Promise<Meaning> {
    this.#client.assertOpen()
    let unseen = 0
    let renewed = false
    for (;;) {
      const token = await this.#token(ctx)
      const meaning = await this.#sendWith(token.name, ask, ctx)
      if (meaning.kind !== 'unauthenticated' && meaning.kind !== 'unseen') return meaning
      if (meaning.kind === 'unseen') {
        // Good credentials are turned away now and then as if they were not there: they are sent again.
        const wait = UNSEEN[unseen]
        if (wait === undefined) return meaning
        unseen += 1
        await pause(ctx.clock, wait, ctx.signal)
        if (unseen === 1) continue
      }
      if (token.name !== undefined && !renewed) {
        renewed = true
        this.#login.forget(token)
        if (hasExpired(meaning)) await this.#drop(token, await this.#token(ctx), ctx)
      } else if (meaning.kind === 'unauthenticated') return meaning
    }
  }

  async #sendWith(token: string | undefined, ask: Ask, ctx: CallContext): Promise<Meaning> {
    const { method, path, body } = ask
    const send = async (headers: Readonly<Record<string, string>>): Promise<Meaning> => {
      const reply = await this.#client.timed({ method, path, body, headers }, ctx)
      const meaning = classify(reply.status, reply.text, ask.method !== 'GET')
      // As lost as one whose connection broke: whoever sent a change must not take it for an answer.
      if (meaning.kind === 'cut') throw this.toError(meaning, `${ask.method} ${pathOf(ask)}`)
      return meaning
    }
    if (token !== undefined) return send({ 'x-f5-auth-token': token })
    // Basic credentials that are refused count as failed logins
    return this.#client.credentials.use(ctx, (password) => send(this.#basic(password)), refusalOf)
  }

  #source(what: string): Source {
    const clean = (text: string): string => this.clean(text)
    return { provider: PROVIDER, what: `${what} at ${this.host}`, clean }
  }

  /** The token, renewed before it runs out; the old one is dropped then, as tokens are counted. */
  async #token(ctx: CallContext): Promise<Token> {
    if (this.#settings.auth === 'basic') return { name: undefined, renewAt: Infinity }
    const old = this.#login.held
    if (old === undefined || ctx.clock.now() < old.renewAt) return this.#login.get(ctx)
    this.#login.forget(old)
    const token = await this.#login.get(ctx)
    await this.#drop(old, old, ctx)
    return token
  }

  async #logIn(ctx: LoginContext): Promise<Token> {
    const at = ctx.clock.now()
    const meaning = await this.#client.credentials.use(
      ctx,
      (password) => this.#postLogin(password, ctx),
      refusalOf,
      true,
    )
    if (meaning.kind === 'ok') {
      const hidden = (): string => '(not shown)' // whatever stands where a token should may be one
      const source = { ...this.#source('login'), clean: hidden }
      const { token, lifetime } = parseLogin(new JsonValue(meaning.json, source))
      this.#client.credentials.hide(token)
      return { name: token, renewAt: at + lifetime - Math.min(60_000, lifetime / 5) }
    }
    if (meaning.kind === 'too-many-tokens')
      return { name: undefined, renewAt: ctx.clock.now() + BASIC_FOR }
    // What came with a success may have a token in it.
    throw this.toError(meaning.kind === 'garbage' ? UNREADABLE_LOGIN : meaning, 'login')
  }

  async #postLogin(password: string, ctx: LoginContext): Promise<Meaning> {
    const { username, loginProvider } = this.#settings
    const body = { username, password, loginProviderName: loginProvider }
    const headers = this.#basic(password)
    const request = { method: 'POST', path: '/mgmt/shared/authn/login', body, headers } as const
    // 12.0 wanted both, and F5's own clients send both.
    return askedAgain(
      ctx,
      UNSEEN,
      ({ kind }) => kind === 'unseen',
      async () => {
        const reply = await this.#client.call(request, ctx)
        return classify(reply.status, reply.text)
      },
    )
  }

  #basic(password: string): Readonly<Record<string, string>> {
    const value = Buffer.from(`${this.#settings.username}:${password}`).toString('base64')
    this.#client.credentials.hide(value)
    return { authorization: `Basic ${value}` }
  }

  /** Best effort: an old token runs out by itself, and counts among those of its user until then. */
  async #drop({ name }: Token, by: Token, ctx: CallLimits): Promise<void> {
    if (name === undefined || by.name === undefined) return
    const path = `/mgmt/shared/authz/tokens/${encodeURIComponent(name)}`
    const headers = { 'x-f5-auth-token': by.name }
    const request = { method: 'DELETE', path, headers, timeout: LOGOUT_TIMEOUT } as const
    await this.#client.call(request, ctx).catch(() => undefined) // counted until it runs out
  }
}

/** Of a query there can be much, and names of members. */
function pathOf({ path }: Pick<Ask, 'path'>): string {
  return path.split('?')[0] ?? path
}

const UNREADABLE_LOGIN = { kind: 'garbage', message: '(not shown)' } as const

function hasExpired(meaning: Meaning): boolean {
  return meaning.kind === 'unauthenticated' && /has expired/i.test(meaning.message)
}

/** The words of an answer that says that user or password is wrong. */
function refusalOf(meaning: Meaning): string | undefined {
  return meaning.kind === 'unauthenticated' ? meaning.message : undefined
}
