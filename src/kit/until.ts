import { pause } from '../provider/clock.js'
import type { CallContext } from '../provider/contract.js'

/** Options of {@link until}. */
export interface UntilOptions {
  /** Milliseconds between two looks. */
  readonly every: number
  /** The time limit in milliseconds from now: no look is made after it. */
  readonly within: number
}

/**
 * Looks until there is a result, on the clock of the call: at once, then after each pause, the last time at the
 * limit.
 *
 * @param ctx - of the call
 * @param options - how often, and for how long
 * @param look - returns undefined as long as there is no result
 * @returns the result of `look`, or undefined if the time was over before
 */
export async function until<T>(
  { clock, signal }: Pick<CallContext, 'clock' | 'signal'>,
  { every, within }: UntilOptions,
  look: () => Promise<T | undefined> | T | undefined,
): Promise<T | undefined> {
  const end = clock.now() + within
  for (;;) {
    signal.throwIfAborted()
    const found = await look()
    if (found !== undefined || clock.now() >= end) return found
    await pause(clock, every, signal)
  }
}
