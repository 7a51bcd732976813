import type { Tier } from '../slices/conditions.js'
import type { Action, EndpointHealth } from '../decision.js'
import type { EndpointInput } from '../endpoint-input.js'

/** An endpoint as a strategy sees it. */
export interface EndpointView {
  /** As given to `mapEndpoints`. */
  readonly endpoint: EndpointInput
  /**
   * The conditions with what was not said left `undefined`: real systems read that differently. A
   * soft intent makes an active endpoint look as one that is terminating and still serving.
   */
  readonly said: {
    readonly ready: boolean | undefined
    readonly serving: boolean | undefined
    readonly terminating: boolean | undefined
  }
  /** Ready; true where it was not said. */
  readonly ready: boolean
  /** Serving; true where it was not said. */
  readonly serving: boolean
  /** Terminating; false where it was not said. */
  readonly terminating: boolean
  /** How good it is, by the default strategy's order. */
  readonly tier: Tier
}

/** What a strategy says of one endpoint. */
export interface Verdict {
  readonly action: Action
  /** Default: `HEALTHY` for `serve`, `DRAINING` for `drain`; an excluded one is always `ABSENT`. */
  readonly health?: EndpointHealth
  /** Why, in a few words for a person. */
  readonly reason: string
}

/** What some strategies need to know beyond the endpoints. */
export type StrategyContext = StrategySettings & TrafficPolicy

/** Options of the named strategies; each is read by the strategies it names. */
export interface StrategySettings {
  /** `kube-proxy`: whether zone and node hints count. @default false */
  readonly topology?: boolean
  /** `kube-proxy` with `topology`: the zone that is looked from. */
  readonly zone?: string
  /** `istio`: whether the Service keeps persistent sessions. @default false */
  readonly persistentSession?: boolean
  /** `istio`: whether endpoints that are not ready are sent as unhealthy. @default true */
  readonly sendUnhealthy?: boolean
}

/** `kube-proxy`: which endpoints count, all (`cluster`, the default) or those of one node (`local`). */
export type TrafficPolicy =
  | { readonly policy?: 'cluster'; readonly nodeName?: string }
  | { readonly policy: 'local'; readonly nodeName: string }

/** What a strategy is told beside the endpoints. */
export type StrategyInput = StrategyContext & {
  /** What the caller wants of endpoints that are not ready. */
  readonly unready: 'drain' | 'exclude'
}

/**
 * Judges a whole set: one verdict per endpoint, in order. Pure: no clock, no memory of earlier sets.
 *
 * Endpoints that an operator drained (intent `hard`, weight 0) are not in the set: they never serve,
 * and never count as one that could.
 *
 * @example
 * ```ts
 * import { mapEndpoints, type Strategy } from 'drainable/endpoints'
 *
 * const onlyThisZone: Strategy = (all) =>
 *   all.map(({ endpoint, tier }) =>
 *     tier === 1 && endpoint.zone === 'a'
 *       ? { action: 'serve', reason: 'ready in zone a' }
 *       : { action: 'drain', reason: 'not ready, or elsewhere' },
 *   )
 * mapEndpoints([{ addresses: ['10.0.0.1'], zone: 'a' }], { strategy: onlyThisZone })
 * ```
 */
export type Strategy = (
  endpoints: readonly EndpointView[],
  context: StrategyInput,
) => readonly Verdict[]
