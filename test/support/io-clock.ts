import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Clock } from 'drainable/provider'
import { undici } from '../../src/kit/http.js'

/** Turns of the event loop after the last answer: what comes of it is in this process alone. */
const TURNS = 25

/** A clock that stands still while a request is on its way. Made by {@link ioClock}. */
export interface IoClock extends Required<Clock>, Disposable {
  /**
   * For the fake: what waits there for its latency to pass is not on its way. While nothing is run it has none: the
   * logout at the end of a test would wait for its limit by the real clock.
   */
  readonly latency: Pick<Clock, 'setTimeout'>
  /** Moves from timer to timer until the promise has settled. */
  run<T>(promise: Promise<T>): Promise<T>
}

interface Timer {
  readonly at: number
  readonly fn: () => void
}

/**
 * A clock for a client of undici and a fake on a real socket: time passes only when every request that was
 * sent waits for the fake's latency. So a drain takes as long by it on any machine.
 */
export function ioClock(): IoClock {
  const timers = new Set<Timer>()
  const wall = Date.now()
  let now = 0
  let sent = 0
  let waiting = 0
  let running = 0
  const create = (): void => void (sent += 1)
  const end = (): void => void (sent -= 1)
  const ENDS = ['undici:request:trailers', 'undici:request:error']
  subscribe('undici:request:create', create)
  for (const name of ENDS) subscribe(name, end)
  const setTimer: Clock['setTimeout'] = (fn, ms) => {
    const timer = { at: now + Math.max(0, ms), fn }
    timers.add(timer)
    return () => void timers.delete(timer)
  }
  const settle = async (): Promise<void> => {
    for (let quiet = 0; quiet < TURNS; quiet += 1) {
      await nextTurn()
      if (sent > waiting) quiet = 0
    }
  }
  return {
    now: () => now,
    wall: () => wall + now,
    setTimeout: setTimer,
    latency: {
      setTimeout(fn, ms) {
        if (running === 0) {
          const turn = setImmediate(fn)
          return () => clearImmediate(turn)
        }
        waiting += 1
        let over = false
        const done = (): void => {
          if (!over) waiting -= 1
          over = true
        }
        const cancel = setTimer(() => {
          done()
          fn()
        }, ms)
        return () => {
          done()
          cancel()
        }
      },
    },
    async run(promise) {
      running += 1
      const state = { settled: false }
      const done = (): void => {
        state.settled = true
      }
      promise.then(done, done).finally(() => (running -= 1))
      // The client is loaded at its first call, and no request tells of that.
      await undici()
      await settle()
      while (!state.settled) {
        const [next] = [...timers].sort((a, b) => a.at - b.at)
        if (next === undefined) throw new Error('nothing is left that could settle the promise')
        timers.delete(next)
        now = Math.max(now, next.at)
        next.fn()
        await settle()
      }
      return promise
    },
    [Symbol.dispose]() {
      unsubscribe('undici:request:create', create)
      for (const name of ENDS) unsubscribe(name, end)
    },
  }
}
