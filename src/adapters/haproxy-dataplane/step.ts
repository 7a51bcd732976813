import type { AdminState, ChangeResult, MemberRef } from '../../provider/contract.js'
import { DrainableError, type ErrorCode } from '../../provider/error.js'
import { PROVIDER } from './api.js'

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
  /** A durable mark was written for it. */
  readonly marked?: boolean
  readonly terminated?: number
}

/** What became of one change so far. */
export type Step = ChangeResult | Sent

/** A refusal. */
export function rejected(ref: MemberRef, code: ErrorCode, message: string): ChangeResult {
  const error = new DrainableError(code, message, { provider: PROVIDER, ref })
  return { ref, status: 'rejected', error }
}
