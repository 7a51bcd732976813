import { systemClock, type Clock } from './clock.js'
import type { CallContext } from './contract.js'

/**
 * Makes the context for direct calls of a provider: `lb.observe('all', callContext())`. Without a signal, only the
 * provider's own limits end a call.
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
