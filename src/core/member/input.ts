import type { Change, ChangeResult, Reading, Snapshot } from '../../provider/contract.js'
import type { DrainableError } from '../../provider/error.js'
import type { Outcome } from '../../provider/report.js'
import type { DrainEvent } from '../events.js'
import type { OpenGoal } from './wanted.js'
import type { Claim, Ledger, MemberRecord } from './record.js'

/** What a step takes in; `at` is now by the balancer's clock, `wall` the same moment in epoch milliseconds. */
export type Input = { readonly at: number; readonly wall: number } & FreeInput

/** A look that read the member. */
export interface LookInput {
  readonly type: 'look'
  readonly view: number
  readonly reading: Reading
  readonly askedAt: number
  /** How long the answer took, in milliseconds; 0 for a push. */
  readonly took: number
  /** Processes known to have ended. */
  readonly ended?: Snapshot['ended'] | undefined
  /** A random number from 0 to 1, for waits that must differ between controllers. */
  readonly random: number
  /** Of each claim whose hold is new: why the pool has too few serving members now; null: it has enough. */
  readonly floor?: ReadonlyMap<number, DrainableError | null>
}

/** What was left of a call in a ticket, or when it let go. */
export interface Left {
  readonly ledger: Ledger
}

/** A claim is laid. */
export interface LaidInput {
  readonly type: 'laid'
  readonly claim: Claim
  readonly left?: Left | undefined
  /** A later call has spoken for the member already: this one has lost it. */
  readonly by?: Pick<Claim, 'goal'> | undefined
}

/** A change is not sent: its call has let go. */
export interface RecalledInput {
  readonly type: 'recalled'
  readonly change: Change
}

/** An input without its time. */
export type FreeInput =
  | LookInput
  | {
      readonly type: 'unread'
      readonly view: number
      readonly error: DrainableError
      readonly askedAt: number
    }
  | { readonly type: 'answer'; readonly change: Change; readonly result: ChangeResult }
  /** The change that waited for its ticket is about to be sent. */
  | { readonly type: 'sending'; readonly change: Change }
  | RecalledInput
  | LaidInput
  | Order

/** What the call of one claim says. */
export type Order = { readonly claim: number } & (
  | { readonly type: 'undo'; readonly goal: OpenGoal; readonly left?: Left | undefined }
  /** The hold is not kept up any more, and stays. */
  | { readonly type: 'release' }
  | { readonly type: 'end'; readonly outcome: Outcome; readonly error?: DrainableError }
  /** The whole call has its outcome. */
  | { readonly type: 'settle' }
  /** A reported idle must be seen once more before it is an outcome. */
  | { readonly type: 'doubt' }
  /** All members of the call are idle or have ended: those that waited to be taken out together go. */
  | { readonly type: 'out' }
  /** The floor refused the first hold. `isFinal: false`: the next look decides whether it does. */
  | { readonly type: 'denied'; readonly error: DrainableError; readonly isFinal: boolean }
  /** The caller's own health check has ended. */
  | { readonly type: 'checked'; readonly error: DrainableError | null }
  /** The last look, asked for at the deadline, did not come. `silent`: none had come for long before it. */
  | { readonly type: 'overdue'; readonly error: DrainableError; readonly silent: boolean }
)

/** What a step asks for, on behalf of a claim. An outcome is not an effect: it is in the claim. */
export type Effect = { readonly claim: number } &
  /** `first`: its first hold, which needs the floor's consent. */
  (
    | { readonly type: 'send'; readonly change: Change; readonly first: boolean }
    | { readonly type: 'emit'; readonly event: DrainEvent }
    /** Calls the caller's own health check. */
    | { readonly type: 'check' }
    /** A member held idle is no longer idle. */
    | { readonly type: 'lost'; readonly error: DrainableError }
  )

/** A record after one step. */
export interface Step {
  readonly record: MemberRecord
  readonly effects: readonly Effect[]
}
