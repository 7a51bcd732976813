import { systemClock, type Clock } from '../../../provider/clock.js'

/**
 * A timer that does not keep the process alive: for what goes on after the work is done. On another
 * clock than the real one it is that clock's own timer.
 */
export function setBackgroundTimer(clock: Clock, fn: () => void, ms: number): () => void {
  if (clock !== systemClock) return clock.setTimeout(fn, ms)
  const timer = setTimeout(fn, ms)
  timer.unref()
  return () => clearTimeout(timer)
}

/** Longest timer a process can set, in milliseconds; longer ones are set again. */
export const LONGEST_TIMER = 2 ** 31 - 1

/** One timer that can be set anew, however far away. */
export class Alarm {
  readonly #clock: Clock
  readonly #broken: (thrown: unknown) => void
  #cancel: (() => void) | undefined

  /** @param broken - called with what the call throws: a timer has no caller to tell */
  constructor(clock: Clock, broken: (thrown: unknown) => void) {
    this.#clock = clock
    this.#broken = broken
  }

  /** Calls once at that moment of the clock, in place of what was set before. */
  set(at: number, fn: () => void): void {
    this.clear()
    const wait = Math.max(0, at - this.#clock.now())
    const far = wait > LONGEST_TIMER
    this.#cancel = this.#clock.setTimeout(
      () => {
        this.#cancel = undefined
        try {
          if (far) this.set(at, fn)
          else fn()
        } catch (thrown) {
          this.#broken(thrown)
        }
      },
      Math.min(wait, LONGEST_TIMER),
    )
  }

  clear(): void {
    this.#cancel?.()
    this.#cancel = undefined
  }
}
