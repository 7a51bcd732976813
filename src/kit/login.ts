import { abortable } from '../provider/abort.js'
import { pause } from '../provider/clock.js'
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
  /** Shared with the logins of the other units, where one user of one pair logs in to several. */
  readonly trials?: SharedTrials
}

/** How long a unit waits for what another one says of a password that no unit has accepted yet, in milliseconds. */
const TRIAL_WAIT = 1_000
/** A unit that refused a password itself is asked so much later than one that was not asked, in milliseconds. */
const REFUSER_LAST = 30_000

/**
 * What the units of one pair say of one user's password. A wrong one is sent to one of them: a directory
 * behind them would count a failed login for each. One that another unit refused is not sent to a unit
 * that was not asked, for as long as it is not sent again there; what a unit has accepted itself, it is sent.
 */
export class SharedTrials {
  #under: Promise<unknown> | undefined
  #refused: Refused | undefined
  #accepted: string | undefined

  /**
   * Before a password is sent: waits, for a moment, while another unit tries one that none has accepted.
   *
   * @returns what to call once its answer is there
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

  /** That another unit refused it, where none has accepted it. */
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
    const leave = await this.#options.trials?.enter(password, ctx)
    try {
      this.#assertUntried(password, ctx)
      const reply = await send(password)
      if (!this.#note(password, refusal(reply), ctx)) return reply
      if (typeof this.#options.password !== 'function') return reply
      const other = await this.#fetch(ctx.signal)
      if (other === password) return reply
      const second = await send(other)
      this.#note(other, refusal(second), ctx)
      return second
    } finally {
      leave?.()
    }
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

  async #get({ signal }: Pick<CallContext, 'signal'>, fresh: boolean): Promise<string> {
    const known = fresh ? undefined : this.#password
    return known ?? this.#fetch(signal)
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

/**
 * For how long a login that no caller waits for any more may go on, in milliseconds. The product may have
 * made the session already, and one whose answer was not read is never logged out: products have few.
 */
const UNWANTED_FOR = 2_000

/** What one login works with. */
export interface LoginContext extends Pick<CallContext, 'clock' | 'signal'> {
  /**
   * To be called where the answer is later than a call may wait for: those that wait get the error, and the
   * login goes on for its answer, as one that no caller waits for. See {@link HttpCall.late}.
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
  /** Once no caller waited for it: ends the wait for its answer. */
  keep: (() => void) | undefined
}

/**
 * What a login gave, shared by every call: made once however many ask, given up a moment after no call
 * waits for it any more, and made again after the product has forgotten it.
 */
export class SharedLogin<T> {
  readonly #enter: (ctx: LoginContext) => Promise<T>
  #held: T | undefined
  #entering: Entering<T> | undefined

  /** @param enter - one login */
  constructor(enter: (ctx: LoginContext) => Promise<T>) {
    this.#enter = enter
  }

  /** What is held now, without a login. */
  get held(): T | undefined {
    return this.#held
  }

  /**
   * What the login gave; a login where there is none.
   *
   * @throws what the login threw or was late with, or `signal.reason` as soon as it fires
   */
  async get({ clock, signal }: Pick<CallContext, 'clock' | 'signal'>): Promise<T> {
    for (;;) {
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
        // One that is late already is waited for until it is given up: the answer may come now.
        const { done, late, isLate } = entering
        return await abortable(isLate ? done : Promise.race([done, late]), signal)
      } catch (error) {
        // It was unwanted before this call came, and has got no answer in its time: it is made anew.
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

  /** The product knows it no more: the next call logs in again, unless another call did so already. */
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
    const done = this.#enter({ clock, signal: stop.signal, late: tell }).then(
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
