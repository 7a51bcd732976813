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
 * | `NOT_LEADER` | nobody: the lease is somebody else's, or could not be renewed in time | yes |
 * | `HEALTH_TIMEOUT`, `ACTION_FAILED`, `ROLL_STOPPED`, `TICKET_INVALID` | what comes around a drain | no |
 */
export type ErrorCode =
  | 'INVALID_OPTIONS'
  | 'UNSUPPORTED'
  | 'UNREACHABLE'
  | 'CALL_TIMEOUT'
  | 'CONNECTION_LOST'
  | 'UNAUTHENTICATED'
  | 'FORBIDDEN'
  | 'MALFORMED_REPLY'
  | 'PROVIDER_FAILED'
  | 'NOT_FOUND'
  | 'REJECTED'
  | 'CONFLICT'
  | 'DRAIN_TIMEOUT'
  | 'DRAIN_OVERRULED'
  | 'POOL_AT_MINIMUM'
  | 'MEMBER_GONE'
  | 'IDLE_LOST'
  | 'HEALTH_TIMEOUT'
  | 'ACTION_FAILED'
  | 'ROLL_STOPPED'
  | 'TICKET_INVALID'
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
  /** The drain's report: always there for the codes of {@link DrainCode}. */
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
    const rest = { ref: data.ref, provider: data.provider, report: data.report, roll: data.roll }
    for (const [key, value] of Object.entries(rest)) {
      if (value !== undefined) Object.defineProperty(this, key, { value, enumerable: true })
    }
  }
}

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
