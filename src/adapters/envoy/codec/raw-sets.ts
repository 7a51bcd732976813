/** Endpoint sets as plain JSON: what has to be compared or put together without being understood. */
import { isObject, type JsonObject } from '../../../kit/json.js'
import { canonical } from './canonical.js'
import { addressOf, field, keyOf, withoutKeys } from './proto-json.js'
import type { EdsStatus } from './status.js'

/** The state that wins where proxies were left with different ones, the last first: whoever drained had a reason. */
export const CAUTION: readonly EdsStatus[] = [
  'UNKNOWN',
  'HEALTHY',
  'DEGRADED',
  'TIMEOUT',
  'UNHEALTHY',
  'DRAINING',
]

/** The objects of a list under a field. */
export function objectsIn(value: JsonObject, name: string): JsonObject[] {
  const list = field(value, name)
  return Array.isArray(list) ? list.filter(isObject) : []
}

/** The address of an `lb_endpoint`; where that can't be named, all that it is. */
export function nameOf(endpoint: JsonObject): string {
  const inner = field(endpoint, 'endpoint')
  const { member } = addressOf(isObject(inner) ? field(inner, 'address') : undefined)
  return member ?? canonical(withoutKeys(endpoint, keyOf(endpoint, 'health_status')))
}
