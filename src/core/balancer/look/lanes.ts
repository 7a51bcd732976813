import type { Clock } from '../../../provider/clock.js'

const lanes = new WeakMap<Clock, number>()

/** How many balancers are looked at now by that clock: they share one processor. */
export function lanesOf(clock: Clock): number {
  return lanes.get(clock) ?? 0
}

/** Counts a balancer that is looked at from now on (1), or no longer (-1). */
export function countLane(clock: Clock, by: 1 | -1): void {
  lanes.set(clock, lanesOf(clock) + by)
}
