import type { MemberRef } from '../../provider/contract.js'
import type { DrainableError } from '../../provider/error.js'
import type { RollReport } from '../../provider/report.js'
import { DRAIN_EVENTS, type DrainEvent } from '../events.js'

/** What every event about one server of a roll has. */
export interface ServerEvent<T extends string> {
  readonly type: T
  /** ISO 8601. */
  readonly at: string
  /** The first member that is this server. */
  readonly ref: MemberRef
  /** All of them. */
  readonly refs: readonly MemberRef[]
  /** Its address; absent where the balancer tells none. */
  readonly address?: string
}

/** `act` is called for a server. */
export interface ActEvent extends ServerEvent<'act'> {
  /** Which call it is; see {@link ServerDrained.attempt}. */
  readonly attempt: number
}

/** A server did not work out. */
export interface ServerFailedEvent extends ServerEvent<'failed'> {
  readonly error: DrainableError
}

/** These servers begin. */
export interface BatchEvent {
  readonly type: 'batch'
  /** ISO 8601. */
  readonly at: string
  readonly refs: readonly MemberRef[]
}

/** The roll is over. The last event. */
export interface RollEndEvent {
  readonly type: 'roll-end'
  /** ISO 8601. */
  readonly at: string
  readonly report: RollReport
}

/** What happens in a roll: what happens in the drain of each server, and what the roll does with them. */
export type RollEvent =
  | DrainEvent
  | BatchEvent
  | ActEvent
  /** It is made ready. */
  | ServerEvent<'ready'>
  /** It was seen healthy, or no check was asked for: it is done. */
  | ServerEvent<'healthy'>
  /** It was busy for too long and is put back; it is tried once more after all others. */
  | ServerEvent<'postponed'>
  | ServerFailedEvent
  | RollEndEvent

/** The name of every event. */
export const ROLL_EVENTS: Readonly<Record<RollEvent['type'], true>> = {
  ...DRAIN_EVENTS,
  batch: true,
  act: true,
  ready: true,
  healthy: true,
  postponed: true,
  failed: true,
  'roll-end': true,
}
