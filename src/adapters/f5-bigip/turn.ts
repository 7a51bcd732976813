import { pause, type Clock } from '../../provider/clock.js'

/** Shortest distance of two changing calls, in milliseconds: about four a second. */
const CHANGE_GAP = 250

/** One request at a time to a device: its REST services are slow, and run out of memory under load. */
export class Turn {
  readonly #waiting: (() => void)[] = []
  #busy = false
  #nextChange = 0

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

  /** Keeps changing calls apart. */
  async pace(clock: Clock, signal: AbortSignal): Promise<void> {
    const wait = this.#nextChange - clock.now()
    // More than one gap ahead comes from another clock
    if (wait > 0 && wait <= CHANGE_GAP) await pause(clock, wait, signal)
    this.#nextChange = clock.now() + CHANGE_GAP
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
