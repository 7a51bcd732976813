import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Clock } from '../provider/clock.js'
import { checkPromise, checkTime } from './check-fake.js'

/** A clock that stands still until a test moves it. Made by {@link fakeClock}. */
export interface FakeClock extends Clock {
  /** Epoch milliseconds. They advance with `now()`, so that tickets and `stepDrain` use this clock too. */
  wall(): number
  /** Advances time by `ms`; fires each timer at its own time, and lets promises settle in between. */
  advance(ms: number): Promise<void>
  /**
   * Advances time from timer to timer until the promise has settled; returns its value or throws its error. Thirty
   * minutes of a drain take milliseconds with `pace: '1s'`, and seconds without it, because a drain then makes a
   * hundred looks a second.
   *
   * @param promise - what to wait for
   * @param limit - how much time can pass on this clock, in milliseconds. Default: seven days
   * @throws `Error` when no timer is left that could settle the promise, or the limit is reached
   */
  runUntil<T>(promise: Promise<T>, limit?: number): Promise<T>
  /** The number of waiting timers: 0 at the end of a test shows that nothing was left behind. */
  readonly pending: number
}

interface Timer {
  readonly at: number
  readonly fn: () => void
}

const WEEK = 7 * 24 * 3_600_000
/** Turns of the event loop granted to real I/O (a socket) when no timer is left; a file is waited for as long as it takes. */
const IDLE_TURNS = 2_000

/**
 * Makes a clock for tests with {@link fakeProvider}: pass it to both the provider and the drain.
 *
 * @param startAt - the first value of `now()`. Default 0
 * @param wall - the first value of `wall()`, in epoch milliseconds. Default: the machine's wall time
 *
 * @example
 * ```ts
 * import { drain } from 'drainable'
 * import { fakeClock, fakeProvider } from 'drainable/testing'
 *
 * const clock = fakeClock()
 * const lb = fakeProvider({ pools: { web: ['web1', 'web2'] }, clock })
 * const end = lb.occupy({ pool: 'web', member: 'web1' })
 * clock.setTimeout(end, 20 * 60_000)
 * const report = await clock.runUntil(
 *   drain(lb, { pool: 'web', member: 'web1' }, { timeout: '30m', pace: '1s', clock }),
 * )
 * console.log(report.outcome, clock.now()) // idle, a little over 20 minutes
 * ```
 */
export function fakeClock(startAt = 0, wall = Date.now()): FakeClock {
  checkTime('fakeClock(): startAt', startAt)
  checkTime('fakeClock(): wall', wall)
  return new StandingClock(startAt, wall)
}

class StandingClock implements FakeClock {
  #now: number
  readonly #wallOffset: number
  readonly #timers = new Set<Timer>()

  constructor(startAt: number, wall: number) {
    this.#now = startAt
    this.#wallOffset = wall - startAt
  }

  get pending(): number {
    return this.#timers.size
  }

  now(): number {
    return this.#now
  }

  wall(): number {
    return this.#wallOffset + this.#now
  }

  setTimeout(fn: () => void, ms: number): () => void {
    // Like the real one, a timer is never called in the same breath; one of Infinity is never called.
    const timer = { at: this.#now + (ms > 0 ? ms : 0), fn }
    if (timer.at !== Infinity) this.#timers.add(timer)
    return () => void this.#timers.delete(timer)
  }

  async advance(ms: number): Promise<void> {
    checkTime('advance()', ms)
    const until = this.#now + ms
    await settle()
    for (let next = this.#next(); next && next.at <= until; next = this.#next()) {
      await this.#fire(next)
    }
    this.#now = Math.max(this.#now, until)
  }

  async runUntil<T>(promise: Promise<T>, limit = WEEK): Promise<T> {
    checkPromise('runUntil()', promise)
    checkTime('runUntil(): limit', limit)
    const until = this.#now + limit
    const state = { settled: false }
    const done = (): void => void (state.settled = true)
    promise.then(done, done)
    let turnsLeft = IDLE_TURNS
    await settle()
    while (!state.settled) {
      const next = this.#next()
      if (!next && turnsLeft-- <= 0) {
        throw new Error(
          'The promise has not settled and no timer is left that could settle it; was `{ clock }` given to the call too?',
        )
      }
      if (next && next.at > until) {
        throw new Error(`The promise has not settled within ${limit} ms of the fake clock`)
      }
      await (next ? this.#fire(next) : settle())
      if (next !== undefined || readsOrWrites()) turnsLeft = IDLE_TURNS
    }
    return promise
  }

  /** The earliest timer; of two for one moment, the one that was set first. */
  #next(): Timer | undefined {
    let first: Timer | undefined
    for (const timer of this.#timers) if (!first || timer.at < first.at) first = timer
    return first
  }

  async #fire(timer: Timer): Promise<void> {
    // The disk has its own time: no time passes here while it works.
    while (readsOrWrites()) await settle()
    if (!this.#timers.delete(timer)) return
    this.#now = Math.max(this.#now, timer.at)
    timer.fn()
    await settle()
  }
}

/** Whether Node still reads or writes a file, or looks a name up: on a loaded machine that takes any number of turns. */
function readsOrWrites(): boolean {
  return process.getActiveResourcesInfo().some((name) => name.includes('Req'))
}

/** One whole turn of the event loop: every microtask, also those that microtasks queue, has run by then. */
async function settle(): Promise<void> {
  await nextTurn()
}
