/** The input for the pause before the next look, in milliseconds. */
export interface CadenceInput {
  /** Time until something can change by time alone (a quiet time, a deadline). Null: nothing is due. */
  readonly due: number | null
  /** How long one look takes at present. */
  readonly cost: number
  /** The provider's floor. */
  readonly floor: number
  /** Looks that failed in a row. */
  readonly failures: number
  /** The shortest pause between two looks, unless something is due. Default: 10. */
  readonly fastest?: number
  /** How many balancers this process looks at now, including this one. Default: 1. */
  readonly lanes?: number
  /** How long the pause before the last look was. Default: 0. */
  readonly rested?: number
}

/** The shortest pause between two looks, in milliseconds. */
export const FASTEST = 10
/**
 * The most looks a second for all balancers of a process together: one look costs the process little, but many
 * balancers add up.
 */
const LOOKS = 250
/**
 * The longest pause between looks at a member under drain, unless a look itself takes longer or the caller wants a
 * slower pace.
 */
const SLOWEST = 1_000
/**
 * The pause as a multiple of what a look takes beyond {@link WAKE}: dear looks take about a thirtieth of the time.
 */
const PACE = 30
/**
 * The part of a look in which the process waits to run again, in milliseconds. It costs nobody anything, and it grows
 * with the pause, because caches and clock rate go down meanwhile. If it counted, a long pause would make looks slow,
 * and slow looks the pause long.
 */
const WAKE = 0.3
/**
 * The pause after a look, as a multiple of what it takes. Where that is longer than {@link SLOWEST}, a look that is due
 * may come sooner, if there was such a pause before the last one: looks then take at most a third of the time.
 */
const SHARE = 4

/** The pause by a balancer's share of a process's looks: 8 ms with two balancers, 200 ms with fifty. */
export function sharedPause(lanes: number, looks = LOOKS): number {
  return (1_000 / looks) * lanes
}

/**
 * The pause before the next look at a member. It depends on the cost of a look, so that the last byte is seen as soon
 * after an hour as after a second: on a local socket every 10 ms, on an appliance once a second. Many balancers in
 * one process slow each other down. It is never shorter than the provider's minimum.
 *
 * A due time gets its look exactly then: a look shortly before, which would delay it, is left out.
 */
export function nextPause(input: CadenceInput): number {
  const { due, cost, floor, failures, fastest = FASTEST, lanes = 1, rested = 0 } = input
  const share = cost * SHARE
  const least = Math.max(floor, share)
  if (failures > 0) return Math.max(least, fastest, Math.min(SLOWEST, 100 * 2 ** (failures - 1)))
  const asked = Math.max((cost - WAKE) * PACE, sharedPause(lanes))
  const paced = Math.max(fastest, Math.min(SLOWEST, asked))
  const soonest = Math.max(1, due ?? Infinity)
  const pause = Math.max(least, Math.min(paced, soonest))
  if (share > SLOWEST && soonest < pause && rested >= share) return Math.max(floor, soonest)
  return due !== null && due > pause && due < pause + cost + least ? due : pause
}
