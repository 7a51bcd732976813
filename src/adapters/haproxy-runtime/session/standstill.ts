/** A slower answer can come from a process that stood still meanwhile, ms. */
const SLOW = 250
/** Looks of one drain are never further apart than this, even after a failure, ms. */
const APART = 5_000

/**
 * Measures how long the process that serves did not answer. Its own clock does not show every pause: that of HAProxy
 * 3.0 includes a pause in which nothing was due (measured: 4 s of SIGSTOP), while the timers of its predecessor,
 * including `hard-stop-after`, excluded it.
 */
export class Standstill {
  #since: number | undefined
  #failedAt = -Infinity
  #sum = 0

  ask(now: number): void {
    if (this.#since !== undefined && now - this.#failedAt > APART) {
      // No question was pending in between.
      this.#sum += Math.max(0, this.#failedAt - this.#since)
      this.#since = undefined
    }
    this.#since ??= now
  }

  fail(now: number): void {
    this.#failedAt = now
  }

  /** @returns the time since the first unanswered question; 0 if that is normal, ms */
  answer(now: number): number {
    const waited = this.#sum + (this.#since === undefined ? 0 : now - this.#since)
    this.#since = undefined
    this.#sum = 0
    return waited > SLOW ? waited : 0
  }
}
