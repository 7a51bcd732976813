import { combinedOf } from '../core/combined.js'
import type { DrainableProvider } from '../provider/contract.js'

/** Its balancers, by the `balancer` of their refs; one that combines nothing is its only one. */
export function balancersOf(
  provider: DrainableProvider,
): ReadonlyMap<string | undefined, DrainableProvider> {
  return combinedOf(provider)?.all ?? new Map([[undefined, provider]])
}
