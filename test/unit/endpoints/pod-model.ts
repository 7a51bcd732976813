import type { Conditions } from 'drainable/endpoints'

/** A pod and its Service as far as the EndpointSlice controller looks at them. */
export interface PodState {
  readonly podReady: boolean
  readonly deleting: boolean
  /** `publishNotReadyAddresses` of the Service. */
  readonly publish: boolean
}

/** What the EndpointSlice controller writes for a pod that is in a slice; `pod-conditions.json` holds it to the real one. */
export function conditionsWritten({ podReady, deleting, publish }: PodState): Conditions {
  return { ready: publish || (podReady && !deleting), serving: podReady, terminating: deleting }
}
