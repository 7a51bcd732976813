import type { MemberRef } from '../../provider/contract.js'
import type { DrainableError } from '../../provider/error.js'
import type { RollReport } from '../../provider/report.js'
import { DRAIN_EVENTS, type DrainEvent } from '../../core/events.js'

/** The fields of every event about one server of a roll. */
export interface ServerEvent<T extends string> {
  readonly type: T
  /** When it happened, ISO 8601. */
  readonly at: string
  /** The first member of this server. */
  readonly ref: MemberRef
  /** All members of this server. */
  readonly refs: readonly MemberRef[]
  /** Its address; absent if the balancer reports none. */
  readonly address?: string
}

/** The roll calls `act` for a server. */
export interface ActEvent extends ServerEvent<'act'> {
  /** The number of the call; see {@link ServerDrained.attempt}. */
  readonly attempt: number
}

/** A server failed. */
export interface ServerFailedEvent extends ServerEvent<'failed'> {
  readonly error: DrainableError
}

/** The roll begins these servers. */
export interface BatchEvent {
  readonly type: 'batch'
  /** When it happened, ISO 8601. */
  readonly at: string
  readonly refs: readonly MemberRef[]
}

/** The roll has ended. This is the last event. */
export interface RollEndEvent {
  readonly type: 'roll-end'
  /** When it happened, ISO 8601. */
  readonly at: string
  readonly report: RollReport
}

/** An event of a roll: the events of each server's drain, and the roll's own. */
export type RollEvent =
  | DrainEvent
  | BatchEvent
  | ActEvent
  /** The server is being made ready. */
  | ServerEvent<'ready'>
  /** The server was seen healthy, or no check was asked for: it is done. */
  | ServerEvent<'healthy'>
  /** The server was busy for too long and is put back; the roll tries it once more after all others. */
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
