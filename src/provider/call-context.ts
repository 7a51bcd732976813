import { systemClock, type Clock } from './clock.js'
import type { CallContext } from './contract.js'

/**
 * What a provider's own calls take, for a loop that makes them itself: `lb.observe('all', callContext())`.
 * Without a signal a call ends only by the provider's own limits.
 *
 * @example
 * ```ts
 * import { callContext, type DrainableProvider, type Snapshot } from 'drainable/provider'
 *
 * export function everything(lb: DrainableProvider): Promise<Snapshot> {
 *   return lb.observe('all', callContext({ signal: AbortSignal.timeout(10_000) }))
 * }
 * ```
 */
export function callContext(
  o: { readonly signal?: AbortSignal | undefined; readonly clock?: Clock | undefined } = {},
): CallContext {
  return { signal: o.signal ?? new AbortController().signal, clock: o.clock ?? systemClock }
}
