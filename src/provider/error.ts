import type { MemberRef } from './contract.js'
import { printable } from './quote.js'
import type { DrainReport, RollReport } from './report.js'

/**
 * Every reason this package fails for. The union is closed: a new reason is a new minor version.
 *
 * | code | whose fault | retryable by default |
 * |---|---|---|
 * | `INVALID_OPTIONS`, `UNSUPPORTED` | the caller | no |
 * | `UNREACHABLE`, `CALL_TIMEOUT`, `CONNECTION_LOST` | the network | yes |
 * | `UNAUTHENTICATED`, `FORBIDDEN` | the credentials | no |
 * | `MALFORMED_REPLY` | the peer, or our codec | no |
 * | `PROVIDER_FAILED` | the adapter: it threw something that is no error of the network | no |
 * | `NOT_FOUND`, `REJECTED` | the balancer said no | no |
 * | `CONFLICT` | the balancer said: not now, or not any more | yes |
 * | `DRAIN_TIMEOUT`, `DRAIN_OVERRULED`, `POOL_AT_MINIMUM`, `MEMBER_GONE`, `IDLE_LOST` | the drain itself | no |
 * | `NOT_LEADER` | no change: the lease is another client's, or could not be renewed in time | yes |
 * | `HEALTH_TIMEOUT`, `ACTION_FAILED`, `ROLL_STOPPED`, `TICKET_INVALID` | what comes around a drain | no |
 */
export type ErrorCode =
  /**
   * An argument is wrong, or the policy can't hold with this balancer: a timeout too short for a proof, a floor above the pool.
   *
   * Correct the field that the message names. Nothing was changed.
   */
  | 'INVALID_OPTIONS'
  /**
   * The balancer can't do a part of the policy, such as maint, removal, or cutting connections; or this runtime can't run it: the message names the one that can.
   *
   * Leave that part out, or give `ifUnsupported: 'proceed'` to go on without it. Nothing was changed.
   */
  | 'UNSUPPORTED'
  /**
   * Nothing answers at the balancer's address, or it stopped answering before the drain could end.
   *
   * Check address, socket path, network and TLS. A member that was held before stays held; the ticket resumes or restores it.
   */
  | 'UNREACHABLE'
  /**
   * The balancer took too long for one answer, or gave no whole answer before the deadline.
   *
   * Try again; where it is slow by nature, give a longer `timeout` or the adapter's own limit.
   */
  | 'CALL_TIMEOUT'
  /**
   * A connection broke in mid-answer, or an answer came without its end.
   *
   * Try again. A change whose answer was lost is looked for and not repeated blindly.
   */
  | 'CONNECTION_LOST'
  /**
   * The balancer does not accept the credentials.
   *
   * Correct user, password or token. It is not tried again, so that no account is locked.
   */
  | 'UNAUTHENTICATED'
  /**
   * The credentials are right and may not do this.
   *
   * Give the user the right that the message names; the adapter's page lists all of them.
   */
  | 'FORBIDDEN'
  /**
   * An answer does not look as this product's answers do.
   *
   * Check that the address is the product's API and not a login page or a proxy; else report it with the product's version.
   */
  | 'MALFORMED_REPLY'
  /**
   * The adapter threw something that is no error of the network, or answered what the contract does not allow.
   *
   * It is a fault of the adapter. Its error is the `cause`; report it, or run the contract suite on an adapter of your own.
   */
  | 'PROVIDER_FAILED'
  /**
   * No member, pool or endpoint has that name or address.
   *
   * Check the spelling; `select()` lists what there is.
   */
  | 'NOT_FOUND'
  /**
   * The balancer refused the change, in its own words.
   *
   * Read them in the message; the adapter's page explains the common ones.
   */
  | 'REJECTED'
  /**
   * The balancer is in another state than this change expects: another client was faster, or a configuration is being replaced.
   *
   * Look again and decide again. Most conflicts pass by themselves.
   */
  | 'CONFLICT'
  /**
   * The deadline came before the member was idle. It stays drained.
   *
   * Read `why()`, which is in the message too: what is left and what would end it. Give more time, `escalateAfter`, or another `onTimeout`.
   */
  | 'DRAIN_TIMEOUT'
  /**
   * Another client set another state, or another call of this process opened the member.
   *
   * Find out who. `onOverrule: 'reapply'` sets the state again, three times at most.
   */
  | 'DRAIN_OVERRULED'
  /**
   * Too few members of the pool would be left serving.
   *
   * Bring another member up, wait for it with `onMinimum: 'wait'`, or lower `keepReady`.
   */
  | 'POOL_AT_MINIMUM'
  /**
   * The member vanished, or its name belongs to another server now.
   *
   * Nothing is left to drain. What its processes held last is in `lost`.
   */
  | 'MEMBER_GONE'
  /**
   * Work or arrivals were seen on a member after it was called idle, or its hold could not be kept.
   *
   * Stop what the action does. The member is watched on, and idle is said again when it holds.
   */
  | 'IDLE_LOST'
  /**
   * The member is ready and no check of the balancer saw it healthy in time.
   *
   * Look at the server. `waitHealthy` takes a longer time, a check of your own, or `false`.
   */
  | 'HEALTH_TIMEOUT'
  /**
   * The caller's function of a roll failed for a server.
   *
   * Its error is the `cause`. The server stays drained.
   */
  | 'ACTION_FAILED'
  /**
   * A roll ended before all servers were done.
   *
   * Read `roll`: what failed, what is left drained, what was not touched. `resumeRoll` goes on.
   */
  | 'ROLL_STOPPED'
  /**
   * A ticket is damaged, of another balancer, or its id still holds other members.
   *
   * Give the right provider, another `id`, or `restore()` the old ticket first.
   */
  | 'TICKET_INVALID'
  /**
   * The lease is another client's, or could not be renewed in time. Nothing was sent.
   *
   * Nothing, where another client leads. Else look at the engine that keeps the lease.
   */
  | 'NOT_LEADER'

