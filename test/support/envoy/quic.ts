/** Envoys that talk HTTP/3 to each other: Node has no HTTP/3. */
import type { Backend } from './backend.js'
import type { TlsFiles } from './bootstrap.js'

const TYPE = 'type.googleapis.com/envoy.extensions'
const HTTP3 = {
  'envoy.extensions.upstreams.http.v3.HttpProtocolOptions': {
    '@type': `${TYPE}.upstreams.http.v3.HttpProtocolOptions`,
    explicit_http_config: { http3_protocol_options: {} },
  },
}

/** The cluster that talks HTTP/3 to its endpoints. */
export function overQuic({ ca }: TlsFiles): Readonly<Record<string, unknown>> {
  return {
    typed_extension_protocol_options: HTTP3,
    transport_socket: {
      name: 'envoy.transport_sockets.quic',
      typed_config: {
        '@type': `${TYPE}.transport_sockets.quic.v3.QuicUpstreamTransport`,
        upstream_tls_context: {
          sni: 'localhost',
          common_tls_context: { validation_context: { trusted_ca: { filename: ca } } },
        },
      },
    },
  }
}

/** A listener of HTTP/3 in front of a server. */
export function quicListener(name: string, { cert, key }: TlsFiles): unknown {
  const pair = { certificate_chain: { filename: cert }, private_key: { filename: key } }
  return {
    name,
    address: { socket_address: { protocol: 'UDP', address: '127.0.0.1', port_value: 0 } },
    udp_listener_config: { quic_options: {} },
    filter_chains: [
      {
        transport_socket: {
          name: 'envoy.transport_sockets.quic',
          typed_config: {
            '@type': `${TYPE}.transport_sockets.quic.v3.QuicDownstreamTransport`,
            downstream_tls_context: { common_tls_context: { tls_certificates: [pair] } },
          },
        },
        filters: [
          {
            name: 'http',
            typed_config: {
              '@type': `${TYPE}.filters.network.http_connection_manager.v3.HttpConnectionManager`,
              stat_prefix: name,
              codec_type: 'HTTP3',
              http3_protocol_options: {},
              route_config: {
                virtual_hosts: [
                  {
                    name: 'all',
                    domains: ['*'],
                    routes: [{ match: { prefix: '/' }, route: { cluster: name, timeout: '0s' } }],
                  },
                ],
              },
              http_filters: [
                {
                  name: 'router',
                  typed_config: { '@type': `${TYPE}.filters.http.router.v3.Router` },
                },
              ],
            },
          },
        ],
      },
    ],
  }
}

export function serverCluster(name: string, { port }: Backend): unknown {
  const address = { socket_address: { address: '127.0.0.1', port_value: port } }
  const endpoints = [{ lb_endpoints: [{ endpoint: { address } }] }]
  return { name, type: 'STATIC', load_assignment: { cluster_name: name, endpoints } }
}
