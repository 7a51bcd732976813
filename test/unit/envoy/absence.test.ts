import { expect, test } from 'vitest'
import { drain } from 'drainable'
import { callbackEndpoints, envoy } from 'drainable/envoy'
import { startFake } from 'drainable/testing/envoy'
import { parseClusters } from '../../../src/adapters/envoy/codec/config-dump.js'
import { whyNoSet } from '../../../src/adapters/envoy/read/absence.js'

const dump = (...clusters: readonly unknown[]) =>
  JSON.stringify({ configs: clusters.map((cluster) => ({ cluster })) })

const { eds, others } = parseClusters(
  dump(
    { name: 'web', type: 'EDS', eds_cluster_config: {} },
    { name: 'api', type: 'EDS', eds_cluster_config: { service_name: 'api-set' } },
    { name: 'dns', type: 'STRICT_DNS' },
    { name: 'fixed' },
    {
      name: 'edge',
      cluster_type: {
        name: 'envoy.clusters.aggregate',
        typed_config: {
          '@type': 'type.googleapis.com/envoy.extensions.clusters.aggregate.v3.ClusterConfig',
          clusters: ['web', 'api'],
        },
      },
    },
  ),
)
const services = new Map(eds.map(({ cluster, service }) => [cluster, service]))

test.each([
  ['none', 'cluster none has no endpoint set here, there is web'],
  ['api', "cluster api takes an endpoint set 'api-set' that is not served here, there is web"],
  ['dns', 'cluster dns is of type STRICT_DNS: only endpoints of EDS clusters can be drained'],
  ['fixed', 'cluster fixed is of type STATIC'],
  ['edge', 'cluster edge is an aggregate of web, api: its endpoints are drained there'],
])('%s: the reason for a missing set is told', (pool, words) => {
  expect(whyNoSet(pool, { services, others, pools: ['web'] })).toContain(words)
})

test('many sets are counted', () => {
  const pools = Array.from({ length: 40 }, (_, i) => `c${i}`)
  expect(whyNoSet('x', { services, others, pools })).toContain('c11 and 28 more')
})

test('a drain in a missing cluster names the clusters there are', async () => {
  const member = '10.0.0.1:80'
  await using fake = await startFake({ pools: { web: [member] } })
  const address = { socket_address: { address: '10.0.0.1', port_value: 80 } }
  const set = { cluster_name: 'web', endpoints: [{ lb_endpoints: [{ endpoint: { address } }] }] }
  const endpoints = callbackEndpoints({
    load: () => Promise.resolve(set),
    publish: () => Promise.resolve(),
  })
  await using lb = envoy({ endpoints, admin: [fake.url] })
  await expect(drain(lb, { pool: 'wep', member }, { timeout: '5s' })).rejects.toMatchObject({
    code: 'NOT_FOUND',
    message: expect.stringContaining(
      'cluster wep has no endpoint set here, there is web',
    ) as string,
  })
})
