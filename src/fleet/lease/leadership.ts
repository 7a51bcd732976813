import { nodeOs } from '../../provider/builtins.js'
import type { Waits } from '../../provider/abort.js'
import { isoOf, pause, wallOf, type Clock } from '../../provider/clock.js'
import type { CallContext } from '../../provider/contract.js'
import { DrainableError, wordsOf } from '../../provider/error.js'
import { quote } from '../../provider/quote.js'
import { bounded } from '../../core/balancer/look/call.js'
import type { Lease, LeaseAnswer, LeaseGrant } from './lease.js'
import type { LeaseTerm } from '../../core/balancer/owner.js'

/** How long a lease is taken for, in milliseconds. Kubernetes' leader election uses 15, 10 and 2 s. */
export const LEASE_TTL = 15_000
/** The part of it after which, without an answer to a renewal, nothing is changed any more. */
const RENEW_DEADLINE = 2 / 3
/** The part of it between two renewals, or two tries to get it. */
const RETRY = 2 / 15
/** The part of it that one renewal can take: that leaves time for another try if one hangs. */
const RENEW_LIMIT = 1 / 4
/** How long a release can take, in milliseconds: the lease ends by itself anyway. */
const RELEASE_LIMIT = 2_000

/** Options of a contender. */
export interface LeadershipOptions {
  readonly lease: Lease
  /** Milliseconds. */
  readonly ttl: number
  readonly clock: Clock
  /** The contender's name, in the caller's own words. */
  readonly owner?: string | undefined
  /** The name of the called function, for messages. */
  readonly subject: string
  /** Told of the calls that have no answer yet. */
  readonly waits?: Waits
}

/** A contender for one lease. */
export class Leadership {
  readonly #options: LeadershipOptions
  /**
   * The globally unique name of this contender, readable: another client that sees it as the holder knows where to
   * look.
   */
  readonly holder: string

  constructor(options: LeadershipOptions) {
    this.#options = options
    const named = options.owner === undefined ? '' : `${options.owner} on `
    this.holder = `${named}${nodeOs().hostname()} pid ${process.pid} ${crypto.randomUUID().slice(0, 8)}`
  }

  /** How long to wait before the next try, in milliseconds. */
  get retry(): number {
    return this.#options.ttl * RETRY
  }

  /**
   * Asks once.
   *
   * @returns the term, or the present holder
   * @throws the engine's own error; `signal.reason`
   */
  async acquire(signal: AbortSignal): Promise<Term | { readonly holder: string | null }> {
    const { lease, ttl, clock } = this.#options
    const limit = ttl * RENEW_DEADLINE
    const sent = momentOf(clock)
    const answer = await ask(this.#options, 'acquire', limit, [signal], (context) =>
      lease.acquire(this.holder, ttl, context),
    )
    const granted = checkAnswer(answer, lease.name)
    if (!granted.granted) return { holder: granted.holder }
    return new Term({ holder: this.holder, fence: granted.fence }, sent, this.#options)
  }

  /**
   * Asks again and again while another contender holds it.
   *
   * @param limit - for how long, in milliseconds; 0: it is asked once
   * @param say - told who has it, and until when it is waited for, in ISO 8601
   * @throws `NOT_LEADER` naming the holder; the engine's own error; `signal.reason`
   */
  async acquireWithin(
    limit: number,
    signal: AbortSignal,
    say: (refusal: DrainableError, until: string) => void,
  ): Promise<Term> {
    const { clock } = this.#options
    const until = clock.now() + limit
    for (;;) {
      const answer = await this.acquire(signal)
      if (answer instanceof Term) return answer
      const refusal = this.refusal(answer.holder)
      if (clock.now() >= until) throw refusal
      say(refusal, isoOf(clock, until - clock.now()))
      await pause(clock, this.retry, signal)
    }
  }

  /** The error if another contender holds the lease. */
  refusal(holder: string | null): DrainableError {
    const { lease, subject } = this.#options
    const by = holder === null ? 'another contender' : `'${quote(holder)}'`
    return new DrainableError(
      'NOT_LEADER',
      `${subject}: the lease ${quote(lease.name)} is held by ${by}: nothing was changed`,
    )
  }
}

/** A call of the engine. @param limit - milliseconds @throws the engine's own error; a signal's reason */
function ask<T>(
  { lease, clock, waits }: LeadershipOptions,
  what: string,
  limit: number,
  signals: readonly AbortSignal[],
  call: (context: CallContext) => Promise<T>,
): Promise<T> {
  const peer = `the lease ${quote(lease.name)}`
  const waiting = waits && (() => waits.begin('lease', () => peer))
  return bounded({ provider: lease.name, peer, what, clock, signals, limit, waiting }, call)
}

/** A moment on both clocks: a machine's monotonic clock stops while the machine sleeps. */
interface Moment {
  readonly now: number
  readonly wall: number
}

function momentOf(clock: Clock): Moment {
  return { now: clock.now(), wall: wallOf(clock) }
}

/**
 * The time in which we hold a lease: from the call that got it until it is released or refused, or until the renew
 * deadline has passed since the last answered renewal *was sent*. It is checked when a change is about to be sent,
 * not by a timer: after a freeze, a process's timers fire late.
 */
export class Term implements LeaseTerm {
  readonly grant: LeaseGrant
  readonly #options: LeadershipOptions
  readonly #lost = new AbortController()
  /** When the last answered renewal was sent. */
  #renewed: Moment
  #failure: unknown
  #cancel: (() => void) | undefined
  #over = false

