import type { Later } from '../../../kit/change.js'
import { refusal } from '../../../kit/errors.js'
import type { AdminState, ChangeResult, MemberRef } from '../../../provider/contract.js'
import type { DrainableError, ErrorCode } from '../../../provider/error.js'
import { PROVIDER } from '../session/session.js'
import type { Found, RuntimeView } from '../read/read.js'
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
  /** The member before it, and the look that showed it so. */
  readonly before: Found
  readonly view: RuntimeView
  /** What takes back the writes that came with it. */
  readonly undo: Undo
  /** What is left to be done once it is seen to be carried out. */
  readonly after?: () => Promise<unknown>
  /** Writes of the file that came with it, made again where they are missing, or in any case (`anew`). */
  readonly rewrite?: ((anew: boolean) => Promise<unknown>) | undefined
  /** How many it has cut by now. */
  readonly terminated?: number
}

/** What became of one change so far. */
export type Step = ChangeResult | Later<Sent>

/** A refusal. */
export function rejected(
  ref: MemberRef,
  code: ErrorCode,
  message: string,
  retryable?: boolean,
): ChangeResult {
  const subject = { provider: PROVIDER, ref }
  return { ref, status: 'rejected', error: refusal(code, message, subject, retryable) }
}
