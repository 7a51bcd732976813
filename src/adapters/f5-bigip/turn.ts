import { pause, type Clock } from '../../provider/clock.js'

/** As many changing calls may fall into one window, in milliseconds. */
const CHANGES = 4
const WINDOW = 1_000

/** One request at a time to a device: its REST services are slow, and run out of memory under load. */
export class Turn {
  readonly #waiting: (() => void)[] = []
  #busy = false
  readonly #changes: number[] = []

  /** Waits for the turn and runs `call` in it; gives the place up at once when the signal fires. */
  async run<T>(signal: AbortSignal, call: () => Promise<T>): Promise<T> {
    await this.#enter(signal)
    try {
      return await call()
    } finally {
      const next = this.#waiting.shift()
      if (next === undefined) this.#busy = false
      else next()
    }
  }

  /** Lets no more than four changing calls a second through. */
  async pace(clock: Clock, signal: AbortSignal): Promise<void> {
    const [oldest] = this.#changes
    if (oldest !== undefined && this.#changes.length >= CHANGES) {
      const wait = oldest + WINDOW - clock.now()
      // More than a window ahead was noted by another clock
      if (wait > 0 && wait <= WINDOW) await pause(clock, wait, signal)
      this.#changes.shift()
    }
    this.#changes.push(clock.now())
  }

  async #enter(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted()
    if (!this.#busy) {
      this.#busy = true
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
      this.#waiting.push(enter)
      signal.addEventListener('abort', leave, { once: true })
    })
  }
}
