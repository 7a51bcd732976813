import { abortable } from '../provider/abort.js'
import { pause } from '../provider/clock.js'
import type { Secret } from '../provider/option-schemas.js'
import type { CallContext } from '../provider/contract.js'
import { formatDuration } from '../provider/duration.js'
import { DrainableError } from '../provider/error.js'
import { readSecret, redact } from './options.js'

/** How long a refused password is not sent again, for the first refusal and from the second on, in milliseconds. */
const REFUSED_FOR = [30_000, 300_000] as const
/** How many secrets are removed from a product's words: the present ones, and those just replaced. */
const SECRETS_KEPT = 8

/** Options of {@link Credentials}. */
export interface CredentialsOptions {
  /** Name of the provider, for errors. */
  readonly provider: string
  /** The place of the login, for errors, without secrets. */
  readonly subject: string
  readonly username: string
  readonly password: Secret
  /** Shared with the logins of the other units, if one user logs in to several units of one group. */
  readonly trials?: SharedTrials
}

/** How long a unit waits for another unit's answer to a password that no unit has accepted yet, in milliseconds. */
const TRIAL_WAIT = 1_000
/** How much later a unit that refused a password is asked than one that was not asked, in milliseconds. */
const REFUSER_LAST = 30_000

/**
 * Shares the answers of the units of one pair or group to one user's password. A wrong password is sent to only one of them,
 * because a directory behind them would count a failed login for each. A password that another unit refused is not
 * sent to a unit that was not asked, as long as it is not sent to the other unit again. A unit still gets a password
 * that it accepted itself.
 */
export class SharedTrials {
  #under: Promise<unknown> | undefined
  #refused: Refused | undefined
  #accepted: string | undefined

