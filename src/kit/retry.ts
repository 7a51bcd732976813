import pRetry from 'p-retry'
import { pause } from '../provider/clock.js'
import type { CallContext } from '../provider/contract.js'

/** How often something is tried, and what for. */
export interface RetryOptions {
  /** The pause before each further try, in milliseconds: as many tries more as there are pauses. */
  readonly waits: readonly number[]
  /** Whether another try can help. */
  readonly again: (error: unknown) => boolean
}

/**
 * Tries again what failed, on the clock of the call.
 *
 * @param ctx - of the call
 * @param options - the pauses, and what is tried again
 * @param work - is given the number of the attempt, from 1
 * @throws what the last try threw, or `signal.reason` as soon as it fires
 */
export function retried<T>(
  { clock, signal }: Pick<CallContext, 'clock' | 'signal'>,
  { waits, again }: RetryOptions,
  work: (attempt: number) => Promise<T>,
): Promise<T> {
  return pRetry(work, {
    retries: waits.length,
    // Its own pauses are on real timers: ours are in onFailedAttempt.
    minTimeout: 0,
    signal,
    shouldRetry: ({ error }) => again(error),
    onFailedAttempt: async ({ error, attemptNumber }) => {
      const wait = waits[attemptNumber - 1]
      if (wait !== undefined && again(error)) await pause(clock, wait, signal)
    },
  })
}

/** Pauses that double: `doubling(250, 3)` is 250, 500, 1,000. */
export function doubling(first: number, count: number, most = Infinity): number[] {
  return Array.from({ length: count }, (_, i) => Math.min(most, first * 2 ** i))
}
