import type { SeenLook } from '../core/balancer/look/look.js'
import type { Scheduler } from '../core/balancer/look/scheduler.js'
import type { ResolvedPolicy } from '../core/calls/policy.js'
import type { TicketStore } from '../core/tickets/store.js'
import type { WishedPlan } from '../endpoints/plan-changes.js'
import type { Wish } from '../endpoints/plan.js'
import type { Capabilities, DrainableProvider } from '../provider/contract.js'
import type { PlannedChange } from '../provider/desired.js'
import type { DrainableError } from '../provider/error.js'
import { refKey } from '../provider/member-ref.js'
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

/** One plan, by member, and the look that it was made by. */
export interface Wanted {
  readonly plan: WishedPlan
  readonly look: SeenLook
  readonly steps: ReadonlyMap<string, PlannedChange>
  readonly down: ReadonlyMap<string, Wish>
}

export function wantedOf(plan: WishedPlan, look: SeenLook): Wanted {
  return {
    plan,
    look,
    steps: new Map(plan.steps.map((step) => [refKey(step.change.ref), step])),
    down: new Map(plan.down.map((wish) => [refKey(wish.reading.ref), wish])),
  }
}
