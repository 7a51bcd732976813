/**
 * Drain endpoints of Envoy, in one proxy or in a fleet.
 *
 * Envoy has no drain call: whoever owns a cluster's endpoint set does it. `envoy()` holds the full
 * set, publishes it through a sink (a file, REST, gRPC, or your own control plane) and says idle
 * only when every proxy has taken the change and none has work left.
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
 * @packageDocumentation
 */
import { withEvents, type ProviderEvents } from '../../core/with-events.js'
import type { DrainableProvider } from '../../provider/contract.js'
import type { Duration } from '../../provider/duration.js'
import { parseOptions } from '../../provider/options.js'
import { envoySchema, type AdminAddresses } from './options.js'
import { EnvoyProvider } from './provider.js'
import type { EndpointSink } from './sources/sink.js'

/** Options of {@link envoy}. */
export interface EnvoyOptions {
  /** How endpoint sets reach the proxies. It is closed with the provider. */
  readonly endpoints: EndpointSink
  /**
   * The admin API of every proxy: `http://10.0.0.7:9901` or `unix:/run/envoy/admin.sock`. A function
   * is asked at every look, so that a fleet can grow and shrink; a proxy that left stays unknown,
   * and keeps members from being idle, until the list drops it.
   *
   * Needed by every sink but `grpcEndpoints()`, which can do with load reports.
   */
  readonly admin?: AdminAddresses | undefined
  /**
   * Who must be there: node ids or admin addresses, or how many. A proxy that is expected and not
   * known keeps members from being idle. Default: whoever is listed or connected.
   */
  readonly expect?: readonly string[] | number | undefined
  /**
   * A proxy that cannot be seen any more: `wait` (it may still hold work), or it counts as gone
   * after that long. @default 'wait'
   */
  readonly onProxyGone?: 'wait' | { readonly after: Duration } | undefined
  /**
   * A drain that would put the cluster into panic mode, in which Envoy sends traffic to drained
   * endpoints too. @default 'refuse'
   */
  readonly onPanic?: 'refuse' | 'allow' | undefined
  /**
   * The clusters' `common_lb_config.update_merge_window`, where no admin API tells it. Before Envoy
   * 1.40 a drain may take that long after its acknowledgement. @default 1 s
   */
  readonly mergeWindow?: Duration | undefined
  /**
   * The clusters' `connect_timeout`, where no admin API tells it: for that long a connect can hide
   * a request on Envoy before 1.39.3, and in load reports. @default 5 s
   */
  readonly connectTimeout?: Duration | undefined
}

/**
 * Endpoints of Envoy clusters as members: `{ pool: cluster, member: '10.0.0.1:80' }`, also
 * `'[2001:db8::1]:80'` and `'/run/app.sock'`.
 *
 * @throws `INVALID_OPTIONS`
 */
export function envoy(options: EnvoyOptions): DrainableProvider & ProviderEvents {
  return withEvents(new EnvoyProvider(parseOptions(envoySchema, options, 'envoy()')))
}

export { callbackEndpoints } from './sources/callback-endpoints.js'
export type { CallbackEndpointsOptions } from './sources/callback-endpoints.js'
export { fileEndpoints } from './sources/file-endpoints.js'
export type { FileEndpointsOptions } from './sources/file-endpoints.js'
export { restEndpoints } from './sources/rest-endpoints.js'
export type { RestEndpointsOptions, ServedEndpoints } from './sources/rest-endpoints.js'
export type { Assignment, Endpoint, EndpointNative, NewEndpoint } from './codec/assignment.js'
export type { EdsStatus } from './codec/status.js'
export type { Version as EnvoyVersion } from '../../kit/version.js'
export type { NodeReceipt } from './sources/receipts.js'
export type {
  EndpointSink,
  LoadCount,
  LoadReports,
  NodeLoad,
  Published,
  SinkHost,
} from './sources/sink.js'
export type { AdminAddresses } from './options.js'
