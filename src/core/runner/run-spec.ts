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

/** The caller's own check whether a member is healthy: it is not where this throws or gives `false`; see `waitHealthy` of `ready()`. */
// eslint-disable-next-line @typescript-eslint/no-invalid-void-type -- what an async function gives that returns nothing
export type OwnHealthCheck = (ref: MemberRef, signal: AbortSignal) => Promise<boolean | void>

/** What a verb wants run. */
export interface RunSpec {
  readonly provider: DrainableProvider
  /** The verb, for messages. */
  readonly subject: string
  readonly clock: Clock
  /** The caller's. */
  readonly signal: AbortSignal | undefined
  /** What it wants of its members: null for a watch, which wants nothing. */
  readonly side: Side | null
  /** Its members, where they were named: undefined while they are still to be found. */
  readonly refs?: readonly MemberRef[] | undefined
  readonly onAbort: 'leave' | 'restore'
  readonly keepReady: number
  /** How long the preparation may take, in milliseconds: the timeout of the run; null for none. */
  readonly timeout: number | null
  /** The ticket it goes on from: a preparation that fails is tried again until the deadline, and there may be something to undo at once. */
  readonly resumed?: Ticket
  /** The shortest pause between two looks that the caller wants, in milliseconds. */
  readonly pace?: number | undefined
  /** Asked before each of its changes leaves; none is sent that it says no to. */
  readonly permit?: Permit
  /** Where its events go; they go to the provider as well. */
  readonly emit: (event: DrainEvent) => void
  /** The ticket of a run that could not begin. */
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
  /** A first look that fails is tried again until the deadline: an unreachable balancer is waited for. */
  readonly patient?: boolean
  /** One step: sends only the changes announced before, by member. Others are announced. */
  readonly announced?: ReadonlyMap<string, Change>
}

/** What a preparation works with. */
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

/** What a run needs before it can look. */
export interface Prepared {
  readonly policy: MachinePolicy
  readonly states: readonly DrainState[]
  /** Undefined: nothing is ever changed. */
  readonly keeper: TicketKeeper | undefined
  /** The look the members were picked from. */
  readonly first?: SeenLook
}

/** What the run on one of several balancers is told beside what its verb says. */
export type PartHooks = Pick<RunSpec, 'emit' | 'startedAt' | 'company' | 'patient'> & {
  /** Goes around the preparation: nothing is changed before all parts are prepared. */
  readonly around: (prepare: RunSpec['prepare']) => RunSpec['prepare']
}
