import type { CallContext } from '../../provider/contract.js'

/** What a lease was given to. */
export interface LeaseGrant {
  /** Who has it: names one contender, never two. */
  readonly holder: string
  /**
   * The fencing number: higher with each new holder, for as long as the engine keeps its data. A whole
   * number from 1.
   */
  readonly fence: number
}

/** What {@link Lease.acquire} answers. */
export type LeaseAnswer =
  | { readonly granted: true; readonly fence: number }
  /** `holder`: who has it, as far as the engine tells. */
  | { readonly granted: false; readonly holder: string | null }

/**
 * One lease of an engine that you run: at most one of several contenders has it at a time. `redisLease` and
 * `natsLease` are two; one of your own needs these three calls. Each is bounded by the caller, may be given up,
 * and may have been carried out although its answer was lost.
 */
export interface Lease {
  /** Which one, for messages: `redis 'lb/web'`. No secrets. */
  readonly name: string
  /**
   * Asks for it once, for `ttl` milliseconds, without waiting. A holder that has it already gets the same
   * fencing number again, because the answer to an earlier call may have been lost.
   */
  acquire(holder: string, ttl: number, ctx: CallContext): Promise<LeaseAnswer>
  /** Keeps it for another `ttl` milliseconds. `false`: it is not this holder's any more. */
  renew(grant: LeaseGrant, ttl: number, ctx: CallContext): Promise<boolean>
  /** Gives it up at once; no error where it is not this holder's any more. */
  release(grant: LeaseGrant, ctx: CallContext): Promise<void>
}
