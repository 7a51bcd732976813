const V3 = 'type.googleapis.com/envoy.extensions.filters'

/** Where the endpoints of cluster `web` come from. */
export type EdsSource =
  | { readonly file: string }
  /** `refresh`: how often it asks. @default '0.1s' */
  | { readonly rest: number; readonly refresh?: string }
  | {
      readonly grpc: number
      readonly delta?: boolean
      readonly ads?: boolean
      readonly tls?: TlsFiles
    }

export interface TlsFiles {
  readonly ca: string
  readonly cert: string
  readonly key: string
}

export interface EnvoyOptions {
  readonly path: string
  readonly eds: EdsSource
  readonly id?: string
  /** Port of a load report service. */
  readonly loads?: number
  /** Worker threads. @default 2 */
  readonly workers?: number
  /** Merged into the cluster. */
  readonly cluster?: Readonly<Record<string, unknown>>
  /** Filters before the router. */
  readonly httpFilters?: readonly unknown[]
  /** EDS service name where it is not the cluster's name. */
  readonly service?: string
  readonly adminSocket?: string
  /** Layers of the runtime. */
  readonly runtime?: Readonly<Record<string, unknown>>
  /** Route of the listener. */
  readonly route?: Readonly<Record<string, unknown>>
  readonly http2?: boolean
  /** Merged into the listener of HTTP. */
  readonly listener?: Readonly<Record<string, unknown>>
  /** Seconds that a parent goes on after a hot restart. @default no hot restart */
  readonly parentShutdown?: number
  /** `--skip-hot-restart-parent-stats`. @default false */
  readonly skipParentStats?: boolean
  /** `--drain-time-s`. @default 600, after a hot restart 1 */
  readonly drainTime?: number
  /** Prefixes of the admin paths that are allowed. @default every path */
  readonly allowPaths?: readonly string[]
  /** The longest pause before it comes back to a gRPC server. @default 30 s */
  readonly reconnect?: string
  /** Where more clusters come from, with `ads`. */
  readonly cds?: Readonly<Record<string, unknown>>
  /** More clusters like `web`, each with a listener, by name: the listener's port, and the cluster's endpoints. */
  readonly more?: Readonly<Record<string, { readonly port: number; readonly file: string }>>
  /** Beside `web`. */
  readonly clusters?: readonly unknown[]
  /** Beside `http` and `tcp`. */
  readonly listeners?: readonly unknown[]
  /** Merged into the bootstrap. */
  readonly bootstrap?: Readonly<Record<string, unknown>>
}

/** Where the proxy gets a part of its configuration from: a control plane over gRPC. */
function configSource({ reconnect }: EnvoyOptions, delta: boolean): unknown {
  const retry =
    reconnect === undefined
      ? {}
      : { retry_policy: { retry_back_off: { base_interval: '0.1s', max_interval: reconnect } } }
  return {
    api_type: delta ? 'DELTA_GRPC' : 'GRPC',
    transport_api_version: 'V3',
    set_node_on_first_message_only: true,
    grpc_services: [{ envoy_grpc: { cluster_name: 'xds', ...retry } }],
  }
}

function local(port: number): unknown {
  return { socket_address: { address: '127.0.0.1', port_value: port } }
}

function adminAddress({ adminSocket }: EnvoyOptions, port: number): unknown {
  return adminSocket === undefined
    ? local(port)
    : { pipe: { path: adminSocket.replace('unix:', '') } }
}

