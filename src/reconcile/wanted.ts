import type { PlannedChange } from '../provider/desired.js'
import type { SeenLook } from '../core/balancer/look/look.js'
import type { Wish } from '../endpoints/plan.js'
import type { WishedPlan } from '../endpoints/plan-changes.js'
import type { PresentReading } from '../provider/contract.js'
import { refKey } from '../provider/member-ref.js'

/** One plan, by member. */
export interface Wanted {
  readonly look: SeenLook
  readonly steps: ReadonlyMap<string, PlannedChange>
  readonly down: ReadonlyMap<string, Wish>
  /** Whether anything was said about a pool. */
  readonly isSaid: (pool: string) => boolean
}

export function wantedOf(plan: WishedPlan, look: SeenLook): Wanted {
  return {
    look,
    steps: new Map(plan.steps.map((step) => [refKey(step.change.ref), step])),
    down: new Map(plan.down.map((wish) => [refKey(wish.reading.ref), wish])),
    isSaid: (pool) => !plan.unsaid.has(pool),
  }
}

/** Nothing of ours holds it: an operator does, or a drain whose ticket is lost. */
export function saidOfTheirs({ own }: PresentReading): string {
  return `it should serve and is in ${own}, but this reconciler did not drain it: the client that did, or ready(), makes it ready`
}
