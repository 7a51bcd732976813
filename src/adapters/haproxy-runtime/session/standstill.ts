/** An answer that took longer than that may come from a process that stood still meanwhile, ms. */
const SLOW = 250
/** Looks of one drain are closer than that, also after a failure, ms. */
const APART = 5_000

/**
 * For how long the process that serves was asked and did not answer. Its own clock does not tell every pause: that
 * of HAProxy 3.0 counts one as lived where nothing was due (measured: 4 s of SIGSTOP), while the timers of its
 * predecessor, `hard-stop-after` too, left it out.
 */
export class Standstill {
  #since: number | undefined
  #failedAt = -Infinity
  #sum = 0

  ask(now: number): void {
    if (this.#since !== undefined && now - this.#failedAt > APART) {
      // No question was open in between.
      this.#sum += Math.max(0, this.#failedAt - this.#since)
      this.#since = undefined
    }
    this.#since ??= now
  }

  fail(now: number): void {
    this.#failedAt = now
  }

  /** @returns how long it was since the first question that it did not answer; 0 where that is as usual, ms */
  answer(now: number): number {
    const waited = this.#sum + (this.#since === undefined ? 0 : now - this.#since)
    this.#since = undefined
    this.#sum = 0
    return waited > SLOW ? waited : 0
  }
}