/** The bootstrap of one proxy: listeners `http` and `tcp`, both to cluster `web`. */
export function bootstrap(
  o: EnvoyOptions,
  ports: { admin: number; http: number; tcp: number },
): unknown {
  const xds = 'grpc' in o.eds ? o.eds.grpc : o.loads
  const loads = o.loads === xds ? 'xds' : 'loads'
  const api = (delta: boolean): unknown => configSource(o, delta)
  return {
    ...o.bootstrap,
    node: { id: o.id ?? 'envoy-1', cluster: 'test' },
    admin: {
      ...(o.allowPaths === undefined
        ? {}
        : { allow_paths: o.allowPaths.map((prefix) => ({ prefix })) }),
      address: adminAddress(o, ports.admin),
    },
    ...(o.runtime === undefined
      ? {}
      : { layered_runtime: { layers: [{ name: 'static', static_layer: o.runtime }] } }),
    ...('grpc' in o.eds && o.eds.ads === true
      ? {
          dynamic_resources: {
            ads_config: api(o.eds.delta === true),
            ...(o.cds === undefined ? {} : { cds_config: o.cds }),
          },
        }
      : {}),
    ...(o.loads === undefined
      ? {}
      : {
          cluster_manager: {
            load_stats_config: {
              api_type: 'GRPC',
              transport_api_version: 'V3',
              grpc_services: [{ envoy_grpc: { cluster_name: loads } }],
            },
          },
        }),
    static_resources: {
      listeners: [
        httpListener(o, 'http', ports.http, 'web'),
        {
          name: 'tcp',
          address: local(ports.tcp),
          filter_chains: [
            {
              filters: [
                {
                  name: 'tcp',
                  typed_config: {
                    '@type': `${V3}.network.tcp_proxy.v3.TcpProxy`,
                    stat_prefix: 'tcp',
                    cluster: 'web',
                  },
                },
              ],
            },
          ],
        },
        ...Object.entries(o.more ?? {}).map(([name, { port }]) =>
          httpListener(o, name, port, name),
        ),
        ...(o.listeners ?? []),
      ],
      clusters: [
        edsCluster(o, 'web', edsConfig(o.eds, api)),
        ...Object.entries(o.more ?? {}).map(([name, { file }]) =>
          edsCluster(o, name, edsConfig({ file }, api)),
        ),
        ...(xds === undefined
          ? []
          : [xdsCluster('xds', xds, true, 'grpc' in o.eds ? o.eds.tls : undefined)]),
        ...(o.loads === undefined || o.loads === xds
          ? []
          : [xdsCluster('loads', o.loads, true, undefined)]),
        ...(o.clusters ?? []),
        ...('rest' in o.eds ? [xdsCluster('xdsrest', o.eds.rest, false, undefined)] : []),
      ],
    },
  }
}

function httpListener(o: EnvoyOptions, name: string, port: number, cluster: string): unknown {
  return {
    ...o.listener,
    name,
    address: local(port),
    filter_chains: [
      {
        filters: [
          {
            name: 'http',
            typed_config: {
              '@type': `${V3}.network.http_connection_manager.v3.HttpConnectionManager`,
              stat_prefix: 'in',
              upgrade_configs: [{ upgrade_type: 'websocket' }],
              route_config: {
                // One that comes by CDS is not there yet.
                validate_clusters: false,
                virtual_hosts: [
                  {
                    name: 'all',
                    domains: ['*'],
                    routes: [
                      { match: { prefix: '/' }, route: { cluster, timeout: '0s', ...o.route } },
                    ],
                  },
                ],
              },
              http_filters: [
                ...(o.httpFilters ?? []),
                { name: 'router', typed_config: { '@type': `${V3}.http.router.v3.Router` } },
              ],
            },
          },
        ],
      },
    ],
  }
}

function edsCluster(o: EnvoyOptions, name: string, source: Record<string, unknown>): unknown {
  return {
    name,
    type: 'EDS',
    connect_timeout: '2s',
    eds_cluster_config: {
      ...(o.service === undefined ? {} : { service_name: o.service }),
      eds_config: { resource_api_version: 'V3', initial_fetch_timeout: '2s', ...source },
    },
    ...(o.http2 === true
      ? {
          typed_extension_protocol_options: {
            'envoy.extensions.upstreams.http.v3.HttpProtocolOptions': {
              '@type': 'type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions',
              explicit_http_config: { http2_protocol_options: {} },
            },
          },
        }
      : {}),
    ...o.cluster,
  }
}

function edsConfig(eds: EdsSource, api: (delta: boolean) => unknown): Record<string, unknown> {
  if ('file' in eds) return { path_config_source: { path: eds.file } }
  if ('rest' in eds) {
    return {
      api_config_source: {
        api_type: 'REST',
        transport_api_version: 'V3',
        cluster_names: ['xdsrest'],
        refresh_delay: eds.refresh ?? '0.1s',
        request_timeout: '2s',
      },
    }
  }
  return eds.ads === true ? { ads: {} } : { api_config_source: api(eds.delta === true) }
}

function xdsCluster(
  name: string,
  port: number,
  http2: boolean,
  tls: TlsFiles | undefined,
): unknown {
  return {
    name,
    type: 'STATIC',
    connect_timeout: '1s',
    ...(http2
      ? {
          typed_extension_protocol_options: {
            'envoy.extensions.upstreams.http.v3.HttpProtocolOptions': {
              '@type': 'type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions',
              explicit_http_config: { http2_protocol_options: {} },
            },
          },
        }
      : {}),
    ...(tls === undefined
      ? {}
      : {
          transport_socket: {
            name: 'tls',
            typed_config: {
              '@type':
                'type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext',
              common_tls_context: {
                tls_certificates: [
                  { certificate_chain: { filename: tls.cert }, private_key: { filename: tls.key } },
                ],
                validation_context: { trusted_ca: { filename: tls.ca } },
              },
            },
          },
        }),
    load_assignment: {
      cluster_name: name,
      endpoints: [
        {
          lb_endpoints: [
            {
              endpoint: {
                address: { socket_address: { address: '127.0.0.1', port_value: port } },
              },
            },
          ],
        },
      ],
    },
  }
}
