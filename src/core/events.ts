import type { AdminState, Health, LoadScope, MemberRef } from '../provider/contract.js'
import type { DrainableError } from '../provider/error.js'
import type { DrainReport, Outcome, Phase, Proof, Why } from '../provider/report.js'

/** The fields of every event about one member. */
export interface MemberEvent<T extends string> {
  readonly type: T
  /** When it happened, ISO 8601. */
  readonly at: string
  readonly ref: MemberRef
}

/** A member went from one phase to the next. */
export interface PhaseEvent extends MemberEvent<'phase'> {
  readonly from: Phase
  readonly to: Phase
}

/** The load of a member, when it changed, and until it is idle at least once a second. */
export interface LoadEvent extends MemberEvent<'load'> {
  /** In flight, over every process that could be read. */
  readonly active: number
  /** How long the oldest of `active` has been in flight, in milliseconds; null if no product reports it. */
  readonly oldest: number | null
  /** Queued in the balancer for this member. */
  readonly queued: number
  /** Whether every known process could be read: if not, the numbers are a lower bound. */
  readonly complete: boolean
  /** Why it is not idle; the first reason is the most important one. */
  readonly why: readonly Why[]
  /** The member's phase after this look. */
  readonly phase: Phase
  /** Its own state as last read; null if it is not read yet, or absent. */
  readonly own: AdminState | 'unknown' | null
  /** Its health by the balancer's checks; null if it is not read yet, or absent. */
  readonly health: Health | null
  /** The newest reading of each process that can hold work for it; `unread` for those that could not be read. */
  readonly scopes: readonly LoadScope[]
  /** When the drain's time is over, ISO 8601; null if it has no end, as that of `watch`. */
  readonly deadline: string | null
}

/** The member is idle; the event carries the proof. */
export interface IdleEvent extends MemberEvent<'idle'> {
  readonly proof: Proof
}

/** Another client set another state. */
export interface OverruledEvent extends MemberEvent<'overruled'> {
  readonly expected: AdminState
  readonly found: AdminState
  /** Whether the drain puts our state back. */
  readonly reset: boolean
}

/** Work was cut because the caller asked for it. */
export interface TerminatedEvent extends MemberEvent<'terminated'> {
  readonly count: number
}

/** Something went wrong that does not end the drain by itself. */
export interface FaultEvent extends MemberEvent<'fault'> {
  readonly error: DrainableError
}

/**
 * The drain has its outcome. This is the last event of the async iterator; listeners still get events about a held
 * drain.
 */
export interface EndEvent {
  readonly type: 'end'
  /** When it happened, ISO 8601. */
  readonly at: string
  readonly outcome: Outcome
  readonly report: DrainReport
}

/** An event of a drain. */
export type DrainEvent =
  | PhaseEvent
  | LoadEvent
  | IdleEvent
  /** The hold has taken effect in every process that can hold work. */
  | MemberEvent<'in-force'>
  /** Work or arrivals were seen again. */
  | MemberEvent<'idle-lost'>
  | MemberEvent<'removed'>
  | OverruledEvent
  | TerminatedEvent
  | FaultEvent
  | EndEvent

/** An event as a listener on the provider gets it (`lb.on`). */
export type ProviderEvent = DrainEvent & {
  /**
   * Whether the member was in drain or maint already when the provider was first looked at for a listener. What is said of it is
   * then no news of a drain: an operator may have taken it out weeks ago. Left out for what came later.
   */
  readonly alreadyOut?: true
}

/** The name of every event. */
export const DRAIN_EVENTS: Readonly<Record<DrainEvent['type'], true>> = {
  phase: true,
  load: true,
  idle: true,
  'in-force': true,
  'idle-lost': true,
  removed: true,
  overruled: true,
  terminated: true,
  fault: true,
  end: true,
}
