import { pause } from '../provider/clock.js'
import type { CallContext } from '../provider/contract.js'

/** How something is waited for. */
export interface UntilOptions {
  /** Milliseconds between two looks. */
  readonly every: number
  /** Milliseconds from now on: after that no look is made. */
  readonly within: number
}

/**
 * Looks until there is something, on the clock of the call: at once, then after each pause, the last time
 * when the time is over.
 *
 * @param ctx - of the call
 * @param options - how often, and for how long
 * @param look - gives undefined as long as there is nothing
 * @returns what `look` gave, or undefined where the time was over before
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
