import type { AdminState, CallContext, Change, ChangeResult } from '../provider/contract.js'

/** A change of one kind. */
export type ChangeOf<K extends Change['kind']> = Extract<Change, { kind: K }>

/** What the rules need to know of a member that was found. A `PresentReading` is one. */
export interface Sight {
  /** As `PresentReading.identity`: another one is another member, whatever its name. */
  readonly identity: string
  /** The member's own state. `unknown`: nothing is written over it. */
  readonly own: AdminState | 'unknown'
  /** The product's own words for that state, for messages. */
  readonly says?: string
  /** Why the own state is unknown, for messages. */
  readonly doubt?: string
  /** The doubt may pass by itself: the refusal is retryable. Default: an operator has to act. */
  readonly passing?: boolean
  readonly address?: string
  readonly port?: number
  /** Names the object that is written, where members of several names can be one. Default: the ref. */
  readonly object?: string
}

/** What became of one change: a `ChangeResult` without its ref. */
export type ChangeOutcome = ChangeResult extends infer R
  ? R extends ChangeResult
    ? Omit<R, 'ref'>
    : never
  : never

/** A change that was begun, and that {@link CarefulAdapter.finish} ends together with others. */
export interface Later<L> {
  readonly later: L
  /**
   * Whether anything of it was sent by now: what was not is refused where the call is given up, and not
   * left open. @default it was
   */
  readonly sent?: () => boolean
}

/** A begun change, as `finish` gets it. */
export interface Begun<F extends Sight, L> {
  readonly change: Change
  /** As found before it; undefined for an `add`. */
  readonly found: F | undefined
  readonly later: L
}

/**
 * Sends one change that the rules let through. Nothing returned means `applied`. A thrown refusal
 * (`REJECTED`, `CONFLICT`, `FORBIDDEN` and so on) means `rejected`, any other error `unknown`.
 */
export type Send<K extends Change['kind'], F, L> = (
  change: ChangeOf<K>,
  found: F,
  ctx: CallContext,
  // eslint-disable-next-line @typescript-eslint/no-invalid-void-type -- what a client answers with nothing is done
) => ChangeOutcome | Later<L> | Promise<ChangeOutcome | Later<L> | void>

/** What is asked for of a product that can not do it: the words of the refusal, with the nearest alternative. */
export type Cannot = string

/** What an adapter gives: how members are looked at, and what is sent for each kind of change. */
export interface CarefulAdapter<F extends Sight, L = never> {
  /** Name of the provider, for errors. */
  readonly provider: string
  /**
   * Looks at all members concerned at once. Called before anything is sent, and again where something
   * sent has made the last look old: a second change of one member, a lost answer, `again`.
   *
   * @returns tells the member of a change as it is known by now; undefined where it is not there
   */
  look(changes: readonly Change[], ctx: CallContext): Promise<(change: Change) => F | undefined>
  /** Raises to `drain` or `maint`: only from a lower state that is known. */
  hold: Send<'hold', F, L>
  /** Sets back: only where the expected state was found, and it is not the wished one. */
  restore: Send<'restore', F, L>
  terminate: Send<'terminate', F, L> | Cannot
  remove: Send<'remove', F, L> | Cannot
  /** Puts a member in: only where none of that name is there. */
  add: Send<'add', undefined, L> | Cannot
  /** For a product without maint: why, and what to do instead. */
  readonly maint?: Cannot
  /** The words of NOT_FOUND. Default: that it is not there. */
  absent?(change: Change): string
  /**
   * Whether a hold or a restore finds what it asks for. Default: by the own state alone.
   *
   * @param same - what the own state alone says
   */
  isSo?(change: ChangeOf<'hold' | 'restore'>, found: F, same: boolean): boolean
  /**
   * Ends the changes that were begun (`{ later }`), together. `again`: another client was faster, the member is
   * looked at and judged anew.
   */
  finish?(
    begun: readonly Begun<F, L>[],
    ctx: CallContext,
  ): AsyncIterable<readonly [begun: Begun<F, L>, outcome: ChangeOutcome | 'again']>
}
