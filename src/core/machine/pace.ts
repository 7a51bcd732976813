const RETRY_FIRST = 250
const RETRY_MOST = 5_000

/** A growing wait: 250 ms, doubled each time, at most 5 s. */
export function backOff(failures: number): number {
  return Math.min(RETRY_MOST, RETRY_FIRST * 2 ** failures)
}
