import type { MemberRef } from './contract.js'
import { printable } from './quote.js'
import type { DrainReport, RollReport } from './report.js'

/**
 * The reason for a failure. The union is closed: a new code comes only with a new minor version.
 *
 * | code | whose fault | retryable by default |
 * |---|---|---|
 * | `INVALID_OPTIONS`, `UNSUPPORTED` | the caller | no |
 * | `UNREACHABLE`, `CALL_TIMEOUT`, `CONNECTION_LOST` | the network | yes |
 * | `UNAUTHENTICATED`, `FORBIDDEN` | the credentials | no |
 * | `MALFORMED_REPLY` | the peer, or our codec | no |
 * | `PROVIDER_FAILED` | the adapter: it threw an error that is not a network error | no |
 * | `NOT_FOUND`, `REJECTED` | the balancer said no | no |
 * | `CONFLICT` | the balancer said: not now, or not any more | yes |
 * | `DRAIN_TIMEOUT`, `DRAIN_OVERRULED`, `POOL_AT_MINIMUM`, `MEMBER_GONE`, `IDLE_LOST` | the drain itself | no |
 * | `NOT_LEADER` | no change: another client holds the lease, or it could not be renewed in time | yes |
 * | `HEALTH_TIMEOUT`, `ACTION_FAILED`, `ROLL_STOPPED`, `TICKET_INVALID` | the steps around a drain | no |
 */
export type ErrorCode =
  /**
   * An argument is wrong, or the policy can't be met on this balancer: a timeout too short for a proof.
   *
   * Correct the field that the message names. No change was made.
   */
  | 'INVALID_OPTIONS'
  /**
   * The balancer can't do a part of the policy, such as maint, removal, or cutting connections. Or this runtime can't run it: the message names the one that can.
   *
   * Leave that part out, or give `ifUnsupported: 'proceed'` to continue without it. Nothing was changed.
   */
  | 'UNSUPPORTED'
  /**
   * Nothing answers at the balancer's address, or it stopped answering before the drain could end. Or a process of it
   * has not taken that a member was opened.
   *
   * Check address, socket path, network and TLS, of the named process too. A member that was already held stays held;
   * its ticket resumes or restores the drain.
   */
  | 'UNREACHABLE'
  /**
   * The balancer took too long for one answer, or did not complete its answer before the deadline.
   *
   * Try again. If the balancer is always slow, give a longer `timeout`, or raise the adapter's own limit.
   */
  | 'CALL_TIMEOUT'
  /**
   * The connection broke in the middle of an answer, or the answer was incomplete.
   *
   * Try again. If the answer to a change was lost, the library first looks for the change and does not repeat it blindly.
   */
  | 'CONNECTION_LOST'
  /**
   * The balancer does not accept the credentials.
   *
   * Correct user, password or token. The library does not try again, so that no account is locked.
   */
  | 'UNAUTHENTICATED'
  /**
   * The credentials are right, but the user has no right to do this.
   *
   * Give the user the permission that the message names; the adapter's page lists all of them.
   */
  | 'FORBIDDEN'
  /**
   * An answer is not in the form of this product's answers.
   *
   * Check that the address is the product's API and not a login page or a proxy. If it is, report the error with the product's version.
   */
  | 'MALFORMED_REPLY'
  /**
   * The adapter threw an error that does not come from the network, or answered what the contract does not allow.
   *
   * This is a fault of the adapter. Its error is the `cause`. Report it; if the adapter is your own, run the contract suite on it.
   */
  | 'PROVIDER_FAILED'
  /**
   * No member, pool or endpoint has that name or address.
   *
   * Check the spelling. `select(lb, 'all')` lists all members.
   */
  | 'NOT_FOUND'
  /**
   * The balancer refused the change, in its own words.
   *
   * The message quotes them; the adapter's page explains the common ones.
   */
  | 'REJECTED'
  /**
   * The balancer is not in the state that this change expects: another client was faster, or a configuration is being
   * replaced.
   *
   * Look again and decide again. Most conflicts pass without any action.
   */
  | 'CONFLICT'
  /**
   * The deadline passed before the member was idle. The member stays drained.
   *
   * Read `why()`, which the message includes: it says what is left and what would end it. Give more time,
   * `escalateAfter`, or another `onTimeout`.
   */
  | 'DRAIN_TIMEOUT'
  /**
   * Another client set another state, or another call of this process opened the member.
   *
   * Find that client or call. `onOverrule: 'reapply'` sets the state again, three times at most.
   */
  | 'DRAIN_OVERRULED'
  /**
   * The drain would leave too few serving members in the pool.
   *
   * Bring another member up, wait for one with `onMinimum: 'wait'`, or lower `keepReady`.
   */
  | 'POOL_AT_MINIMUM'
  /**
   * The member vanished, or its name belongs to another server now.
   *
   * Nothing is left to drain. If the message says that the other server is in drain or maint, open it with `ready()` if it is to
   * serve: HAProxy keeps that state when an address is changed. `lost` reports the last known work of its processes.
   */
  | 'MEMBER_GONE'
  /**
   * Work or arrivals were seen on a member after it was reported idle, or its hold could not be kept.
   *
   * Stop what the action does. The drain keeps watching the member, and reports idle again when it holds.
   */
  | 'IDLE_LOST'
  /**
   * The member is ready, but no check of the balancer saw it healthy in time.
   *
   * Check the server. `waitHealthy` takes a longer time, your own check, or `false`.
   */
  | 'HEALTH_TIMEOUT'
  /**
   * The `act` function of a roll failed for a server.
   *
   * Its error is the `cause`. The server stays drained.
   */
  | 'ACTION_FAILED'
  /**
   * A roll ended before it had finished all servers.
   *
   * Read `roll`: what failed, what is left drained, what was not touched. `resumeRoll` continues.
   */
  | 'ROLL_STOPPED'
  /**
   * A ticket is damaged, belongs to another balancer, or has an id that still holds other members. Or the store or
   * `onTicket` that is to keep it failed or did not answer; `retryable` is then true where only the answer is missing.
   *
   * Give the right provider, another `id`, or `restore()` the old ticket first. If the message names the store, repair
   * it.
   */
  | 'TICKET_INVALID'
  /**
   * Another client holds the lease, or it could not be renewed in time. No change was sent.
   *
   * Nothing, if another client leads. Otherwise check the engine that keeps the lease.
   */
  | 'NOT_LEADER'

