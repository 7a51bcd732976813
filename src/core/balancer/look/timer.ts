import { systemClock, type Clock } from '../../../provider/clock.js'

/**
 * Sets a timer that does not keep the process alive, for work after the end of a drain. On a clock other than the
 * real one, it is that clock's own timer.
 */
export function setBackgroundTimer(clock: Clock, fn: () => void, ms: number): () => void {
  if (clock !== systemClock) return clock.setTimeout(fn, ms)
  const timer = setTimeout(fn, ms)
  timer.unref()
  return () => clearTimeout(timer)
}

/** The longest timer that Node can set, in milliseconds; longer ones are set again. */
export const LONGEST_TIMER = 2 ** 31 - 1

/** One timer that can be reset, for any time ahead. */
export class Alarm {
  readonly #clock: Clock
  readonly #broken: (thrown: unknown) => void
  #cancel: (() => void) | undefined

  /** @param broken - called with an exception of the callback, because a timer has no caller */
  constructor(clock: Clock, broken: (thrown: unknown) => void) {
    this.#clock = clock
    this.#broken = broken
  }

  /** Calls once at that time of the clock; replaces an earlier setting. */
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
