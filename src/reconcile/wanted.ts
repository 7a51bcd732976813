import type { PlannedChange } from '../provider/desired.js'
import type { SeenLook } from '../core/runner/look/look.js'
import type { Wish } from '../endpoints/plan/wish.js'

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
