import { writeFile } from 'node:fs/promises'
import { describe, expect, test } from 'vitest'
import { startDrain } from 'drainable'
import { engines } from '../../support/engines.js'
import { startGateway, TARGET } from '../../support/envoy-gateway.js'
import { ask } from '../../support/envoy/client.js'
import { startBackend } from '../../support/envoy/backend.js'
import { workDir } from '../../support/envoy/proxy.js'
import { until } from '../../support/wait.js'

const V3 = 'type.googleapis.com/envoy'
const SOCKETS = `${V3}.extensions.transport_sockets`

/** A cluster of one address. */
const clusterOf = (name: string, address: object, more: object = {}) => ({
  name,
  type: 'STATIC',
  connect_timeout: '2s',
  load_assignment: {
    cluster_name: name,
    endpoints: [{ lb_endpoints: [{ endpoint: { address } }] }],
  },
  ...more,
})

const INNER = clusterOf(
  'inner',
  { envoy_internal_address: { server_listener_name: 'inner' } },
  {
    transport_socket: {
      name: 'internal',
      typed_config: {
        '@type': `${SOCKETS}.internal_upstream.v3.InternalUpstreamTransport`,
        transport_socket: {
          name: 'raw',
          typed_config: { '@type': `${SOCKETS}.raw_buffer.v3.RawBuffer` },
        },
      },
    },
  },
)

describe.each(engines('envoy'))('an inner listener of Envoy $version', ({ path }) => {
  test.each([
    ['by address', {}],
    ['by stat_prefix', { stat_prefix: 'between' }],
  ])('has no clients: its kept connections are not work (%s)', async (_, more) => {
    await using dir = await workDir()
    await using server = await startBackend()
    const file = `${dir.path}/lds.json`
    const type = `${V3}.extensions.filters.network.tcp_proxy.v3.TcpProxy`
    const tcp = { '@type': type, stat_prefix: 'tcp-inner', cluster: 'real' }
    const listener = {
      '@type': `${V3}.config.listener.v3.Listener`,
      name: 'inner',
      internal_listener: {},
      filter_chains: [{ filters: [{ name: 'tcp', typed_config: tcp }] }],
      ...more,
    }
    await writeFile(file, JSON.stringify({ version_info: '1', resources: [listener] }))
    const real = { socket_address: { address: '127.0.0.1', port_value: server.port } }
    const bootstrap = {
      bootstrap_extensions: [
        {
          name: 'envoy.bootstrap.internal_listener',
          typed_config: {
            '@type': `${V3}.extensions.bootstrap.internal_listener.v3.InternalListener`,
          },
        },
      ],
      dynamic_resources: {
        lds_config: { resource_api_version: 'V3', path_config_source: { path: file } },
      },
    }
    await using gateway = await startGateway(path, {
      envoy: {
        bootstrap,
        route: { cluster: 'inner' },
        clusters: [INNER, clusterOf('real', real)],
      },
    })
    const { proxy, provider } = gateway
    await until(async () => (await ask(proxy.http)).status === 200, 'an answer')
    const kept = () =>
      proxy.get('/stats?filter=^listener.*(internal_inner|between).downstream_cx_a')
    await until(async () => (await kept()).includes(': 1\n'), 'a kept connection')
    const held = ask(proxy.http, '/hold')
    await until(() => server.held === 1, 'a request')
    await using run = startDrain(provider, TARGET, { timeout: '60s', keepReady: 0 })
    await until(() => run.why().some(({ text }) => text.includes('requests of http.in')), 'it')
    expect(run.report().members[0]?.lastReading?.scopes[0]?.active).toBe(1)
    server.release()
    expect((await held).status).toBe(200)
    expect((await run.done).members[0]).toMatchObject({ outcome: 'idle', verifiedIdle: true })
    expect(await kept()).toContain('downstream_cx_active: ')
  })
})
