/** Waits before a member is tried again, in milliseconds: doubled each time. */
const FIRST = 1_000
const LONGEST = 60_000

/** When something that failed is tried again. */
export class Backoff {
  #failures = 0
  /** Not before this moment of the clock. */
  notBefore = 0

  fail(now: number): void {
    this.notBefore = now + Math.min(LONGEST, FIRST * 2 ** this.#failures)
    this.#failures += 1
  }

  reset(): void {
    this.#failures = 0
    this.notBefore = 0
  }
}
