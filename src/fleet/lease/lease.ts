import type { CallContext } from '../../provider/contract.js'

/** A granted lease: its holder and its fencing number. */
export interface LeaseGrant {
  /** The holder: a name that only one contender has. */
  readonly holder: string
  /**
   * The fencing number, a whole number from 1: higher with each new holder, as long as the engine keeps its data.
   */
  readonly fence: number
}

/** The answer of {@link Lease.acquire}. */
export type LeaseAnswer =
  | { readonly granted: true; readonly fence: number }
  /** `holder`: the present holder, if the engine reports it. */
  | { readonly granted: false; readonly holder: string | null }

/**
 * A lease in an engine that you run: at most one of several contenders holds it at a time. `redisLease` and
 * `natsLease` make one; your own needs these three calls. The caller bounds each call and can give it up; a call can
 * succeed although its answer was lost.
 */
export interface Lease {
  /** The lease's name, for messages: `redis 'lb/web'`. No secrets. */
  readonly name: string
  /**
   * Tries once to get the lease for `ttl` milliseconds, without waiting. A contender that already holds it gets the
   * same fencing number again, because the answer to an earlier call may have been lost.
   */
  acquire(holder: string, ttl: number, ctx: CallContext): Promise<LeaseAnswer>
  /** Renews the lease for another `ttl` milliseconds. Returns `false` if this holder no longer has it. */
  renew(grant: LeaseGrant, ttl: number, ctx: CallContext): Promise<boolean>
  /** Releases the lease at once; no error if this holder no longer has it. */
  release(grant: LeaseGrant, ctx: CallContext): Promise<void>
}
