import type { EndpointConditions, TargetRef } from '../endpoint-input.js'

/**
 * What is read of an EndpointSlice (`discovery.k8s.io/v1`). The objects of any client fit, and so
 * does the JSON of the API; fields not named here are not looked at.
 */
export interface EndpointSlice {
  /** Name and namespace decide which of two equally good records wins. */
  readonly metadata?: {
    readonly name?: string | null
    readonly namespace?: string | null
    readonly labels?: Readonly<Record<string, string>> | null
  } | null
  /** The same as `metadata.name`, for slices that never were in an API server. */
  readonly name?: string | null
  /** `IPv4`, `IPv6` or `FQDN`. */
  readonly addressType: string
  /** `null` in the placeholder of an empty Service. */
  readonly ports?: readonly SlicePort[] | null
  /** `null` in the placeholder of an empty Service. */
  readonly endpoints?: readonly SliceEndpoint[] | null
}

/** A port of a slice. */
export interface SlicePort {
  /** Default: the empty name. */
  readonly name?: string | null
  /** Without a number the port is skipped: it means every port, which no balancer can be given. */
  readonly port?: number | null
  /** Default `TCP`. */
  readonly protocol?: string | null
}

/** An endpoint of a slice, as the API writes it. */
export interface SliceEndpoint {
  readonly addresses: readonly string[]
  readonly conditions?: EndpointConditions | null
  readonly targetRef?: TargetRef | null
  readonly nodeName?: string | null
  readonly zone?: string | null
  readonly hostname?: string | null
  readonly hints?: {
    readonly forZones?: readonly { readonly name: string }[] | null
    readonly forNodes?: readonly { readonly name: string }[] | null
  } | null
}
