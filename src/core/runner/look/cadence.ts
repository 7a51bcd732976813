/** What the pause before the next look depends on. Milliseconds. */
export interface CadenceInput {
  /** Until something can change by time alone (a quiet time, a deadline). Null: nothing is due. */
  readonly due: number | null
  /** How long one look takes at present. */
  readonly cost: number
  /** The provider's floor. */
  readonly floor: number
  /** Looks that failed in a row. */
  readonly failures: number
  /** No two looks are closer than that, unless something is due. Default: 10. */
  readonly fastest?: number
  /** Balancers that this process looks at now, this one included. Default: 1. */
  readonly lanes?: number
}

/** No two looks are closer than that, in milliseconds. */
export const FASTEST = 10
/** What one look costs this process itself is small, but many balancers add up: so many looks a second for all of them. */
const LOOKS = 250
/** Slowest look at a member that is under drain, where looking itself is not slower and no slower pace is wished. */
const SLOWEST = 1_000
/** The pause is so many times what a look takes: looking is about a thirtieth of the time. */
const PACE = 30
/** A look may take at most one part in that many of the time, also where something is due. */
const SHARE = 5

/** Each balancer's share of the looks that a process makes: with two of them 8 ms apart, with fifty 200 ms. */
export function sharedPause(lanes: number, looks = LOOKS): number {
  return (1_000 / looks) * lanes
}

/**
 * The pause before the next look at a member. What a look costs sets it, so that the last byte is
 * seen as soon after an hour as after a second: on a local socket every 10 ms, on an appliance once a
 * second. Where a process looks at many balancers, their number slows each of them down. Never
 * faster than the provider's floor.
 *
 * What is due by time alone gets its look in that moment: one shortly before it, which would put that off,
 * is left out.
 */
export function nextPause(input: CadenceInput): number {
  const { due, cost, floor, failures, fastest = FASTEST, lanes = 1 } = input
  const least = Math.max(floor, cost * SHARE)
  if (failures > 0) return Math.max(least, fastest, Math.min(SLOWEST, 100 * 2 ** (failures - 1)))
  const asked = Math.max(cost * PACE, sharedPause(lanes))
  const paced = Math.max(fastest, Math.min(SLOWEST, asked))
  const pause = Math.max(least, Math.min(paced, Math.max(1, due ?? Infinity)))
  return due !== null && due > pause && due < pause + cost + least ? due : pause
}
