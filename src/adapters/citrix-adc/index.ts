/**
 * Drain services and service group members of a Citrix ADC (NetScaler) over NITRO.
 *
 * @example
 * ```ts
 * import { drain, ready } from 'drainable'
 * import { citrixAdc } from 'drainable/citrix-adc'
 *
 * await using adc = citrixAdc({
 *   url: ['https://10.0.0.11', 'https://10.0.0.12'],
 *   username: 'drainer',
 *   password: () => process.env['ADC_PASSWORD'] ?? '',
 *   tls: { ca: '/etc/ssl/adc.pem' },
 * })
 * const web1 = { pool: 'sg_web', member: '10.0.1.1:80' }
 * await drain(adc, web1, { timeout: '5m' })
 * await ready(adc, web1)
 * ```
 *
 * @module drainable/citrix-adc
 */
import { type ProviderEvents, withEvents } from '../../core/with-events.js'
import type { DrainableProvider } from '../../provider/contract.js'
import { readOptions, type CitrixAdcOptions } from './options.js'
import { CitrixAdcProvider } from './provider.js'

export type { CitrixAdcOptions }

/**
 * Makes a provider for a Citrix ADC, an HA pair or a cluster.
 *
 * Members are `{ pool: <service group>, member: 'server:port' }` or `{ pool: <lb virtual server>, member: <service>
 * }`. Write port `*` as `*`.
 *
 * @throws `INVALID_OPTIONS` naming every wrong option
 */
export function citrixAdc(options: CitrixAdcOptions): DrainableProvider & ProviderEvents {
  return withEvents(new CitrixAdcProvider(readOptions(options)))
}
