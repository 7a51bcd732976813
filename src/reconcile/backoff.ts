/** Waits before a member is tried again, in milliseconds: doubled each time. */
const FIRST = 1_000
const LONGEST = 60_000

/** When something that failed is tried again. */
export class Backoff {
  readonly #first: number
  readonly #longest: number
  #failures = 0
  /** Not before this moment of the clock. */
  notBefore = 0

  /** Both in milliseconds. */
  constructor(first = FIRST, longest = LONGEST) {
    this.#first = first
    this.#longest = longest
  }

  /** It failed once more: how long to wait, in milliseconds. */
  next(): number {
    const wait = Math.min(this.#longest, this.#first * 2 ** this.#failures)
    this.#failures += 1
    return wait
  }

  fail(now: number): void {
    this.notBefore = now + this.next()
  }

  reset(): void {
    this.#failures = 0
    this.notBefore = 0
  }
}
