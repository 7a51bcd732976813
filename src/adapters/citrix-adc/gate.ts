/** Lets a few through at once; the others wait in order, and leave the queue when their signal fires. */
export class Gate {
  readonly #places: number
  readonly #waiting: (() => void)[] = []
  #taken = 0

  constructor(places: number) {
    this.#places = places
  }

  async run<T>(signal: AbortSignal, work: () => Promise<T>): Promise<T> {
    await this.#enter(signal)
    try {
      return await work()
    } finally {
      const next = this.#waiting.shift()
      // The place is handed over, so that nobody slips in between.
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
