import type {
  AdminState,
  Change,
  ChangeResult,
  Reading,
  Snapshot,
} from '../../provider/contract.js'
import type { DrainableError } from '../../provider/error.js'
import type { Outcome } from '../../provider/report.js'
import type { DrainEvent } from '../events.js'
import type { OpenGoal } from './goal.js'
import type { DrainState, LateChange, Owned } from './state.js'

/** A reading of the member, with further data of its look. */
export interface ReadingInput {
  readonly type: 'reading'
  readonly reading: Reading
  readonly askedAt: number
  /** Processes known to have ended. */
  readonly ended?: Snapshot['ended']
  /** How long the answer took, in milliseconds; 0 for a push. */
  readonly took?: number
  /** Why the pool has too few serving members now; null: it has enough. Default: not known. */
  readonly floor?: DrainableError | null
  /** Whether another run of this process has an undo of the member in progress, or one without an answer. */
  readonly mayOpen?: boolean
  /** A random number from 0 to 1, for waits that must differ between controllers. */
  readonly random?: number
}

/** What another run of this process saw of a member. */
export interface Sight {
  readonly own: AdminState
  readonly identity: string
  readonly askedAt: number
  readonly at: number
  /** The incarnation of every process that can hold work for it. */
  readonly incarnations: ReadonlyMap<string, string>
}

/**
 * An input of the machine. `at` is the moment of receipt by the run's clock, `wall` the same moment in epoch
 * milliseconds.
 */
export type Input = { readonly at: number; readonly wall: number } & (
  | ReadingInput
  | { readonly type: 'unreadable'; readonly error: DrainableError; readonly askedAt: number }
  /**
   * The last look, asked for at the deadline, did not come in time. `silent`: no other look had come for long before
   * it either.
   */
  | { readonly type: 'overdue'; readonly error: DrainableError; readonly silent: boolean }
  | {
      readonly type: 'result'
      readonly change: Change
      readonly result: ChangeResult
      /** The run no longer waits for the answer, but the call goes on: its end is a later input. */
      readonly givenUp?: true
    }
  /** The pending hold must not be sent any more: see `isOutdated`. */
  | { readonly type: 'recalled' }
  /**
   * A member reported idle must be looked at once more: if it can't be read, its idle is not an outcome before that.
   */
  | { readonly type: 'doubt' }
  /** Another run of this process has seen the member: see `absorbSight`. */
  | { readonly type: 'sighted'; readonly sight: Sight }
  /** The floor refused a first hold, which was not sent. `isFinal: false`: the next look decides whether it does. */
  | { readonly type: 'denied'; readonly error: DrainableError; readonly isFinal: boolean }
  /** The caller's own health check ended. */
  | { readonly type: 'checked'; readonly error: DrainableError | null }
  /** Changes that other runs sent and that were never answered. */
  | {
      readonly type: 'inherit'
      readonly late: readonly LateChange[]
      /** Changes that an undo ended by this drain has not undone. */
      readonly owned?: Owned
      /** Changes of a drain that this undo ended. */
      readonly held?: Owned
    }
  /** The run gets another goal: drops proof and seal, keeps changes that may still be carried out. */
  | { readonly type: 'goal'; readonly goal: OpenGoal }
  /** Another call of this process controls the member now. */
  | { readonly type: 'yield'; readonly error: DrainableError }
  | { readonly type: 'end'; readonly outcome: Outcome; readonly error?: DrainableError }
  /** The whole run has its outcome; the hold is still kept up. */
  | { readonly type: 'settle' }
  /** Stops keeping the hold up. */
  | { readonly type: 'release' }
)

/**
 * An effect of a transition. An outcome is not an effect: it is in the state, and a run compares the states after
 * each transition.
 */
export type Effect =
  /** Sends a change. `first`: the first hold, which needs the floor's consent. */
  | { readonly type: 'apply'; readonly change: Change; readonly first: boolean }
  | { readonly type: 'emit'; readonly event: DrainEvent }
  /** Calls the caller's own health check. */
  | { readonly type: 'check' }
  /** A member held idle is no longer idle. */
  | { readonly type: 'lost'; readonly error: DrainableError }

/** One step of the machine. */
export interface Transition {
  readonly state: DrainState
  readonly effects: readonly Effect[]
}
