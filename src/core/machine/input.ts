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

/** A reading of the member, with what its look knew beside it. */
export interface ReadingInput {
  readonly type: 'reading'
  readonly reading: Reading
  readonly askedAt: number
  /** Processes known to have ended. */
  readonly ended?: Snapshot['ended']
  /** How long the answer took, in milliseconds; 0 where it was not asked for (a push). */
  readonly took?: number
  /** Why the pool has too few serving members now; null: it has enough. Default: not known. */
  readonly floor?: DrainableError | null
  /** Whether another run of this process has an undo of the member under way, or one without an answer. */
  readonly mayOpen?: boolean
  /** From 0 to 1, for waits that must differ between controllers. */
  readonly random?: number
}

/** What another run of this process saw of a member. */
export interface Sight {
  readonly own: AdminState
  readonly identity: string
  readonly askedAt: number
  readonly at: number
  /** Of every process that can hold work for it. */
  readonly incarnations: ReadonlyMap<string, string>
}

/** What comes in. `at` is the moment of receipt by the run's clock, `wall` the same moment in epoch milliseconds. */
export type Input = { readonly at: number; readonly wall: number } & (
  | ReadingInput
  | { readonly type: 'unreadable'; readonly error: DrainableError; readonly askedAt: number }
  /** The last look, asked for when the time was over, did not come in time. `silent`: nor had any for long before. */
  | { readonly type: 'overdue'; readonly error: DrainableError; readonly silent: boolean }
  | {
      readonly type: 'result'
      readonly change: Change
      readonly result: ChangeResult
      /** It is not waited for any longer, but its call goes on: what becomes of that comes in later. */
      readonly givenUp?: true
    }
  /** The hold under way is not to be sent any more: see `isRough`. */
  | { readonly type: 'recalled' }
  /** What was called idle is to be looked at once more: where it can't be read, that is no outcome before. */
  | { readonly type: 'doubt' }
  /** Another run of this process has seen the member: see `absorbSight`. */
  | { readonly type: 'sighted'; readonly sight: Sight }
  /** The floor's answer to a first hold: it was not sent. */
  | { readonly type: 'denied'; readonly error: DrainableError }
  /** The caller's own health check ended. */
  | { readonly type: 'checked'; readonly error: DrainableError | null }
  /** Changes that other runs sent, and whose answer never came. */
  | {
      readonly type: 'inherit'
      readonly late: readonly LateChange[]
      /** What an undo that this drain ended has not undone. */
      readonly owned?: Owned
      /** What a drain that this undo ended holds. */
      readonly held?: Owned
    }
  /** Another goal from now on: drops proof and seal, keeps what may still be carried out. */
  | { readonly type: 'goal'; readonly goal: OpenGoal }
  /** Another call of this process speaks for the member now. */
  | { readonly type: 'yield'; readonly error: DrainableError }
  | { readonly type: 'end'; readonly outcome: Outcome; readonly error?: DrainableError }
  /** The whole run has its outcome; the wish is still kept up. */
  | { readonly type: 'settle' }
  /** Stop keeping the wish up. */
  | { readonly type: 'release' }
)

/** What goes out. An outcome is none: it stands in the state, and a run compares after each transition. */
export type Effect =
  /** `first`: the first hold, which the floor must let pass. */
  | { readonly type: 'apply'; readonly change: Change; readonly first: boolean }
  | { readonly type: 'emit'; readonly event: DrainEvent }
  /** Ask the caller's own health check. */
  | { readonly type: 'check' }
  /** An idle that was said and is held does not hold any more. */
  | { readonly type: 'lost'; readonly error: DrainableError }

/** One step of the machine. */
export interface Transition {
  readonly state: DrainState
  readonly effects: readonly Effect[]
}
