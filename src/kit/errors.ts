import type { MemberRef } from '../provider/contract.js'
import { DrainableError, type ErrorCode } from '../provider/error.js'
import { formatRef } from '../provider/member-ref.js'
import { toDrainableError } from '../provider/thrown.js'

/** Whom an error is about. */
export interface Subject {
  /** Name of the provider, such as `haproxy-runtime`. */
  readonly provider: string
  readonly ref: MemberRef
}

/**
 * An error with its provider and its member, the member named in the words too.
 *
 * @param error - returned as it is where it names both already
 * @param subject - the provider and the member
 */
export function about(error: DrainableError, { provider, ref }: Subject): DrainableError {
  if (error.ref !== undefined && error.provider !== undefined) return error
  const name = formatRef(ref)
  const words = error.message.includes(name) ? error.message : `${name}: ${error.message}`
  const { code, retryable } = error
  return new DrainableError(code, words, { provider, ref, retryable, cause: error })
}

/** Whatever was thrown while `what` was done, with its provider and its member. */
export function thrownAbout(thrown: unknown, what: string, subject: Subject): DrainableError {
  return about(toDrainableError(thrown, subject.provider, what), subject)
}

/**
 * A refusal of one change, to be thrown or given as its outcome.
 *
 * @param code - whose fault it is
 * @param words - the message; it names the member by itself
 * @param subject - the provider and the member
 * @param retryable - whether the same change can succeed later; default: by the code
 */
export function refusal(
  code: ErrorCode,
  words: string,
  { provider, ref }: Subject,
  retryable?: boolean,
): DrainableError {
  const data = { provider, ref, ...(retryable === undefined ? {} : { retryable }) }
  return new DrainableError(code, words, data)
}

/** The same refusal with what is left of the change: it is not known any more what becomes of it. */
export function leftBehind(refused: DrainableError, left: string): DrainableError {
  const { code, message, provider, ref, retryable } = refused
  return new DrainableError(code, `${message}; ${left}`, {
    retryable,
    cause: refused,
    ...(provider === undefined ? {} : { provider }),
    ...(ref === undefined ? {} : { ref }),
  })
}

/** Codes that can only be a refusal: what was asked for was not carried out. */
const REFUSALS: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  'INVALID_OPTIONS',
  'UNSUPPORTED',
  'UNAUTHENTICATED',
  'FORBIDDEN',
  'NOT_FOUND',
  'REJECTED',
  'CONFLICT',
  'POOL_AT_MINIMUM',
])

/** Whether an error says that a change was refused. After any other it may have been carried out, or may still be. */
export function isRefusal({ code }: DrainableError): boolean {
  return REFUSALS.has(code)
}
