import type { CallContext, MemberRef } from '../provider/contract.js'
import {
  DrainableError,
  isDrainableError,
  toDrainableError,
  type ErrorCode,
} from '../provider/error.js'
import { formatRef } from '../provider/member-ref.js'

/** The provider and the member that an error concerns. */
export interface Subject {
  /** Name of the provider, such as `haproxy-runtime`. */
  readonly provider: string
  readonly ref: MemberRef
}

/**
 * Adds the provider and the member to an error, and the member's name to its message.
 *
 * @param error - returned unchanged if it names both already
 * @param subject - the provider and the member
 */
export function about(error: DrainableError, { provider, ref }: Subject): DrainableError {
  if (error.ref !== undefined && error.provider !== undefined) return error
  const name = formatRef(ref)
  const words = error.message.includes(name) ? error.message : `${name}: ${error.message}`
  const { code, retryable } = error
  return new DrainableError(code, words, { provider, ref, retryable, cause: error })
}

/** Turns a value thrown during `what` into an error with its provider and its member. */
export function thrownAbout(thrown: unknown, what: string, subject: Subject): DrainableError {
  return about(toDrainableError(thrown, subject.provider, what), subject)
}

/**
 * Makes the refusal of one change, to throw or to return as its outcome.
 *
 * @param code - whose fault it is
 * @param words - the message, which must name the member itself
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

/** Extends a refusal with the part of the change that is left: its outcome is no longer known. */
export function leftBehind(refused: DrainableError, left: string): DrainableError {
  const { code, message, provider, ref, retryable } = refused
  return new DrainableError(code, `${message}; ${left}`, {
    retryable,
    cause: refused,
    ...(provider === undefined ? {} : { provider }),
    ...(ref === undefined ? {} : { ref }),
  })
}

/**
 * Does what may fail, and goes on with something else where it did. What is thrown on: everything once the call was given
 * up, and what is none of our errors.
 */
export async function caught<T, I>(
  { signal }: Pick<CallContext, 'signal'>,
  work: () => Promise<T>,
  instead: (error: DrainableError) => I,
): Promise<T | I> {
  try {
    return await work()
  } catch (error) {
    if (signal.aborted || !isDrainableError(error)) throw error
    return instead(error)
  }
}

/** Codes that can only be a refusal: the change was not carried out. */
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

/**
 * Whether an error means that a change was refused. After any other error, the change may have been carried out, or
 * may still be.
 */
export function isRefusal({ code }: DrainableError): boolean {
  return REFUSALS.has(code)
}
