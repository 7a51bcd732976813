import type { PlannedChange } from '../provider/desired.js'
import type { SeenLook } from '../core/balancer/look/look.js'
import type { Wish } from '../endpoints/plan.js'
import type { WishedPlan } from '../endpoints/plan-changes.js'
import { refKey } from '../provider/member-ref.js'

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
