import type { AdminState, CallContext, Change, ChangeResult } from '../provider/contract.js'

/** A change of one kind. */
export type ChangeOf<K extends Change['kind']> = Extract<Change, { kind: K }>

/** A member that was found, as far as the rules need it. A `PresentReading` is one. */
export interface Sight {
  /** As `PresentReading.identity`: a member with another identity is another member, even under the same name. */
  readonly identity: string
  /** The member's own state. An `unknown` state is not overwritten. */
  readonly own: AdminState | 'unknown'
  /** The product's own word for that state, for messages. */
  readonly says?: string
  /** Why the own state is unknown, for messages. */
  readonly doubt?: string
  /** Whether the doubt can pass by itself, so that the refusal is retryable. Default: an operator has to act. */
  readonly passing?: boolean
  readonly address?: string
  readonly port?: number
  /** The name of the written object, if members with different names can be one object. Default: the ref. */
  readonly object?: string
}

/** The result of one change: a `ChangeResult` without its ref. */
export type ChangeOutcome = ChangeResult extends infer R
  ? R extends ChangeResult
    ? Omit<R, 'ref'>
    : never
  : never

/** A begun change that {@link CarefulAdapter.finish} ends together with others. */
export interface Later<L> {
  readonly later: L
  /**
   * Whether anything of it has been sent yet: if not, it is refused when the call is given up. @default true
   */
  readonly sent?: () => boolean
}

/** A begun change, as passed to `finish`. */
export interface Begun<F extends Sight, L> {
  readonly change: Change
  /** The member as found before the change; undefined for an `add`. */
  readonly found: F | undefined
  readonly later: L
}

/**
 * A function that sends one change that the rules allow. Returning nothing means `applied`. A thrown refusal
 * (`REJECTED`, `CONFLICT`, `FORBIDDEN` and so on) means `rejected`, any other error `unknown`.
 */
export type Send<K extends Change['kind'], F, L> = (
  change: ChangeOf<K>,
  found: F,
  ctx: CallContext,
  // eslint-disable-next-line @typescript-eslint/no-invalid-void-type -- a client that returns nothing has done it
) => ChangeOutcome | Later<L> | Promise<ChangeOutcome | Later<L> | void>

/** The reason why a product can't make a change: the text of the refusal, with the nearest alternative. */
export type Cannot = string

/** The adapter's part of {@link carefulApply}: how to look at members, and what to send for each kind of change. */
export interface CarefulAdapter<F extends Sight, L = never> {
  /** The name of the provider, for errors. */
  readonly provider: string
  /**
   * Looks at all members concerned at once. Called before anything is sent, and again if a sent change has made the
   * last look stale: for a second change of one member, a lost answer, or `again`.
   *
   * @returns a function that returns the member of a change as known now; undefined if it is not there
   */
  look(changes: readonly Change[], ctx: CallContext): Promise<(change: Change) => F | undefined>
  /** Raises to `drain` or `maint`; called only for a known lower state. */
  hold: Send<'hold', F, L>
  /** Restores a state; called only if the expected state was found, and it is not the wanted one. */
  restore: Send<'restore', F, L>
  terminate: Send<'terminate', F, L> | Cannot
  remove: Send<'remove', F, L> | Cannot
  /** Adds a member; called only if there is none of that name. */
  add: Send<'add', undefined, L> | Cannot
  /** Why the product has no maint, and what to do instead. */
  readonly maint?: Cannot
  /** The text of NOT_FOUND. Default: that the member is not there. */
  absent?(change: Change): string
  /**
   * Whether a hold or a restore is already in place. Default: decided by the own state alone.
   *
   * @param same - the decision by the own state alone
   */
  isSo?(change: ChangeOf<'hold' | 'restore'>, found: F, same: boolean): boolean
  /**
   * Ends the begun changes (`{ later }`) together. `again`: another client was faster, so the member is read and
   * judged again.
   */
  finish?(
    begun: readonly Begun<F, L>[],
    ctx: CallContext,
  ): AsyncIterable<readonly [begun: Begun<F, L>, outcome: ChangeOutcome | 'again']>
}
