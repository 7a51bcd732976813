import type { AdminState, ChangeResult, MemberRef } from '../../../provider/contract.js'
import { DrainableError, type ErrorCode } from '../../../provider/error.js'
import { PROVIDER } from '../session/session.js'
import type { Found } from '../read/read.js'
import type { Undo } from './undo.js'

/** A change that was sent: what the next look at the server must show. */
export interface Sent {
  readonly ref: MemberRef
  readonly wished: AdminState
  /** `exactly` for a restore, `at least` for a hold. */
  readonly exactly: boolean
  /** The answer was lost: it may have been executed, or may still be. */
  readonly lost?: DrainableError
  /** The answer was a refusal that may be none: see `askServer`. */
  readonly refused?: DrainableError
  /** The member before it. */
  readonly before: Found
  /** What takes back the writes that came with it. */
  readonly undo: Undo
  /** How many it has cut by now. */
  readonly terminated?: number
}

/** What became of one change so far. */
export type Step = ChangeResult | Sent

/** A refusal. */
export function rejected(
  ref: MemberRef,
  code: ErrorCode,
  message: string,
  retryable?: boolean,
): ChangeResult {
  const data = { provider: PROVIDER, ref, ...(retryable === undefined ? {} : { retryable }) }
  return { ref, status: 'rejected', error: new DrainableError(code, message, data) }
}
