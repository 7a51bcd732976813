/**
 * Drain servers of a HAProxy that is reached only through its REST API, the HAProxy Data Plane API
 * (v2 and v3).
 *
 * @example
 * ```ts
 * import { drain, ready } from 'drainable'
 * import { haproxyDataplane } from 'drainable/haproxy-dataplane'
 *
 * await using lb = haproxyDataplane({
 *   url: 'https://lb1.example:5555',
 *   username: 'drainer',
 *   password: () => process.env['DATAPLANE_PASSWORD'] ?? '',
 *   oldWorkers: { within: '30s' }, // the hard-stop-after that HAProxy was started with
 * })
 * await drain(lb, { pool: 'web', member: 'web1' }, { timeout: '2m' })
 * await ready(lb, { pool: 'web', member: 'web1' }, { waitHealthy: '60s' })
 * ```
 *
 * @module drainable/haproxy-dataplane
 */
import { withEvents, type ProviderEvents } from '../../core/with-events.js'
import type { DrainableProvider } from '../../provider/contract.js'
import { readOptions, type HaproxyDataplaneOptions, type OldWorkers } from './options.js'
import { HaproxyDataplaneProvider } from './provider.js'

export type { HaproxyDataplaneOptions, OldWorkers }

/**
 * Makes a provider over one HAProxy Data Plane API.
 *
 * @throws `INVALID_OPTIONS` at once if an option is wrong
 */
export function haproxyDataplane(
  options: HaproxyDataplaneOptions,
): DrainableProvider & ProviderEvents {
  return withEvents(new HaproxyDataplaneProvider(readOptions(options)))
}
