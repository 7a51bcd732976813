import type { Scheduler } from '../core/balancer/look/scheduler.js'
import type { TicketStore } from '../core/tickets/store.js'
import type { ResolvedPolicy } from '../core/calls/policy.js'
import type { Capabilities, DrainableProvider } from '../provider/contract.js'
import type { DrainableError } from '../provider/error.js'
import type { Additions } from './additions.js'

/** What the work on members is done with. */
export interface WorkSpec {
  readonly provider: DrainableProvider
  readonly scheduler: Scheduler
  /** With its tickets, and its term where there is a lease. */
  readonly policy: ResolvedPolicy
  readonly tickets: TicketStore
  /** What was added, now and by earlier controllers. */
  readonly additions: Additions
  readonly capabilities: Capabilities
  readonly subject: string
  /** A member's work has changed: look again soon, and tell the status. */
  readonly changed: (soon: boolean) => void
  readonly fault: (error: DrainableError) => void
}
