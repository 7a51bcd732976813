import type { AdminState, Health, LoadScope, MemberRef } from '../provider/contract.js'
import type { DrainableError } from '../provider/error.js'
import type { DrainReport, Outcome, Phase, Proof, Why } from '../provider/report.js'

/** What every event about one member has. */
export interface MemberEvent<T extends string> {
  readonly type: T
  /** ISO 8601. */
  readonly at: string
  readonly ref: MemberRef
}

/** A member went from one phase to the next. */
export interface PhaseEvent extends MemberEvent<'phase'> {
  readonly from: Phase
  readonly to: Phase
}

/** The load of a member, when it changed and at least once a second. */
export interface LoadEvent extends MemberEvent<'load'> {
  /** In flight, over every process that could be read. */
  readonly active: number
  /** How long the oldest of `active` has been in flight, in milliseconds; null where no product tells it. */
  readonly oldest: number | null
  /** Waiting for this member. */
  readonly queued: number
  /** Whether every process known could be read: if not, the numbers are a lower bound. */
  readonly complete: boolean
  /** Why it is not idle; the first is the one to look at. */
  readonly why: readonly Why[]
  /** Where the member stands after this look. */
  readonly phase: Phase
  /** Its own state as read last; null: not read yet, or it is not there. */
  readonly own: AdminState | 'unknown' | null
  /** What the balancer's checks say of it; null: not read yet, or it is not there. */
  readonly health: Health | null
  /** The newest reading of each process that can hold work for it; those that could not be read say `unread`. */
  readonly scopes: readonly LoadScope[]
}

/** The member is idle, and here is the proof. */
export interface IdleEvent extends MemberEvent<'idle'> {
  readonly proof: Proof
}

/** Another client set another state. */
export interface OverruledEvent extends MemberEvent<'overruled'> {
  readonly expected: AdminState
  readonly found: AdminState
  /** Whether our state is put back. */
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

/** The drain has its outcome. The last event of the async iterator; listeners still hear what becomes of a held drain. */
export interface EndEvent {
  readonly type: 'end'
  /** ISO 8601. */
  readonly at: string
  readonly outcome: Outcome
  readonly report: DrainReport
}

/** What happens in a drain. */
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
