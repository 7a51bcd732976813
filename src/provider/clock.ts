/** Where time comes from. Durations are measured on a monotonic clock; the fake one of `drainable/testing` has the same face. */
export interface Clock {
  /** Milliseconds since some fixed moment; never goes back. */
  now(): number
  /** Calls `fn` once after `ms`; the returned function cancels it. */
  setTimeout(fn: () => void, ms: number): () => void
  /**
   * Epoch milliseconds, which go on as `now()` does. Where a clock has it, all that is kept in a ticket
   * is by this clock, and so is the time between two steps of `stepDrain`. Default: the machine's wall
   * time and uptime.
   */
  wall?(): number
}

/** Epoch milliseconds by a clock; by the machine where it tells none. */
export function wallOf(clock: Clock): number {
  return clock.wall?.() ?? Date.now()
}

/** The real clock: `performance.now()` and the process's timers. */
export const systemClock: Clock = {
  now: () => performance.now(),
  setTimeout: (fn, ms) => {
    const timer = setTimeout(fn, ms)
    return () => clearTimeout(timer)
  },
}

/** Resolves after `ms` on that clock; rejects with `signal.reason` at once when the signal fires. */
export function pause(clock: Clock, ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) {
      reject(signal.reason)
      return
    }
    const onAbort = (): void => {
      cancel()
      reject(signal?.reason)
    }
    const cancel = clock.setTimeout(() => {
      signal?.removeEventListener('abort', onAbort)
      resolve()
    }, ms)
    signal?.addEventListener('abort', onAbort, { once: true })
  })
}
