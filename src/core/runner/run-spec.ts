import type { Change, DrainableProvider, MemberRef } from '../../provider/contract.js'
import type { Clock } from '../../provider/clock.js'
import type { DrainEvent } from '../events.js'
import type { Permit } from '../lease/permit.js'
import type { MachinePolicy } from '../machine/policy.js'
import type { DrainState } from '../machine/state.js'
import type { TicketKeeper } from '../tickets/writing/keeper.js'
import type { Ticket } from '../tickets/ticket.js'
import type { Membership, Side } from './balancer/balancer.js'
import type { Company } from './company.js'
import type { Floor } from './balancer/floor.js'
import type { SeenLook } from './look/look.js'
import type { Scheduler } from './look/scheduler.js'

/** The caller's own health check of a member, which fails if it throws or gives `false`; see `waitHealthy` of `ready()`. */
// eslint-disable-next-line @typescript-eslint/no-invalid-void-type -- what an async function gives that returns nothing
export type OwnHealthCheck = (ref: MemberRef, signal: AbortSignal) => Promise<boolean | void>

/** The specification of a run by a verb. */
export interface RunSpec {
  readonly provider: DrainableProvider
  /** The verb, for messages. */
  readonly subject: string
  readonly clock: Clock
  /** The caller's. */
  readonly signal: AbortSignal | undefined
  /** Its goal for the members; null for a watch, which changes nothing. */
  readonly side: Side | null
  /** Its members, if they were named; undefined while they are still to be found. */
  readonly refs?: readonly MemberRef[] | undefined
  readonly onAbort: 'leave' | 'restore'
  readonly keepReady: number
  /** How long the preparation may take, in milliseconds: the timeout of the run; null for none. */
  readonly timeout: number | null
  /** How a drain ends at its deadline, also one whose balancer could not be read until then. */
  readonly onTimeout: 'fail' | 'terminate' | 'proceed'
  /** Whether a failed first look is retried until the deadline, to wait for an unreachable balancer. */
  readonly patient: boolean
  /**
   * The ticket that it continues: a failed preparation is retried until the deadline, and there can be something to
   * undo at once.
   */
  readonly resumed?: Ticket
  /** The shortest pause between two looks that the caller wants, in milliseconds. */
  readonly pace?: number | undefined
  /** Called before each change is sent; a change is not sent if it refuses. */
  readonly permit?: Permit
  /** Receives its events, which the provider gets as well. */
  readonly emit: (event: DrainEvent) => void
  /** Makes the ticket of a run that could not begin. */
  readonly keeper: () => TicketKeeper
  readonly prepare: (context: RunContext) => Promise<Prepared>
  /** The caller's own health check. */
  readonly check?: OwnHealthCheck
  /** Whether it should not keep the process alive. */
  readonly background?: boolean
  /** When its time began, by its clock. Default: now. */
  readonly startedAt?: number
  /** Runs on other balancers that it ends together with. */
  readonly company?: Company
  /** For a step: the changes announced before, by member. Only these are sent; others are announced. */
  readonly announced?: ReadonlyMap<string, Change>
}

/** The context of a preparation. */
export interface RunContext {
  readonly provider: DrainableProvider
  readonly scheduler: Scheduler
  readonly membership: Membership
  readonly floor: Floor
  readonly startedAt: number
  /** Fires when the run is given up, or its time has passed. */
  readonly signal: AbortSignal
  /** How long one call may take, in milliseconds. */
  readonly limit: () => number
}

/** The result of a preparation. */
export interface Prepared {
  readonly policy: MachinePolicy
  readonly states: readonly DrainState[]
  /** The keeper of the ticket; undefined if nothing is ever changed. */
  readonly keeper: TicketKeeper | undefined
  /** The look from which the members were picked. */
  readonly first?: SeenLook
}

/** Further settings for the run on one of several balancers. */
export type PartHooks = Pick<RunSpec, 'emit' | 'startedAt' | 'company'> & {
  /** Wraps the preparation: nothing is changed before all parts are prepared. */
  readonly around: (prepare: RunSpec['prepare']) => RunSpec['prepare']
}
