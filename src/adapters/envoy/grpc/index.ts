/**
 * Endpoint sets over gRPC: ADS and EDS, state of the world and delta, and load reports, on one port.
 * It needs `@grpc/grpc-js`, which is an optional peer of this package.
 *
 * @example
 * ```ts
 * import { drain } from 'drainable'
 * import { envoy } from 'drainable/envoy'
 * import { grpcEndpoints } from 'drainable/envoy/grpc'
 *
 * declare const sets: readonly unknown[] // full ClusterLoadAssignments, JSON or protobuf
 * await using lb = envoy({ endpoints: grpcEndpoints({ port: 18000, initial: sets }), expect: 2 })
 * await drain(lb, { pool: 'web', member: '10.0.0.1:8080' }, { timeout: '2m' })
 * ```
 *
 * @module drainable/envoy/grpc
 */
import * as z from 'zod/mini'
import type { Duration } from '../../../provider/duration.js'
import { durationOption, nonEmpty, whole } from '../../../provider/option-schemas.js'
import { parseOptions } from '../../../provider/options.js'
import { initialOption, type InitialEndpoints } from '../sources/initial.js'
import type { ServedEndpoints } from '../sources/served-sink.js'
import { serveGrpc } from './grpc-endpoints.js'
import { readTls, tlsOption, type GrpcTls } from './tls.js'

/** A resource of another type, served unchanged on ADS streams. */
export interface StaticResource {
  /** The type URL, such as `type.googleapis.com/envoy.config.cluster.v3.Cluster`. */
  readonly type: string
  readonly name: string
  /** The message in protobuf. */
  readonly value: Uint8Array
}

/** Options of {@link grpcEndpoints}. */
export interface GrpcEndpointsOptions {
  /** Port to listen on; 0 takes a free one. */
  readonly port: number
  /** Address to listen on. @default '127.0.0.1' */
  readonly host?: string | undefined
  /** @default plain text (h2c) */
  readonly tls?: GrpcTls | undefined
  /**
   * The full endpoint sets: `ClusterLoadAssignment`s in EDS JSON, or as the bytes of the protobuf message, of which
   * only changed parts are rewritten. Or `adopt`: take them from the proxies' admin API before anything is served,
   * right after a restart of this process, when the proxies still hold them. A new fleet has nothing to adopt: `{
   * adopt: true, else: sets, held: () => heldMembers(store) }` works for both. @default 'adopt'
   */
  readonly initial?: InitialEndpoints | undefined
  /** The pause between two load reports while the provider looks, at least 100 ms. @default 250 ms */
  readonly loadInterval?: Duration | undefined
  /** Resources of other types for clients that take everything from one ADS stream. @default none */
  readonly resources?: readonly StaticResource[] | undefined
}

const schema = z.strictObject({
  port: whole(0, 65_535),
  host: z._default(nonEmpty(), '127.0.0.1'),
  tls: z.exactOptional(tlsOption),
  initial: z.exactOptional(initialOption),
  loadInterval: z._default(durationOption({ min: 100 }), 250),
  resources: z._default(
    z.array(
      z.strictObject({
        type: nonEmpty(),
        name: nonEmpty(),
        value: z.instanceof(Uint8Array),
      }),
    ),
    [],
  ),
})

/**
 * Makes an xDS server for endpoint sets: the sink for long-running controllers, and for fleets. Every proxy itself
 * confirms a set, and reports its load.
 *
 * @throws `INVALID_OPTIONS`
 */
export function grpcEndpoints(options: GrpcEndpointsOptions): ServedEndpoints {
  const { tls, ...rest } = parseOptions(schema, options, 'grpcEndpoints()')
  return serveGrpc({ ...rest, tls: readTls(tls, 'grpcEndpoints()') })
}

export type { ServedEndpoints } from '../sources/served-sink.js'
export type { AdoptedEndpoints, HeldMembers, InitialEndpoints } from '../sources/initial.js'
export { loadReports } from './load-reports.js'
export type { LoadReportsOptions } from './load-reports.js'
export type { GrpcTls } from './tls.js'
export type { LoadReportSource } from '../sources/sink.js'
