import type { Lease, LeaseGrant } from '../fleet/lease/lease.js'
import type { CallContext } from '../provider/contract.js'
import { pause, type Clock } from '../provider/clock.js'
import { DrainableError } from '../provider/error.js'
import { readLeaseOptions } from './check-fake.js'

/** Options of {@link fakeLease}. */
export interface FakeLeaseOptions {
  /** The clock by which the lease expires, whatever clock a contender has. */
  readonly clock: Clock
  /** How long each call takes, in milliseconds. Default 0: no timer at all. */
  readonly latency?: number
}

/**
 * How a call fails.
 *
 * - `throw`: the connection is lost before anything is done
 * - `throw-after`: the call is carried out, then the connection is lost
 * - `hang`: no answer until the caller gives up
 */
export type FakeLeaseFailure = 'throw' | 'throw-after' | 'hang'

/** One lease in memory, for tests of several contenders. */
export interface FakeLease extends Lease {
  /** The true present holder. */
  readonly held: LeaseGrant | null
  /** The calls so far, oldest first. */
  readonly requests: readonly ('acquire' | 'renew' | 'release')[]
  /** Makes the next calls fail; `Infinity` until the next call of this method. */
  failNext(how: FakeLeaseFailure, times?: number): void
  /** Gives it to another holder at once. */
  seize(holder: string): void
}

/**
 * Makes a lease in memory that follows the contract exactly: pass one object to several contenders.
 *
 * @example
 * ```ts
 * import { fakeClock, fakeLease } from 'drainable/testing'
 *
 * const clock = fakeClock()
 * const lease = fakeLease({ clock })
 * lease.seize('another client')
 * console.log(lease.held?.holder)
 * ```
 */
export function fakeLease(options: FakeLeaseOptions): FakeLease {
  return new InMemoryLease(readLeaseOptions(options))
}

class InMemoryLease implements FakeLease {
  readonly name = 'fake lease'
  readonly requests: ('acquire' | 'renew' | 'release')[] = []
  readonly #clock: Clock
  readonly #latency: number
  #grant: LeaseGrant | null = null
  #until = 0
  #fence = 0
  #failure: { readonly how: FakeLeaseFailure; left: number } | undefined

  constructor({ clock, latency = 0 }: FakeLeaseOptions) {
    this.#clock = clock
    this.#latency = latency
  }

  get held(): LeaseGrant | null {
    return this.#clock.now() < this.#until ? this.#grant : null
  }

  acquire(holder: string, ttl: number, ctx: CallContext): ReturnType<Lease['acquire']> {
    return this.#call('acquire', ctx, () => {
      const { held } = this
      if (held !== null && held.holder !== holder) return { granted: false, holder: held.holder }
      const grant = held ?? { holder, fence: (this.#fence += 1) }
      this.#give(grant, ttl)
      return { granted: true, fence: grant.fence }
    })
  }

  renew(grant: LeaseGrant, ttl: number, ctx: CallContext): Promise<boolean> {
    return this.#call('renew', ctx, () => {
      if (!this.#isOf(grant)) return false
      this.#give(grant, ttl)
      return true
    })
  }

  release(grant: LeaseGrant, ctx: CallContext): Promise<void> {
    return this.#call('release', ctx, () => {
      if (this.#isOf(grant)) this.#until = 0
    })
  }

  failNext(how: FakeLeaseFailure, times = 1): void {
    this.#failure = { how, left: times }
  }

  seize(holder: string): void {
    this.#give({ holder, fence: (this.#fence += 1) }, Infinity)
  }

  #isOf({ holder, fence }: LeaseGrant): boolean {
    return this.held?.holder === holder && this.held.fence === fence
  }

  #give(grant: LeaseGrant, ttl: number): void {
    this.#grant = grant
    this.#until = this.#clock.now() + ttl
  }

  async #call<T>(
    verb: (typeof this.requests)[number],
    { signal }: CallContext,
    run: () => T,
  ): Promise<T> {
    this.requests.push(verb)
    const how = this.#nextFailure()
    if (this.#latency > 0) await pause(this.#clock, this.#latency, signal)
    if (how === 'throw') throw lost()
    if (how === 'hang')
      await new Promise((_, reject) =>
        signal.addEventListener('abort', () => reject(signal.reason), { once: true }),
      )
    const answer = run()
    if (how === 'throw-after') throw lost()
    return answer
  }

  #nextFailure(): FakeLeaseFailure | undefined {
    const failure = this.#failure
    if (failure === undefined || failure.left <= 0) return undefined
    failure.left -= 1
    return failure.how
  }
}

function lost(): DrainableError {
  return new DrainableError('CONNECTION_LOST', 'The connection to the lease was lost')
}
