import type { EndpointConditions, TargetRef } from '../endpoint-input.js'

/**
 * The part of an EndpointSlice (`discovery.k8s.io/v1`) that is read. The objects of any client fit, and so does the
 * JSON of the API; other fields are ignored.
 */
export interface EndpointSlice {
  /**
   * Name and namespace: they decide between two equally good records. The `resourceVersion` tells which of two records
   * of one pod is newer.
   */
  readonly metadata?: {
    readonly name?: string | null
    readonly namespace?: string | null
    readonly resourceVersion?: string | null
    readonly labels?: Readonly<Record<string, string>> | null
  } | null
  /** The same as `metadata.name`, for slices that were never in an API server. */
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
  /** A port without a number is skipped: it means every port, which a balancer can't use. */
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
