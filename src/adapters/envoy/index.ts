/**
 * Drain endpoints of Envoy, in one proxy or in a fleet.
 *
 * Envoy has no drain call: the owner of a cluster's endpoint set drains its endpoints. `envoy()` holds the full set,
 * publishes it through a sink (a file, REST, gRPC, or your own control plane) and reports idle only when every proxy
 * has taken the change and none has work left.
 *
 * @example
 * ```ts
 * import { drain } from 'drainable'
 * import { envoy, fileEndpoints } from 'drainable/envoy'
 *
 * await using lb = envoy({
 *   endpoints: fileEndpoints({ cluster: 'web', path: '/etc/envoy/eds/web.json' }),
 *   admin: ['http://127.0.0.1:9901'],
 * })
 * await drain(lb, { pool: 'web', member: '10.0.0.1:8080' }, { timeout: '2m' })
 * ```
 *
 * @module drainable/envoy
 */
import { withEvents, type ProviderEvents } from '../../core/with-events.js'
import type { DrainableProvider } from '../../provider/contract.js'
import { type EnvoyOptions, readOptions } from './options.js'
import { EnvoyProvider } from './provider.js'

/**
 * Makes a provider with the endpoints of Envoy clusters as members: `{ pool: cluster, member: '10.0.0.1:80' }`, also
 * `'[2001:db8::1]:80'` and `'/run/app.sock'`.
 *
 * @throws `INVALID_OPTIONS`
 */
export function envoy(options: EnvoyOptions): DrainableProvider & ProviderEvents {
  return withEvents(new EnvoyProvider(readOptions(options)))
}

export { callbackEndpoints } from './sources/callback-endpoints.js'
export type { CallbackEndpointsOptions } from './sources/callback-endpoints.js'
export { fileEndpoints } from './sources/file-endpoints.js'
export type { FileEndpointsOptions } from './sources/file-endpoints.js'
export type { AdoptedEndpoints, HeldMembers, InitialEndpoints } from './sources/initial.js'
export { observedEndpoints } from './sources/observed-endpoints.js'
export type { ObservedEndpointsOptions } from './sources/observed-endpoints.js'
export { restEndpoints } from './sources/rest-endpoints.js'
export type { RestEndpointsOptions } from './sources/rest-endpoints.js'
export type { ServedEndpoints } from './sources/served-sink.js'
export type { Assignment, Endpoint, EndpointNative, NewEndpoint } from './codec/assignment.js'
export type { EdsStatus } from './codec/status.js'
export type { Version as EnvoyVersion } from '../../kit/version.js'
export { NotPublished, Superseded } from './sources/sink.js'
export type { NodeReceipt } from './sources/receipts.js'
export type {
  EndpointSink,
  HeldSets,
  LoadCount,
  LoadReports,
  LoadReportSource,
  NodeLoad,
  Published,
  SinkHost,
  Subscribers,
} from './sources/sink.js'
export type { AdminAddresses, EnvoyOptions } from './options.js'
