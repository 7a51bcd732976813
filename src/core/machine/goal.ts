import type { AdminState } from '../../provider/contract.js'
import type { DrainableError } from '../../provider/error.js'

/** How long an undo may take, in milliseconds: the first check after maint needs its time. */
export const UNDO_LIMIT = 30_000

/** What a run wants of a member. */
export type Goal =
  | { readonly kind: 'drain' }
  /** Looks only, never asks for a change. */
  | { readonly kind: 'watch' }
  | OpenGoal

/** Open it again. `ours`: back to what it was, and only what we changed. `anybody`: ready, whoever drained it. */
export interface OpenGoal {
  readonly kind: 'open'
  readonly of: 'ours' | 'anybody'
  /** When it is given up; null: never. */
  readonly until: number | null
  /** How long a change of ours that may still be carried out is waited for; null: until it can't happen any more. */
  readonly lateUntil: number | null
  /** Whether it must be seen healthy; else only the first check after maint is waited for. */
  readonly mustBeHealthy: boolean
  /** The caller's own health check: asked before the door is opened. */
  readonly check: 'none' | 'due' | 'running' | 'passed'
  /** What follows: this is the end, or it was the undo of a hold that left too few serving. */
  readonly then: 'end' | 'refuse' | 'wait'
  /** Why a hold that left too few serving is undone. */
  readonly because: DrainableError | null
  /** The own state it was first found in. */
  readonly wasAdmin: AdminState | null
  /** Incarnations when it was found open: after that, another state in the same process is another client's. */
  readonly reached: ReadonlyMap<string, string> | null
  /** Changes that were sent for it. */
  readonly tries: number
}

/** How an undo, or `ready()`, is to go. */
export type OpenOptions = Pick<OpenGoal, 'of' | 'until' | 'lateUntil'> &
  Partial<Pick<OpenGoal, 'mustBeHealthy' | 'check' | 'then' | 'because'>>

/** The goal to open a member. */
export function openGoal(options: OpenOptions): OpenGoal {
  return {
    kind: 'open',
    mustBeHealthy: false,
    check: 'none',
    then: 'end',
    because: null,
    wasAdmin: null,
    reached: null,
    tries: 0,
    ...options,
  }
}
