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
      this.#taken -= 1
      this.#waiting.shift()?.()
    }
  }

  async #enter(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted()
    if (this.#taken >= this.#places) {
      await new Promise<void>((resolve, reject) => {
        const enter = (): void => {
          signal.removeEventListener('abort', leave)
          resolve()
        }
        const leave = (): void => {
          const at = this.#waiting.indexOf(enter)
          if (at >= 0) this.#waiting.splice(at, 1)
          reject(signal.reason)
        }
        signal.addEventListener('abort', leave, { once: true })
        this.#waiting.push(enter)
      })
    }
    this.#taken += 1
  }
}
