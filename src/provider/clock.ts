/**
 * A source of time. Durations are measured on a monotonic clock; the fake clock of `drainable/testing` has the same
 * interface.
 */
export interface Clock {
  /** Milliseconds since some fixed moment; never goes back. */
  now(): number
  /** Calls `fn` once after `ms`; the returned function cancels it. */
  setTimeout(fn: () => void, ms: number): () => void
  /**
   * Epoch milliseconds that advance with `now()`. If a clock has it, the times in a ticket come from this clock, its deadline
   * too. Default: the machine's wall time.
   */
  wall?(): number
}

/** Epoch milliseconds by a clock, or by the machine if the clock has no `wall()`. */
export function wallOf(clock: Clock): number {
  return clock.wall?.() ?? Date.now()
}

/** The wall time by a clock, so many milliseconds from now, in ISO 8601. */
export function isoOf(clock: Clock, ms = 0): string {
  return new Date(wallOf(clock) + ms).toISOString()
}

const SYSTEM = Symbol.for('drainable.system-clock.1')

/** The real clock: `performance.now()` and the process's timers. */
export const systemClock: Clock = oneInProcess(() => ({
  now: () => performance.now(),
  setTimeout: (fn, ms) => {
    // Node waits a millisecond at least.
    if (ms <= 0) {
      const immediate = setImmediate(fn)
      return () => clearImmediate(immediate)
    }
    const timer = setTimeout(fn, ms)
    return () => clearTimeout(timer)
  },
}))

/** Copies of this module share it, so that they count time by one clock. */
function oneInProcess(make: () => Clock): Clock {
  const holder = globalThis as unknown as Record<symbol, Clock | undefined>
  return (holder[SYSTEM] ??= make())
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
