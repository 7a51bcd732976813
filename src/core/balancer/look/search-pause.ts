/** Shortest pause between two looks at everything, in milliseconds: a look may be large. */
const SHORTEST_SEARCH = 1_000
/** Looks at everything take at most one part in this many of the time ... */
const SEARCH_SHARE = 100
/** ... unless that hid a drain for longer than this, in milliseconds. */
const LONGEST_SEARCH = 60_000

/**
 * The pause before the next look at everything, in milliseconds.
 *
 * One slow look says little of the balancer: a machine stood still, or a call ran into its limit. So the faster of two counts.
 *
 * @param took - how long the last look took, ms
 * @param before - how long the one before it took, ms
 */
export function searchPause(took: number, before = Infinity): number {
  return Math.min(LONGEST_SEARCH, Math.max(SHORTEST_SEARCH, SEARCH_SHARE * Math.min(took, before)))
}
