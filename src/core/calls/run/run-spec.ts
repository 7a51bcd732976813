import type { Clock } from '../../../provider/clock.js'
import type { DrainableProvider, MemberRef } from '../../../provider/contract.js'
import type { Balancer } from '../../balancer/balancer.js'
import type { Permit, Wanted } from '../../balancer/owner.js'
import type { SeenLook } from '../../balancer/look/look.js'
import type { Scheduler } from '../../balancer/look/scheduler.js'
import type { DrainReport } from '../../../provider/report.js'
import type { DrainEvent } from '../../events.js'
import type { Left } from '../../member/input.js'
import type { ClaimStart } from '../../member/record.js'
import type { PolicyData, Ticket } from '../../tickets/ticket.js'
import type { TicketKeeper } from '../../tickets/writing/writer.js'
import type { RunGroup } from './run-group.js'

/** The caller's own health check of a member, which fails if it throws or gives `false`; see `waitHealthy` of `ready()`. */
// eslint-disable-next-line @typescript-eslint/no-invalid-void-type -- what an async function gives that returns nothing
export type OwnHealthCheck = (ref: MemberRef, signal: AbortSignal) => Promise<boolean | void>

/** What a call is for: it holds members down, opens them, or only watches. */
export type Side = 'drain' | 'open' | 'watch'

/** How an undo opens its members, where that is more than a way back: for a roll, which has worked on them. */
export interface Opening {
  /** How long it may take, in milliseconds; null: any time. */
  readonly limit: number | null
  /** Whether those that get clients again must be seen healthy. */
  readonly mustBeHealthy: boolean
  /** The caller's own health check. */
  readonly check?: OwnHealthCheck | undefined
  /** Ends it: the members stay as they are. */
  readonly signal: AbortSignal
}

/** What a verb asks of a run. */
export interface RunSpec {
  readonly provider: DrainableProvider
  /** The verb, for messages. */
  readonly subject: string
  readonly clock: Clock
  /** The caller's. */
  readonly signal: AbortSignal | undefined
  readonly side: Side
  /** Its members, if they were named; undefined while they are still to be found. */
  readonly refs?: readonly MemberRef[] | undefined
  readonly onAbort: 'leave' | 'restore'
  readonly keepReady: number
  /** How long the preparation may take, in milliseconds: the timeout of the run; null for none. */
  readonly timeout: number | null
  /** How a drain ends at its deadline, also one whose balancer could not be read until then. */
  readonly onTimeout: PolicyData['onTimeout']
  /** Whether a failed first look is retried until the deadline, to wait for an unreachable balancer. */
  readonly patient: boolean
  /** The ticket that it goes on with: there can be something to undo at once. */
  readonly resumed?: Ticket
  /** The shortest pause between two looks that the caller wants, in milliseconds. */
  readonly pace?: number | undefined
  /** Called before each change is sent; a change is not sent if it refuses. */
  readonly permit?: Permit
  /** Receives its events, which the provider gets as well. */
  readonly emit: (event: DrainEvent) => void
  /** Makes the ticket. */
  readonly keeper: () => TicketKeeper
  readonly prepare: (context: RunContext) => Promise<Prepared>
  /** The caller's own health check. */
  readonly check?: OwnHealthCheck
  /** Whether it should not keep the process alive. */
  readonly background?: boolean
  /** Whether its members were out before anybody listened to the provider. */
  readonly alreadyOut?: true
  /** When its time began, by its clock. Default: now. */
  readonly startedAt?: number
  /** With the runs on other balancers that it ends together with. */
  readonly group?: RunGroup
  /** Called when another call of this process goes on with its ticket. */
  readonly replaced?: () => void
  /** For a step, which keeps nothing up after its end. */
  readonly step?: StepHooks
}

/** What a step wants of its run. */
export interface StepHooks {
  /** Called before changes are sent; resolves once they may be, or the run is to end. */
  intend(changes: readonly Wanted[], stop: AbortSignal): Promise<void>
  /** Called after every look and answer. */
  changed(): void
  /** What is told as the end of the drain when the step is over; undefined while the drain goes on. */
  last(report: DrainReport): DrainReport | undefined
}

/** The context of a preparation. */
export interface RunContext {
  readonly provider: DrainableProvider
  readonly balancer: Balancer
  readonly scheduler: Scheduler
  readonly startedAt: number
  /** Fires when the run is given up, or its time has passed. */
  readonly signal: AbortSignal
  /** How long one call may take, in milliseconds. */
  readonly limit: () => number
}

/** A claim that a run lays on a member. */
export interface PreparedClaim {
  readonly ref: MemberRef
  readonly start: ClaimStart
  readonly left?: Left | undefined
}

/** The result of a preparation. */
export interface Prepared {
  readonly claims: readonly PreparedClaim[]
  /** The keeper of the ticket; undefined if nothing is ever changed. */
  readonly keeper: TicketKeeper | undefined
  /** The look from which the members were picked. */
  readonly first?: SeenLook
  /** Called once more in the turn in which the claims are laid: what it throws ends the run. */
  readonly last?: () => void
}

/** Further settings for the run on one of several balancers. */
export type PartHooks = Pick<RunSpec, 'emit' | 'startedAt' | 'group' | 'replaced'> & {
  /** Wraps the preparation: nothing is changed before all parts are prepared. */
  readonly around: (prepare: RunSpec['prepare']) => RunSpec['prepare']
}
