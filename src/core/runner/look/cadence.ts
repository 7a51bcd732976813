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
}

/** No two looks are closer than that, in milliseconds. */
export const FASTEST = 10
/** Slowest look at a member that is under drain, where looking itself is not slower and no slower pace is wished. */
const SLOWEST = 1_000
/** The pause is so many times what a look takes: looking is about a thirtieth of the time. */
const PACE = 30
/** A look may take at most one part in that many of the time, also where something is due. */
const SHARE = 5

/**
 * The pause before the next look at a member. What a look costs sets it alone, so that the last byte is
 * seen as soon after an hour as after a second: on a local socket every 10 ms, on an appliance once a
 * second. Never above the provider's floor.
 *
 * What is due by time alone gets its look in that moment: one shortly before it, which would put that off,
 * is left out.
 */
export function nextPause(input: CadenceInput): number {
  const { due, cost, floor, failures, fastest = FASTEST } = input
  const least = Math.max(floor, cost * SHARE)
  if (failures > 0) return Math.max(least, fastest, Math.min(SLOWEST, 100 * 2 ** (failures - 1)))
  const paced = Math.max(fastest, Math.min(SLOWEST, cost * PACE))
  const pause = Math.max(least, Math.min(paced, Math.max(1, due ?? Infinity)))
  return due !== null && due > pause && due < pause + cost + least ? due : pause
}
