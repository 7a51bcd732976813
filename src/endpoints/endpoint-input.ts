/** A condition as Kubernetes writes it: true, false, or not said. `null`, `undefined` and a missing field are the same. */
export type Tri = boolean | null | undefined

/** Kubernetes' own words for what an address is. */
export type AddressType = 'IPv4' | 'IPv6' | 'FQDN'

/**
 * What an operator or a classifier of the caller's own wants of an endpoint, whatever its conditions say.
 *
 * - `soft`: it is on its way out and still good: it serves only while nothing unmarked can
 * - `hard`: it never serves
 */
export type Intent = 'none' | 'soft' | 'hard'

/** Whether an endpoint takes new work, answers, and is on its way out. */
export interface EndpointConditions {
  /** Not said means true. */
  readonly ready?: Tri
  /** Not said means true. */
  readonly serving?: Tri
  /** Not said means false. */
  readonly terminating?: Tri
}

/** The object behind an endpoint; nearly always a pod. */
export interface TargetRef {
  readonly kind?: string | null
  readonly namespace?: string | null
  readonly name?: string | null
  /** Tells a pod from a later one with the same name or address. */
  readonly uid?: string | null
}

/** Where Kubernetes suggests that traffic to an endpoint should come from: names only. */
export interface EndpointHints {
  readonly forZones?: readonly string[] | null
  readonly forNodes?: readonly string[] | null
}

/**
 * One endpoint of a set, as `mergeSlices` and `mapNodes` make it and `mapEndpoints` judges it. It
 * can be written by hand, too: only `addresses` is needed.
 */
export interface EndpointInput {
  /** Only the first one identifies the endpoint; Kubernetes gives the others no meaning. */
  readonly addresses: readonly string[]
  /** Default: told from the address. */
  readonly addressType?: AddressType
  readonly port?: number
  /**
   * Name of the Service's port. Endpoints with different names are judged as sets of their own:
   * a ready endpoint of `metrics` is no replacement for one of `http`.
   */
  readonly portName?: string
  /** `TCP`, `UDP` or `SCTP`. */
  readonly protocol?: string
  readonly conditions?: EndpointConditions | null
  readonly targetRef?: TargetRef | null
  readonly nodeName?: string | null
  readonly zone?: string | null
  readonly hostname?: string | null
  readonly hints?: EndpointHints | null
  /** Its share of the work; 0 is an operator's drain. Default 1. */
  readonly weight?: number
  /** Default `none`. */
  readonly intent?: Intent
  /** `skip`: where the balancer does not have it, it is not added, even while it serves. */
  readonly ifAbsent?: 'skip'
  /** What only its maker knows, such as `taint karpenter.sh/disrupted`: said in the decision's reason. */
  readonly note?: string
  /** Name of the slice it was taken from. */
  readonly fromSlice?: string
}
