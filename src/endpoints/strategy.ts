import type { EndpointInput, Tier } from './endpoint.js'

/**
 * The decision about an endpoint.
 *
 * - `serve`: it gets new work
 * - `drain`: it gets no new work; its present work is kept
 * - `exclude`: it does not belong in the balancer; if it is there, it is drained, and removed once idle
 */
export type Action = 'serve' | 'drain' | 'exclude'

/**
 * The decision in Envoy's terms. The default strategy uses `HEALTHY`, `DRAINING` or `ABSENT`; a strategy that
 * reproduces a real system uses that system's term.
 */
export type EndpointHealth = 'HEALTHY' | 'DRAINING' | 'UNHEALTHY' | 'UNKNOWN' | 'ABSENT'

/** An endpoint as a strategy sees it. */
export interface EndpointView {
  /** The endpoint as given to `mapEndpoints`. */
  readonly endpoint: EndpointInput
  /**
   * The conditions as given; `undefined` if not set, which real systems read differently. A soft intent makes an
   * active endpoint look like one that is terminating and still serving.
   */
  readonly said: {
    readonly ready: boolean | undefined
    readonly serving: boolean | undefined
    readonly terminating: boolean | undefined
  }
  /** Ready; true if not set. */
  readonly ready: boolean
  /** Serving; true if not set. */
  readonly serving: boolean
  /** Terminating; false if not set. */
  readonly terminating: boolean
  /** Its tier in the default strategy's order. */
  readonly tier: Tier
}

/** A strategy's verdict on one endpoint. */
export interface Verdict {
  readonly action: Action
  /** Default: `HEALTHY` for `serve`, `DRAINING` for `drain`; an excluded endpoint is always `ABSENT`. */
  readonly health?: EndpointHealth
  /** The reason, in a few words for people. */
  readonly reason: string
}

/** The context that some strategies need beside the endpoints. */
export type StrategyContext = StrategySettings & TrafficPolicy

/** Options of the named strategies; each is read by the strategies it names. */
export interface StrategySettings {
  /** `kube-proxy`: whether zone and node hints count. @default false */
  readonly topology?: boolean
  /** `kube-proxy` with `topology`: the zone of the proxy. */
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

/** The input of a strategy beside the endpoints. */
export type StrategyInput = StrategyContext & {
  /** The option `unready` of {@link MapOptions}. */
  readonly unready: 'drain' | 'exclude'
}

/**
 * A function that judges a whole set: one verdict per endpoint, in order. Pure: no clock, no memory of earlier sets.
 *
 * The set does not contain endpoints that an operator drained (intent `hard`, weight 0): they never serve, and never
 * count as able to.
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
