import { abortable } from '../provider/abort.js'
import type { CallContext, Secret } from '../provider/contract.js'
import { formatDuration } from '../provider/duration.js'
import { DrainableError } from '../provider/error.js'
import { readSecret, redact } from './secret.js'

/** For how long a refused password is not sent again, the first time and from the second on, in milliseconds. */
const REFUSED_FOR = [30_000, 300_000] as const
/** How many secrets are looked for in a product's words: the present ones, and those just replaced. */
const SECRETS_KEPT = 8

/** Whose password it is. */
export interface CredentialsOptions {
  /** Name of the provider, for errors. */
  readonly provider: string
  /** Where the login is, for errors: no secret in it. */
  readonly subject: string
  readonly username: string
  readonly password: Secret
}

/**
 * A user's password as it is now: fetched once however many ask at the same time, blacked out in whatever
 * a product says, and not sent again for a while once it was refused, because repeated wrong ones lock
 * the account. A function that returns another one since is sent at once.
 */
export class Credentials {
  readonly #options: CredentialsOptions
  #secrets: readonly string[] = []
  #password: string | undefined
  #asking: Promise<string> | undefined
  #refused: Refused | undefined

  constructor(options: CredentialsOptions) {
    this.#options = options
  }

  /**
   * Sends something with the password: once, and once more where it was refused and the function that
   * gave it returns another one now.
   *
   * @param send - a login, or a request that carries the password
   * @param refusal - the product's words, where what came back is a refusal of the password
   * @param fresh - ask the function first; without it the last password is used until it is refused
   * @returns what came back, a refusal too
   * @throws `UNAUTHENTICATED` where this password was refused lately: nothing was sent
   */
  async use<T>(
    ctx: Pick<CallContext, 'clock' | 'signal'>,
    send: (password: string) => Promise<T>,
    refusal: (reply: T) => string | undefined,
    fresh = false,
  ): Promise<T> {
    const password = await this.#get(ctx, fresh)
    const reply = await send(password)
    if (!this.#note(password, refusal(reply), ctx)) return reply
    if (typeof this.#options.password !== 'function') return reply
    const other = await this.#fetch(ctx.signal)
    if (other === password) return reply
    const second = await send(other)
    this.#note(other, refusal(second), ctx)
    return second
  }

  /** Adds what must not be printed either: a token, a header made of the password. */
  hide(secret: string): void {
    const others = this.#secrets.filter((known) => known !== secret)
    this.#secrets = [secret, ...others].slice(0, SECRETS_KEPT)
  }

  /** The product's words without secrets. */
  clean(text: string): string {
    return redact(text, this.#secrets)
  }

  async #get({ clock, signal }: Pick<CallContext, 'clock' | 'signal'>, fresh: boolean) {
    const known = fresh ? undefined : this.#password
    const password = known ?? (await this.#fetch(signal))
    const refused = this.#refused
    if (refused?.password !== password || clock.now() >= refused.until) return password
    const { provider, subject, username } = this.#options
    const left = formatDuration(refused.until - clock.now())
    throw new DrainableError(
      'UNAUTHENTICATED',
      `${subject}: login as '${username}': "${refused.words}"; the same password is not sent again for ${left}, so that the account is not locked`,
      { provider },
    )
  }

  /** Whether it was refused. */
  #note(
    password: string,
    words: string | undefined,
    { clock }: Pick<CallContext, 'clock'>,
  ): boolean {
    if (words === undefined) {
      this.#password = password
      this.#refused = undefined
      return false
    }
    this.#password = undefined
    const times = this.#refused?.password === password ? this.#refused.times + 1 : 0
    const wait = REFUSED_FOR[Math.min(times, REFUSED_FOR.length - 1)] ?? 0
    this.#refused = { password, words: this.clean(words), times, until: clock.now() + wait }
    return true
  }

  async #fetch(signal: AbortSignal): Promise<string> {
    const asking = (this.#asking ??= readSecret(this.#options.password, 'password'))
    try {
      const password = await abortable(asking, signal)
      this.hide(password)
      return password
    } finally {
      if (this.#asking === asking) this.#asking = undefined
    }
  }
}

/** A password that the product did not take. */
interface Refused {
  readonly password: string
  readonly words: string
  readonly times: number
  readonly until: number
}

interface Entering<T> {
  readonly done: Promise<T>
  waiting: number
  readonly stop: AbortController
}

/**
 * What a login gave, shared by every call: made once however many ask, given up when nobody waits for
 * it any more, and made again after the product has forgotten it.
 */
export class SharedLogin<T> {
  readonly #enter: (ctx: Pick<CallContext, 'clock' | 'signal'>) => Promise<T>
  #held: T | undefined
  #entering: Entering<T> | undefined

  /** @param enter - one login */
  constructor(enter: (ctx: Pick<CallContext, 'clock' | 'signal'>) => Promise<T>) {
    this.#enter = enter
  }

  /** What is held now, without a login. */
  get held(): T | undefined {
    return this.#held
  }

  /**
   * What the login gave; a login where there is none.
   *
   * @throws what the login threw, or `signal.reason` as soon as it fires
   */
  async get({ clock, signal }: Pick<CallContext, 'clock' | 'signal'>): Promise<T> {
    // One that was given up is waited for: two logins at once would be two sessions.
    while (this.#entering?.stop.signal.aborted === true)
      await abortable(
        this.#entering.done.catch(() => undefined),
        signal,
      )
    if (this.#held !== undefined) return this.#held
    const entering = (this.#entering ??= this.#start(clock))
    entering.waiting += 1
    try {
      return await abortable(entering.done, signal)
    } finally {
      entering.waiting -= 1
      // No socket is left behind for a login that nobody wants.
      if (entering.waiting === 0) entering.stop.abort(signal.reason)
    }
  }

  /** The product knows it no more: the next call logs in again, unless somebody did so already. */
  forget(held: T): void {
    if (this.#held === held) this.#held = undefined
  }

  /** Ends it: waits for a login under way and returns what is to be logged out, if anything. */
  async end(): Promise<T | undefined> {
    await this.#entering?.done.catch(() => undefined)
    const held = this.#held
    this.#held = undefined
    return held
  }

  #start(clock: CallContext['clock']): Entering<T> {
    const stop = new AbortController()
    const done = this.#enter({ clock, signal: stop.signal }).then(
      (held) => {
        this.#entering = undefined
        this.#held = held
        return held
      },
      (error: unknown) => {
        this.#entering = undefined
        throw error
      },
    )
    done.catch(() => undefined)
    return { done, waiting: 0, stop }
  }
}
