import { pause, type Clock } from '../../../provider/clock.js'

/** As many changing calls may fall into one window, in milliseconds. */
const CHANGES = 4
const WINDOW = 1_000

/** No more than four changing calls a second: the REST services of a device are slow, and run out of memory under load. */
export class Pace {
  readonly #changes: number[] = []

  /** Waits until one more may be sent. */
  async wait(clock: Clock, signal: AbortSignal): Promise<void> {
    const [oldest] = this.#changes
    if (oldest !== undefined && this.#changes.length >= CHANGES) {
      const wait = oldest + WINDOW - clock.now()
      // More than a window ahead was noted by another clock
      if (wait > 0 && wait <= WINDOW) await pause(clock, wait, signal)
      this.#changes.shift()
    }
    this.#changes.push(clock.now())
  }
}