  /**
   * Called before a password is sent: waits for a moment while another unit tries a password that none has accepted.
   *
   * @returns a function to call once the answer has come
   */
  async enter(
    password: string,
    { clock, signal }: Pick<CallContext, 'clock' | 'signal'>,
  ): Promise<() => void> {
    const end = clock.now() + TRIAL_WAIT
    while (this.#under !== undefined && password !== this.#accepted && clock.now() < end) {
      const stop = new AbortController()
      const limit = pause(clock, end - clock.now(), AbortSignal.any([signal, stop.signal]))
      limit.catch(() => undefined)
      await Promise.race([this.#under, limit])
      stop.abort()
    }
    if (password === this.#accepted || this.#under !== undefined) return () => undefined
    const { promise, resolve } = Promise.withResolvers<undefined>()
    this.#under = promise
    return () => {
      if (this.#under === promise) this.#under = undefined
      resolve(undefined)
    }
  }

  /** The refusal of another unit, if none has accepted the password. */
  refused(password: string): Refused | undefined {
    return this.#refused?.password === password ? this.#refused : undefined
  }

  note(password: string, refused: Refused | undefined): void {
    if (refused === undefined) {
      this.#accepted = password
      if (this.#refused?.password === password) this.#refused = undefined
    } else if (this.#accepted !== password) this.#refused = refused
  }
}

/**
 * A user's present password: fetched once for concurrent calls, removed from a product's words, and not sent again
 * for a while once it was refused, because repeated wrong logins lock the account. If the function returns another
 * password since, that one is sent at once.
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
   * Sends something with the password: once, and once more if it was refused and the password function returns
   * another one now.
   *
   * @param send - a login, or a request that carries the password
   * @param refusal - returns the product's words if the result is a refusal of the password
   * @param fresh - call the password function first; otherwise the last password is used until it is refused
   * @returns the result, which can be a refusal
   * @throws `UNAUTHENTICATED` if this password was refused lately: nothing was sent
   */
  async use<T>(
    ctx: Pick<CallContext, 'clock' | 'signal'>,
    send: (password: string) => Promise<T>,
    refusal: (reply: T) => string | undefined,
    fresh = false,
  ): Promise<T> {
    const password = await this.#get(ctx, fresh)
    const leave = await this.#options.trials?.enter(password, ctx)
    try {
      this.#assertUntried(password, ctx)
      const reply = await send(password)
      if (!this.#note(password, refusal(reply), ctx)) return reply
      if (typeof this.#options.password !== 'function') return reply
      const other = await this.#fetch(ctx)
      if (other === password) return reply
      const second = await send(other)
      this.#note(other, refusal(second), ctx)
      return second
    } finally {
      leave?.()
    }
  }

  /** Adds another text that must not be printed: a token, a header made of the password. */
  hide(secret: string): void {
    const others = this.#secrets.filter((known) => known !== secret)
    this.#secrets = [secret, ...others].slice(0, SECRETS_KEPT)
  }

  /** Removes secrets from the product's words. */
  clean(text: string): string {
    return redact(text, this.#secrets)
  }

  async #get(ctx: Pick<CallContext, 'clock' | 'signal'>, fresh: boolean): Promise<string> {
    const known = fresh ? undefined : this.#password
    return known ?? this.#fetch(ctx)
  }

  /** @throws `UNAUTHENTICATED` */
  #assertUntried(password: string, { clock }: Pick<CallContext, 'clock'>): void {
    if (password === this.#password) return
    const own = this.#refused?.password === password ? this.#refused : undefined
    const refused = own ?? this.#options.trials?.refused(password)
    if (refused === undefined || clock.now() >= refused.until) return
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
      this.#options.trials?.note(password, undefined)
      return false
    }
    const { trials } = this.#options
    this.#password = undefined
    const before = this.#refused?.password === password ? this.#refused : trials?.refused(password)
    const times = before === undefined ? 0 : before.times + 1
    const wait = REFUSED_FOR[Math.min(times, REFUSED_FOR.length - 1)] ?? 0
    const refused = { password, words: this.clean(words), times, until: clock.now() + wait }
    trials?.note(password, refused)
    const last = trials === undefined ? 0 : REFUSER_LAST
    this.#refused = { ...refused, until: refused.until + last }
    return true
  }

  async #fetch({ clock, signal }: Pick<CallContext, 'clock' | 'signal'>): Promise<string> {
    const asking = (this.#asking ??= readSecret(this.#options.password, 'password', clock))
    try {
      const password = await abortable(asking, signal)
      this.hide(password)
      return password
    } finally {
      if (this.#asking === asking) this.#asking = undefined
    }
  }
}

/** A password that the product refused. */
interface Refused {
  readonly password: string
  readonly words: string
  readonly times: number
  readonly until: number
}

/**
 * How long a login goes on that no caller waits for any more, in milliseconds. The product may have made the session
 * already, and without its answer the session is never logged out: products have few sessions.
 */
const UNWANTED_FOR = 2_000

/** The context of one login. */
export interface LoginContext extends Pick<CallContext, 'clock' | 'signal' | 'until'> {
  /**
   * Call it if the answer is later than a call can wait: waiting callers get the error, and the login keeps waiting
   * for its answer without a caller. See {@link HttpCall.late}.
   */
  readonly late: (error: Error) => void
}

interface Entering<T> {
  readonly done: Promise<T>
  /** Rejects once its answer is late. */
  readonly late: Promise<never>
  isLate: boolean
  waiting: number
  readonly stop: AbortController
  /** Ends the wait for the answer of a login without a caller. */
  keep: (() => void) | undefined
}

/**
 * The result of a login, shared by every call: made once for concurrent calls, given up a moment after the last call
 * stops waiting, and made again after the product has forgotten it.
 */
export class SharedLogin<T> {
  readonly #enter: (ctx: LoginContext) => Promise<T>
  #held: T | undefined
  #entering: Entering<T> | undefined

  /** @param enter - one login */
  constructor(enter: (ctx: LoginContext) => Promise<T>) {
    this.#enter = enter
  }

  /** The present result, without a new login. */
  get held(): T | undefined {
    return this.#held
  }

  /**
   * Returns the result of the login; logs in if there is none.
   *
   * @throws the login's error or time-out, or `signal.reason` as soon as it fires
   */
  async get({ clock, signal, until }: Pick<CallContext, 'clock' | 'signal' | 'until'>): Promise<T> {
    for (;;) {
      // Wait for a login that was given up: two logins at once would be two sessions.
      while (this.#entering?.stop.signal.aborted === true)
        await abortable(
          this.#entering.done.catch(() => undefined),
          signal,
        )
      if (this.#held !== undefined) return this.#held
      const entering = (this.#entering ??= this.#start(clock, until))
      entering.waiting += 1
      try {
        // Wait for a late login until it is given up: the answer can come now.
        const { done, late, isLate } = entering
        return await abortable(isLate ? done : Promise.race([done, late]), signal)
      } catch (error) {
        // It had no caller before this call and got no answer in time: log in again.
        if (signal.aborted || !entering.stop.signal.aborted) throw error
      } finally {
        entering.waiting -= 1
        if (entering.waiting === 0 && this.#entering === entering) {
          const end = (): void => entering.stop.abort(signal.reason)
          entering.keep ??= clock.setTimeout(end, UNWANTED_FOR)
        }
      }
    }
  }

  /** The product has forgotten the session: the next call logs in again, unless another call did so already. */
  forget(held: T): void {
    if (this.#held === held) this.#held = undefined
  }

  /** Ends it: waits for a login in progress and returns the session to log out, if any. */
  async end(): Promise<T | undefined> {
    await this.#entering?.done.catch(() => undefined)
    const held = this.#held
    this.#held = undefined
    return held
  }

  #start(clock: CallContext['clock'], until: CallContext['until']): Entering<T> {
    const stop = new AbortController()
    const ended = (): void => {
      this.#entering?.keep?.()
      this.#entering = undefined
    }
    const { promise: late, reject } = Promise.withResolvers<never>()
    late.catch(() => undefined)
    const tell = (error: Error): void => {
      entering.isLate = true
      reject(error)
    }
    const ctx = { clock, signal: stop.signal, late: tell }
    const done = this.#enter(until === undefined ? ctx : { ...ctx, until }).then(
      (held) => {
        ended()
        this.#held = held
        return held
      },
      (error: unknown) => {
        ended()
        throw error
      },
    )
    done.catch(() => undefined)
    const entering: Entering<T> = { done, late, isLate: false, waiting: 0, stop, keep: undefined }
    return entering
  }
}
