import type { AddressType, EndpointInput } from './endpoint-input.js'

/**
 * What becomes of an endpoint.
 *
 * - `serve`: it gets new work
 * - `drain`: nothing new; what it has is kept
 * - `exclude`: it does not belong in the balancer; one that is there is drained, and taken out once idle
 */
export type Action = 'serve' | 'drain' | 'exclude'

/**
 * The same in Envoy's words. The default strategy says `HEALTHY`, `DRAINING` or `ABSENT`; one that
 * reproduces a real system says the word of that system.
 */
export type EndpointHealth = 'HEALTHY' | 'DRAINING' | 'UNHEALTHY' | 'UNKNOWN' | 'ABSENT'

/** What becomes of one endpoint, and why. */
export interface Decision {
  /** As it was given; empty where the endpoint has none. */
  readonly address: string
  readonly addressType: AddressType
  readonly port?: number
  readonly action: Action
  /** Why, in a few words for a person. */
  readonly reason: string
  readonly health: EndpointHealth
  /** The endpoint's weight where it serves, 0 otherwise. */
  readonly weight: number
  /** Where the balancer does not have it: adding a server only to drain it keeps nothing. */
  readonly ifAbsent: 'add' | 'skip'
  /**
   * Whether it still answers, as far as the conditions tell (tiers 1 to 3). A drained one that does
   * not is held as one that is gone.
   */
  readonly serving: boolean
  /** What was decided about. */
  readonly endpoint: EndpointInput
}
