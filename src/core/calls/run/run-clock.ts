import { wallOf, type Clock } from '../../../provider/clock.js'

/** The clock of a run, which reports and events can still be dated by when the caller's clock throws. */
export class RunClock {
  readonly #clock: Clock
  /** The last time that it told. */
  #told: number

  constructor(clock: Clock) {
    this.#clock = clock
    this.#told = clock.now()
  }

  now(): number {
    return (this.#told = this.#clock.now())
  }

  /** What to add to its times for the wall clock, in milliseconds. */
  offset(now: number): number {
    return wallOf(this.#clock) - now
  }

  /** Milliseconds since a time; if the clock throws, up to the last time that it told. */
  since(moment: number): number {
    try {
      return Math.round(this.now() - moment)
    } catch {
      return Math.round(this.#told - moment)
    }
  }

  /** The present time for events. */
  iso(): string {
    try {
      return new Date(wallOf(this.#clock)).toISOString()
    } catch {
      return new Date().toISOString()
    }
  }
}
