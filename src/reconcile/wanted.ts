import type { PlannedChange } from '../provider/desired.js'
import type { SeenLook } from '../core/balancer/look/look.js'
import type { Wish } from '../endpoints/plan/plan.js'
import type { PresentReading } from '../provider/contract.js'

/** One plan, by member. */
export interface Wanted {
  readonly look: SeenLook
  readonly steps: ReadonlyMap<string, PlannedChange>
  readonly down: ReadonlyMap<string, Wish>
  /** Whether anything was said about a pool. */
  readonly isSaid: (pool: string) => boolean
}

/** What a wish says: an overrule stands until it says something else. */
export function saidOf({ state, reason }: Wish): string {
  return `${state} ${reason}`
}

/** Nothing of ours holds it: an operator does, or a drain whose ticket is lost. */
export function saidOfTheirs({ own }: PresentReading): string {
  return `it should serve and is in ${own}, but this reconciler did not drain it: the client that did, or ready(), makes it ready`
}