/** The codes whose error always carries the report of the drain it ended. */
export type DrainCode =
  'DRAIN_TIMEOUT' | 'DRAIN_OVERRULED' | 'POOL_AT_MINIMUM' | 'MEMBER_GONE' | 'IDLE_LOST'

/** What a {@link DrainableError} carries beside code and message. */
export interface DrainableErrorData {
  /** Whether the same call can succeed later without any change of its arguments. Default: by code. */
  readonly retryable?: boolean
  /** The member it is about, where it is about one. */
  readonly ref?: MemberRef
  /** Name of the provider that failed, such as `haproxy-runtime`. */
  readonly provider?: string
  /** The original error. */
  readonly cause?: unknown
  /** The drain's report, where a drain ended by this. */
  readonly report?: DrainReport
  /** The roll's report, where a roll ended by this (`ROLL_STOPPED`). */
  readonly roll?: RollReport
}

const RETRYABLE: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  'UNREACHABLE',
  'CALL_TIMEOUT',
  'CONNECTION_LOST',
  'CONFLICT',
  'NOT_LEADER',
])

/** ESM and CJS copies of this class can meet in one process; the brand tells them all. */
const BRAND = Symbol.for('drainable.error')

/**
 * The one error class of this package. Tell it with {@link isDrainableError}, not with `instanceof`:
 * the ESM and the CJS build have a class each.
 *
 * An abort is not among the codes: an aborted call rejects with `signal.reason` as it is.
 */
export class DrainableError<C extends ErrorCode = ErrorCode> extends Error {
  /** Always `DrainableError`. */
  override readonly name = 'DrainableError'
  /** What happened, for a program. */
  readonly code: C
  /** Whether the same call can succeed later without any change of its arguments. */
  readonly retryable: boolean
  /** The member it is about. */
  declare readonly ref?: MemberRef
  /** Name of the provider that failed. */
  declare readonly provider?: string
  /** The drain's report, which is not printed with the error: always there for the codes of {@link DrainCode}. */
  declare readonly report: C extends DrainCode ? DrainReport : DrainReport | undefined
  /** The roll's report: there for `ROLL_STOPPED`. */
  declare readonly roll: C extends 'ROLL_STOPPED' ? RollReport : RollReport | undefined

  /**
   * @param code - what happened, for a program
   * @param message - subject first, the balancer's words in quotes, then what to do; no secrets. What can't be printed
   *   (control characters of a reply or a name) becomes a blank
   * @param data - what else is known
   */
  constructor(code: C, message: string, data: DrainableErrorData = {}) {
    super(printable(message), data.cause === undefined ? undefined : { cause: data.cause })
    this.code = code
    this.retryable = data.retryable ?? RETRYABLE.has(code)
    Object.defineProperty(this, BRAND, { value: true })
    const { ref, provider, report, roll } = data
    for (const [key, value] of Object.entries({ ref, provider })) {
      if (value !== undefined) Object.defineProperty(this, key, { value, enumerable: true })
    }
    // Not enumerable: an error that is logged, or ends a process, is its sentence and its cause. A report beside them is
    // hundreds of lines.
    for (const [key, value] of Object.entries({ report, roll })) {
      if (value !== undefined) Object.defineProperty(this, key, { value })
    }
  }

  /** For `JSON.stringify`: a report or an event in a log has the sentence too, and not the reports that the error carries. */
  toJSON(): Readonly<Record<string, unknown>> {
    const { name, code, message, retryable, ref, provider } = this
    return { name, code, message, retryable, ref, provider }
  }
}

// The CommonJS build makes it an expression, whose name Node would print.
Object.defineProperty(DrainableError, 'name', { value: 'DrainableError' })

/**
 * Whether something thrown is a {@link DrainableError}, of one of the codes if any are given.
 *
 * @example
 * ```ts
 * import { isDrainableError } from 'drainable'
 *
 * export function exitCode(error: unknown): number {
 *   return isDrainableError(error, 'DRAIN_TIMEOUT', 'POOL_AT_MINIMUM') ? 3 : 1
 * }
 * ```
 */
export function isDrainableError<C extends ErrorCode = ErrorCode>(
  error: unknown,
  ...codes: C[]
): error is DrainableError<C> {
  if (typeof error !== 'object' || error === null || !(BRAND in error)) return false
  return codes.length === 0 || codes.includes((error as unknown as DrainableError<C>).code)
}
