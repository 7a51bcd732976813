import type { Clock } from 'drainable'
import { inProcess, type Globals } from './host.js'

/** The clock of one user process: counts its timers, and stops for good when the process dies. */
export class UserClock implements Clock {
  readonly #clock: Clock
  readonly #globals: Globals
  readonly #timers = new Set<() => void>()
  #dead = false

  constructor(clock: Clock, globals: Globals) {
    this.#clock = clock
    this.#globals = globals
  }

  /** How many timers of this process are waiting. */
  get pending(): number {
    return this.#timers.size
  }

  now(): number {
    return this.#clock.now()
  }

  setTimeout(fn: () => void, ms: number): () => void {
    if (this.#dead) return () => undefined
    const cancel = this.#clock.setTimeout(() => {
      this.#timers.delete(leave)
      inProcess(this.#globals, fn)
    }, ms)
    const leave = (): void => {
      this.#timers.delete(leave)
      cancel()
    }
    if (ms !== Infinity) this.#timers.add(leave)
    return leave
  }

  die(): void {
    this.#dead = true
    for (const leave of [...this.#timers]) leave()
  }
}
