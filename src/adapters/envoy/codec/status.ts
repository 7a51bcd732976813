import type { AdminState } from '../../../provider/contract.js'

/** The health status that the owner of an endpoint set gives an endpoint. `UNKNOWN` (or unset) counts as healthy. */
export type EdsStatus = 'UNKNOWN' | 'HEALTHY' | 'UNHEALTHY' | 'DRAINING' | 'TIMEOUT' | 'DEGRADED'

/** Envoy's `HealthStatus`, by its numbers on the wire. */
export const EDS_STATUS: readonly EdsStatus[] = [
  'UNKNOWN',
  'HEALTHY',
  'UNHEALTHY',
  'DRAINING',
  'TIMEOUT',
  'DEGRADED',
]

export function toEdsStatus(value: string | number): EdsStatus | undefined {
  if (typeof value === 'number') return EDS_STATUS[value]
  // Envoy's JSON reader takes lower case too; it silently drops anything else and treats it as HEALTHY.
  return EDS_STATUS.find((status) => status === value.toUpperCase())
}

/**
 * Only DRAINING is a drain. UNHEALTHY and TIMEOUT take no new work either, but another client set them as a health
 * status: we can set and undo a drain on top of them.
 */
export function toAdminState(status: EdsStatus | undefined): AdminState | 'unknown' {
  if (status === undefined) return 'unknown'
  return status === 'DRAINING' ? 'drain' : 'ready'
}

/** The last one wins where proxies show different ones: whoever drained had a reason. */
const CAUTION: readonly (EdsStatus | undefined)[] = [
  undefined,
  'UNKNOWN',
  'HEALTHY',
  'DEGRADED',
  'TIMEOUT',
  'UNHEALTHY',
  'DRAINING',
]

/** The more cautious of two statuses. */
export function moreCautious(
  one: EdsStatus | undefined,
  other: EdsStatus | undefined,
): EdsStatus | undefined {
  return CAUTION.indexOf(other) > CAUTION.indexOf(one) ? other : one
}

/** Whether an endpoint with this status gets new work as long as the cluster is not in panic. */
export function takesWork(status: EdsStatus | undefined): boolean {
  return status === 'HEALTHY' || status === 'UNKNOWN' || status === 'DEGRADED'
}
