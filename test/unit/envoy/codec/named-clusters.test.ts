import { expect, test } from 'vitest'
import { namedClusters } from '../../../../src/adapters/envoy/codec/config-dump.js'

const type = (what: string): string => `type.googleapis.com/envoy.admin.v3.${what}ConfigDump`
const dump = (...configs: readonly object[]): string => JSON.stringify({ configs })
const routes = (route: object) => ({
  '@type': type('Routes'),
  dynamic_route_configs: [{ route_config: { virtual_hosts: [{ routes: [{ route }] }] } }],
})
const named = (text: string): readonly string[] => [...namedClusters(text, ['first', 'second'])]

test('a cluster is named by routes and by listeners', () => {
  const tcp = { static_listeners: [{ listener: { typed_config: { cluster: 'second' } } }] }
  const listeners = { '@type': type('Listeners'), ...tcp }
  const weighted = { weighted_clusters: { clusters: [{ name: 'first' }, { name: 'all' }] } }
  expect(named(dump(routes(weighted)))).toEqual(['first'])
  expect(named(dump(routes({ cluster: 'all' }), listeners))).toEqual(['second'])
})

test('a route that lets the request choose may mean any cluster', () => {
  expect(named(dump(routes({ cluster_header: 'x-to' })))).toEqual(['first', 'second'])
})

test('the definition of a cluster, and an aggregate of it, name it not', () => {
  const clusters = { '@type': type('Clusters'), static_clusters: [{ cluster: { name: 'first' } }] }
  const bootstrap = { '@type': type('Bootstrap'), bootstrap: { clusters: ['first', 'second'] } }
  expect(named(dump(clusters, bootstrap, routes({ cluster: 'all' })))).toEqual([])
})