/** The codes of errors that always carry the report of the drain they ended. */
export type DrainCode =
  'DRAIN_TIMEOUT' | 'DRAIN_OVERRULED' | 'POOL_AT_MINIMUM' | 'MEMBER_GONE' | 'IDLE_LOST'

/** The data of a {@link DrainableError} beside code and message. */
export interface DrainableErrorData {
  /** Whether the same call can succeed later without any change of its arguments. Default: by code. */
  readonly retryable?: boolean
  /** The member that the error concerns, if it concerns one. */
  readonly ref?: MemberRef
  /** Name of the provider that failed, such as `haproxy-runtime`. */
  readonly provider?: string
  /** For how many milliseconds the balancer asked to be left alone. */
  readonly retryAfter?: number
  /** The original error. */
  readonly cause?: unknown
  /** The drain's report, if this error ended a drain. */
  readonly report?: DrainReport
  /** The roll's report, if this error ended a roll (`ROLL_STOPPED`). */
  readonly roll?: RollReport
}

const RETRYABLE: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  'UNREACHABLE',
  'CALL_TIMEOUT',
  'CONNECTION_LOST',
  'CONFLICT',
  'NOT_LEADER',
])

/** ESM and CJS copies of this class can meet in one process; the brand identifies all of them. */
const BRAND = Symbol.for('drainable.error')

/**
 * The only error class of this package. Test for it with {@link isDrainableError}, not with `instanceof`: the ESM and
 * the CJS build each have their own class.
 *
 * An abort has no code: an aborted call rejects with `signal.reason` unchanged.
 */
export class DrainableError<C extends ErrorCode = ErrorCode> extends Error {
  /** Always `DrainableError`. */
  override readonly name = 'DrainableError'
  /** The reason, for a program. */
  readonly code: C
  /** Whether the same call can succeed later without any change of its arguments. */
  readonly retryable: boolean
  /** The member that the error concerns. */
  declare readonly ref?: MemberRef
  /** Name of the provider that failed. */
  declare readonly provider?: string
  /** For how many milliseconds the balancer asked to be left alone: nothing was sent, and it is asked again after that. */
  declare readonly retryAfter?: number
  /** The drain's report, not printed with the error: always present for the codes of {@link DrainCode}. */
  declare readonly report: C extends DrainCode ? DrainReport : DrainReport | undefined
  /** The roll's report: always present for `ROLL_STOPPED`. */
  declare readonly roll: C extends 'ROLL_STOPPED' ? RollReport : RollReport | undefined

