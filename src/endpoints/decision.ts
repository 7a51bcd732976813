import { once } from '../provider/once.js'
import type { AddressType, EndpointInput } from './endpoint-input.js'
import { word } from './shape.js'

/**
 * The decision about an endpoint.
 *
 * - `serve`: it gets new work
 * - `drain`: it gets no new work; its present work is kept
 * - `exclude`: it does not belong in the balancer; if it is there, it is drained, and removed once idle
 */
export type Action = 'serve' | 'drain' | 'exclude'

/** The shape of an {@link Action}. */
export const actionShape = once(() => word('serve', 'drain', 'exclude'))

/**
 * The decision in Envoy's terms. The default strategy uses `HEALTHY`, `DRAINING` or `ABSENT`; a strategy that
 * reproduces a real system uses that system's term.
 */
export type EndpointHealth = 'HEALTHY' | 'DRAINING' | 'UNHEALTHY' | 'UNKNOWN' | 'ABSENT'

/** The decision about one endpoint, and its reason. */
export interface Decision {
  /** The address as given; empty if the endpoint has none. */
  readonly address: string
  readonly addressType: AddressType
  readonly port?: number
  readonly action: Action
  /** The reason, in a few words for people. */
  readonly reason: string
  readonly health: EndpointHealth
  /** The endpoint's weight if it serves, 0 otherwise. */
  readonly weight: number
  /** What to do if the balancer does not have it: it makes no sense to add a server only to drain it. */
  readonly ifAbsent: 'add' | 'skip'
  /**
   * Whether it still answers, as far as the conditions show (tiers 1 to 3). A drained endpoint that does not is held
   * like one that is gone.
   */
  readonly serving: boolean
  /** The endpoint of this decision. */
  readonly endpoint: EndpointInput
}