  constructor(grant: LeaseGrant, sent: Moment, options: LeadershipOptions) {
    this.grant = grant
    this.#renewed = sent
    this.#options = options
    this.#schedule()
  }

  /** Fires when the term is over, with `NOT_LEADER`. */
  get signal(): AbortSignal {
    return this.#lost.signal
  }

  get mark(): LeaseTerm['mark'] {
    return { name: this.#options.lease.name, fence: this.grant.fence }
  }

  readonly permit = (): DrainableError | undefined => {
    if (this.#lost.signal.aborted) return this.#lost.signal.reason as DrainableError
    if (!this.#over && !this.#isLate()) return undefined
    const error = this.#over ? this.#error('was given up') : this.#lateError()
    // Deferred, because the caller is in the middle of a step.
    queueMicrotask(() => this.#lose(error))
    return error
  }

  /** Releases the lease; everything begun under it must have ended. */
  async release(): Promise<void> {
    if (this.#over) return
    this.#over = true
    this.#cancel?.()
    const { lease } = this.#options
    const grant = this.grant
    try {
      await ask(this.#options, 'release', RELEASE_LIMIT, [], (context) =>
        lease.release(grant, context),
      )
    } catch {
      // the lease ends by itself
    }
    this.#lose(this.#error('was given up'))
  }

  #isLate(): boolean {
    const { clock, ttl } = this.#options
    const { now, wall } = momentOf(clock)
    const passed = Math.max(now - this.#renewed.now, wall - this.#renewed.wall)
    return !(passed < ttl * RENEW_DEADLINE) // a clock that tells no number is late
  }

  #schedule(): void {
    if (this.#over) return
    const { clock, ttl } = this.#options
    const left = ttl * RENEW_DEADLINE - (clock.now() - this.#renewed.now)
    const wait = Math.max(0, Math.min(ttl * RETRY, left))
    this.#cancel = clock.setTimeout(() => void this.#renew(), wait)
  }

  async #renew(): Promise<void> {
    if (this.permit() !== undefined) return
    const { clock, lease, ttl } = this.#options
    const sent = momentOf(clock)
    const left = ttl * RENEW_DEADLINE - (sent.now - this.#renewed.now)
    const limit = Math.min(left, ttl * RENEW_LIMIT)
    try {
      const kept = await ask(this.#options, 'renew', limit, [this.#lost.signal], (context) =>
        lease.renew(this.grant, ttl, context),
      )
      if (!kept) {
        if (!this.#over) this.#lose(this.#error('went to another contender'))
        return
      }
      // The time of sending, not of the answer: the engine began to count no earlier than that.
      this.#renewed = sent
      this.#failure = undefined
    } catch (thrown) {
      this.#failure = thrown
    }
    this.#schedule()
  }

  #lose(error: DrainableError): void {
    this.#over = true
    this.#cancel?.()
    if (!this.#lost.signal.aborted) this.#lost.abort(error)
  }

  #lateError(): DrainableError {
    const why = this.#failure === undefined ? '' : `: ${wordsOf(this.#failure)}`
    return this.#error(`could not be renewed in time${why}`)
  }

  #error(what: string): DrainableError {
    const { lease, subject } = this.#options
    return new DrainableError(
      'NOT_LEADER',
      `${subject}: the lease ${quote(lease.name)} ${what}: nothing is changed any more`,
      this.#failure === undefined ? {} : { cause: this.#failure },
    )
  }
}

function checkAnswer(answer: LeaseAnswer, name: string): LeaseAnswer {
  const { granted, fence, holder } = answer as Partial<Record<string, unknown>>
  if (granted === false) return { granted, holder: typeof holder === 'string' ? holder : null }
  if (granted === true && Number.isSafeInteger(fence) && Number(fence) >= 1)
    return { granted, fence: Number(fence) }
  throw new DrainableError(
    'MALFORMED_REPLY',
    `lease ${quote(name)}: acquire: expected granted true with a fence from 1, or granted false with a holder`,
  )
}
