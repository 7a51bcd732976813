import { describe, expect, test } from 'vitest'
import { drain, startDrain } from 'drainable'
import { envoy } from 'drainable/envoy'
import { grpcEndpoints } from 'drainable/envoy/grpc'
import { engines } from '../../support/engines.js'
import { startBackend } from '../../support/envoy/backend.js'
import { ask } from '../../support/envoy/client.js'
import { startEnvoy } from '../../support/envoy/proxy.js'
import { setOf } from '../../support/envoy/sets.js'
import { delay, until } from '../../support/wait.js'

const NO_PANIC = { common_lb_config: { healthy_panic_threshold: { value: 0 } } }

/** A cluster beside `web` that takes a set from the same server. */
function clusterOf(name: string, service: string): unknown {
  return {
    name,
    type: 'EDS',
    connect_timeout: '1s',
    ...NO_PANIC,
    eds_cluster_config: {
      service_name: service,
      eds_config: {
        resource_api_version: 'V3',
        api_config_source: {
          api_type: 'GRPC',
          transport_api_version: 'V3',
          grpc_services: [{ envoy_grpc: { cluster_name: 'xds' } }],
        },
      },
    },
  }
}

/** A listener that hands connections on to a cluster. */
function listenerOf(cluster: string): unknown {
  return {
    name: `to-${cluster}`,
    address: { socket_address: { address: '127.0.0.1', port_value: 0 } },
    filter_chains: [
      {
        filters: [
          {
            name: 'tcp',
            typed_config: {
              '@type': 'type.googleapis.com/envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy',
              stat_prefix: cluster,
              cluster,
            },
          },
        ],
      },
    ],
  }
}

describe.each(engines('envoy'))('load reports of several clusters, Envoy $version', ({ path }) => {
  test('work of a cluster counts for the members of its own set alone', async () => {
    await using a = await startBackend()
    await using b = await startBackend()
    const ports = [a.port, b.port]
    const sink = grpcEndpoints({
      port: 0,
      initial: [setOf(ports), setOf(ports, 'api')],
      loadInterval: '100ms',
    })
    await using lb = envoy({
      endpoints: sink,
      expect: 1,
      connectTimeout: '100ms',
      panicThreshold: 0,
    })
    const { port } = await until(() => sink.address, 'a listening sink')
    await using proxy = await startEnvoy({
      path,
      eds: { grpc: port },
      loads: port,
      cluster: NO_PANIC,
      // Its statistics and reports have a name of their own, and its set is that of `web`.
      clusters: [clusterOf('copy', 'web'), clusterOf('api', 'api')],
      listeners: [listenerOf('copy'), listenerOf('api')],
    })
    const listed = await proxy.get('/listeners')
    const entry = Number(/^to-copy::127\.0\.0\.1:(\d+)/m.exec(listed)?.[1])
    const held: Promise<unknown>[] = []
    while (a.held === 0) {
      held.push(ask(entry, '/hold').catch(() => undefined))
      await delay(20)
    }
    await using run = startDrain(lb, { pool: 'web', member: a.member }, { timeout: '60s' })
    const inFlight = () =>
      run.why().some(({ code }) => code === 'in-flight' || code === 'long-lived')
    await until(inFlight, 'work of the other cluster of that set')
    const other = await drain(lb, { pool: 'api', member: a.member }, { timeout: '60s' })
    expect(other.members[0]).toMatchObject({ outcome: 'idle', verifiedIdle: true })
    expect(inFlight()).toBe(true)
    expect(a.held).toBeGreaterThan(0)
    a.release()
    b.release()
    await Promise.all(held)
    expect((await run.done).members[0]).toMatchObject({ outcome: 'idle', verifiedIdle: true })
  })
})
