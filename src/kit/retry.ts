import pRetry from 'p-retry'
import { pause } from '../provider/clock.js'
import type { CallContext } from '../provider/contract.js'

/** Options of {@link retried}. */
export interface RetryOptions {
  /** The pause before each further try, in milliseconds: one more try per pause. */
  readonly waits: readonly number[]
  /** Whether to try again after this error. */
  readonly again: (error: unknown) => boolean
}

/**
 * Retries work that failed, on the clock of the call.
 *
 * @param ctx - of the call
 * @param options - the pauses, and which errors to retry
 * @param work - gets the number of the attempt, from 1
 * @throws the error of the last try, or `signal.reason` as soon as it fires
 */
export function retried<T>(
  { clock, signal }: Pick<CallContext, 'clock' | 'signal'>,
  { waits, again }: RetryOptions,
  work: (attempt: number) => Promise<T>,
): Promise<T> {
  return pRetry(work, {
    retries: waits.length,
    // p-retry's own pauses use real timers: ours are in onFailedAttempt.
    minTimeout: 0,
    signal,
    shouldRetry: ({ error }) => again(error),
    onFailedAttempt: async ({ error, attemptNumber }) => {
      const wait = waits[attemptNumber - 1]
      if (wait !== undefined && again(error)) await pause(clock, wait, signal)
    },
  })
}

/**
 * Asks again, on the clock of the call, for as long as the answer says that nothing was done yet.
 *
 * @param waits - the pauses, in milliseconds: one more try per pause
 * @param again - whether to ask again after this answer
 * @returns the last answer
 */
export async function askedAgain<T>(
  { clock, signal }: Pick<CallContext, 'clock' | 'signal'>,
  waits: readonly number[],
  again: (answer: T) => boolean,
  ask: () => Promise<T>,
): Promise<T> {
  for (const wait of waits) {
    const answer = await ask()
    if (!again(answer)) return answer
    await pause(clock, wait, signal)
  }
  return ask()
}

/** Makes pauses that double: `doubling(250, 3)` is 250, 500, 1,000. */
export function doubling(first: number, count: number, most = Infinity): number[] {
  return Array.from({ length: count }, (_, i) => Math.min(most, first * 2 ** i))
}
