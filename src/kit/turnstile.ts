/**
 * Limits concurrent work, to one at a time by default; the others wait in order, and leave the queue when their
 * signal fires.
 */
export class Turnstile {
  readonly #places: number
  readonly #waiting: (() => void)[] = []
  #taken = 0

  constructor(places = 1) {
    this.#places = places
  }

  /**
   * Waits for a place, and keeps it until the work has settled.
   *
   * @throws `signal.reason` if it fires before the place was free, or the error of the work
   */
  async run<T>(signal: AbortSignal, work: () => Promise<T>): Promise<T> {
    await this.#enter(signal)
    try {
      // The place may have been handed over at the moment when the signal fired.
      signal.throwIfAborted()
      return await work()
    } finally {
      const next = this.#waiting.shift()
      // The place is handed over, so that no other call slips in between.
      if (next === undefined) this.#taken -= 1
      else next()
    }
  }

  async #enter(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted()
    if (this.#taken < this.#places) {
      this.#taken += 1
      return
    }
    await new Promise<void>((resolve, reject) => {
      const enter = (): void => {
        signal.removeEventListener('abort', leave)
        resolve()
      }
      const leave = (): void => {
        this.#waiting.splice(this.#waiting.indexOf(enter), 1)
        reject(signal.reason)
      }
      signal.addEventListener('abort', leave, { once: true })
      this.#waiting.push(enter)
    })
  }
}
