/**
 * Drain pool members and nodes of an F5 BIG-IP (LTM, TMOS 13 to 17.5 and 21) over iControl REST.
 *
 * @example
 * ```ts
 * import { drain, ready } from 'drainable'
 * import { f5Bigip } from 'drainable/f5-bigip'
 *
 * await using lb = f5Bigip({
 *   url: ['https://bigip1.example', 'https://bigip2.example'],
 *   username: 'drainer',
 *   password: () => process.env['BIGIP_PASSWORD'] ?? '',
 *   tls: { ca: '/etc/ssl/corp.pem' },
 * })
 * const member = { pool: '/Common/web', member: '/Common/10.0.0.1:80' }
 * await drain(lb, member, { timeout: '10m', escalateAfter: '5m' })
 * await ready(lb, member, { waitHealthy: '60s' })
 * ```
 *
 * @module drainable/f5-bigip
 */
import { withEvents, type ProviderEvents } from '../../core/with-events.js'
import type { DrainableProvider } from '../../provider/contract.js'
import { readOptions, type F5BigipOptions } from './options.js'
import { F5BigipProvider } from './provider.js'

export type { F5BigipOptions }

/**
 * Makes a provider for a BIG-IP, or for the units of one device group.
 *
 * Members are `{ pool: '/Common/web', member: '/Common/10.0.0.1:80' }`; names without a path are in `partition`, and
 * a member can also be named by address and port, or by its node's name if that is unambiguous. A node, in all of its
 * pools, is `{ pool: '@nodes', member: '/Common/10.0.0.1' }`.
 *
 * @param options - where the device is and how to log in; nothing is sent before the first call
 * @throws `INVALID_OPTIONS` naming what was expected
 */
export function f5Bigip(options: F5BigipOptions): DrainableProvider & ProviderEvents {
  return withEvents(new F5BigipProvider(readOptions(options)))
}
