import type { AdminState } from '../../provider/contract.js'
import type { DrainableError } from '../../provider/error.js'
import type { Incarnations } from './record.js'

/** How long an undo may take, in milliseconds: the first check after maint needs its time. */
export const UNDO_LIMIT = 30_000

/** What a claim wants. */
export type Goal =
  | { readonly kind: 'drain' }
  /** Looks only, never asks for a change. */
  | { readonly kind: 'watch' }
  | OpenGoal

/**
 * Opens the member again. `ours`: back to its state before, and only what we changed. `anybody`: ready, whichever
 * client drained it.
 */
export interface OpenGoal {
  readonly kind: 'open'
  readonly of: 'ours' | 'anybody'
  /** When it began, by the clock. */
  readonly since: number
  /** When it gives up; null: never. */
  readonly until: number | null
  /** Until when to wait for a change of ours that may still be carried out; null: until it can't happen any more. */
  readonly lateUntil: number | null
  /**
   * Whether the member must be seen healthy if it gets clients again; otherwise only the first check after maint is
   * waited for.
   */
  readonly mustBeHealthy: boolean
  /** The caller's own health check, called before the member is opened. */
  readonly check: 'none' | 'due' | 'running' | 'passed'
  /**
   * What follows: the end of the run, or, after the undo of a hold that left too few serving, a refusal or a wait.
   */
  readonly then: 'end' | 'refuse' | 'wait'
  /** Why a hold that left too few serving is undone. */
  readonly because: DrainableError | null
  /** The own state it was first found in. */
  readonly wasAdmin: AdminState | null
  /** Incarnations when it was found open: after that, another state in the same process is another client's. */
  readonly reached: Incarnations | null
  /** Until when processes may take that it is open; null: it is not open, or all have. */
  readonly takenBy: number | null
  /** Another client had set the member before: if nothing of ours is left, what is found there is theirs. */
  readonly isTheirs: boolean
  /** How many changes were sent for it. */
  readonly tries: number
}

/** Options of an undo, or of `ready()`. */
export type OpenOptions = Pick<OpenGoal, 'of' | 'since' | 'until' | 'lateUntil'> &
  Partial<Pick<OpenGoal, 'mustBeHealthy' | 'check' | 'then' | 'because' | 'isTheirs'>>

/** Makes the goal to open a member. */
export function openGoal(options: OpenOptions): OpenGoal {
  return {
    kind: 'open',
    mustBeHealthy: false,
    check: 'none',
    then: 'end',
    because: null,
    wasAdmin: null,
    reached: null,
    takenBy: null,
    isTheirs: false,
    tries: 0,
    ...options,
  }
}