  /**
   * @param code - the reason, for a program
   * @param message - subject first, the balancer's words in quotes, then what to do; no secrets. Characters that
   *   can't be printed (control characters in a reply or a name) become a blank
   * @param data - further data
   */
  constructor(code: C, message: string, data: DrainableErrorData = {}) {
    super(printable(message), data.cause === undefined ? undefined : { cause: data.cause })
    this.code = code
    this.retryable = data.retryable ?? RETRYABLE.has(code)
    Object.defineProperty(this, BRAND, { value: true })
    const { ref, provider, retryAfter, report, roll } = data
    for (const [key, value] of Object.entries({ ref, provider, retryAfter })) {
      if (value !== undefined) Object.defineProperty(this, key, { value, enumerable: true })
    }
    // Not enumerable: a logged error should print its message and its cause, not a report of hundreds of lines.
    for (const [key, value] of Object.entries({ report, roll })) {
      if (value !== undefined) Object.defineProperty(this, key, { value })
    }
  }

  /** For `JSON.stringify`: a report or an event in a log has the sentence too, and not the reports that the error carries. */
  toJSON(): Readonly<Record<string, unknown>> {
    const { name, code, message, retryable, ref, provider, retryAfter } = this
    return { name, code, message, retryable, ref, provider, retryAfter }
  }
}

// The CommonJS build turns the class into an expression, and Node would print that expression's name.
Object.defineProperty(DrainableError, 'name', { value: 'DrainableError' })

/**
 * Tells whether a thrown value is a {@link DrainableError}, and has one of the codes if any are given.
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
  if (typeof error !== 'object' || error === null || !isBranded(error)) return false
  return codes.length === 0 || codes.includes((error as unknown as DrainableError<C>).code)
}

/** A proxy that throws is none of ours: this is asked where an error is caught, and must not throw another one. */
function isBranded(error: object): boolean {
  try {
    return BRAND in error
  } catch {
    return false
  }
}

/** Codes for a failure of the network, or of the path to the balancer. */
const NETWORK =
  /^(?:E(?:AI_\w+|CONN\w+|HOST\w+|NET\w+|ADDRNOTAVAIL|NOENT|NOTFOUND|PIPE|TIMEDOUT|PROTO|ACCES|PERM|AGAIN)|ENOENT|ENOTFOUND|UND_ERR_\w+|ERR_(?:TLS|SSL|SOCKET|HTTP2|STREAM)\w*|CERT_\w+|DEPTH_ZERO_\w+|SELF_SIGNED_\w+|UNABLE_TO_\w+)$/

/** Describes any thrown value in words, even an object without a prototype. */
export function wordsOf(error: unknown): string {
  try {
    // Some clients reject with a plain object; an error of another realm is none of this one.
    const { message } = Object(error) as { readonly message?: unknown }
    return typeof message === 'string' ? message : String(error)
  } catch {
    return "a value that can't be converted to text"
  }
}

/**
 * Turns a value that a provider threw into our error. Without a network code in the error or its causes, it is a
 * failure of the provider.
 */
export function toDrainableError(error: unknown, provider: string, what: string): DrainableError {
  if (isDrainableError(error)) return error
  const words = wordsOf(error)
  const code = codesOf(error).some((known) => NETWORK.test(known))
    ? 'CONNECTION_LOST'
    : 'PROVIDER_FAILED'
  return new DrainableError(code, `${what}: ${words}`, { provider, cause: error })
}

/** The codes of an error and of its causes. */
export function codesOf(error: unknown): readonly string[] {
  const codes: string[] = []
  const queue: unknown[] = [error]
  for (let depth = 0; depth < 20 && queue.length > 0; depth += 1) {
    const next = queue.shift()
    if (typeof next !== 'object' || next === null) continue
    const { code, cause, errors } = next as { code?: unknown; cause?: unknown; errors?: unknown }
    if (typeof code === 'string') codes.push(code)
    queue.push(cause, ...(Array.isArray(errors) ? (errors as unknown[]) : []))
  }
  return codes
}

/**
 * Whether the provider was closed and will never answer again. `UNREACHABLE` does not mean that, even if it is not
 * retryable: an expired certificate gets renewed, and a run that stopped looking would no longer hold anything.
 */
export function isClosed(error: DrainableError): boolean {
  return !error.retryable && error.code === 'CONNECTION_LOST'
}

/** Whether an error means that the balancer, or the path to it, did not answer, rather than that it refused. */
export function isUnreachable(error: unknown): error is DrainableError {
  return isDrainableError(error, 'UNREACHABLE', 'CALL_TIMEOUT', 'CONNECTION_LOST')
}

/**
 * The end of every call on a provider that was closed. Mostly the provider was meant to live longer, and `await using`
 * closed it while a call without an `await` was under way.
 *
 * @param provider - its name
 * @param where - which of several it is: an address, a path
 */
export function closedError(provider: string, where: string, cause?: unknown): DrainableError {
  const words = `${where}: this provider was closed before the call ended: is an \`await\` missing?`
  const data = { provider, retryable: false }
  return new DrainableError(
    'CONNECTION_LOST',
    words,
    cause === undefined ? data : { ...data, cause },
  )
}
