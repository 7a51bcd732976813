import { expect, test } from 'vitest'
import { JsonAssignment } from '../../../../src/adapters/envoy/codec/json.js'
import { withoutKeys } from '../../../../src/adapters/envoy/codec/proto-json.js'
import { union as unionOf } from '../../../../src/adapters/envoy/sources/adoption.js'

function set(zone: string, endpoints: Readonly<Record<string, string>>, cluster = 'web') {
  const lb_endpoints = Object.entries(endpoints).map(([address, health_status]) => ({
    endpoint: { address: { socket_address: { address, port_value: 80 } } },
    health_status,
  }))
  return { cluster_name: cluster, endpoints: [{ locality: { zone }, lb_endpoints }] }
}

function union(proxies: readonly (readonly ReturnType<typeof set>[])[]) {
  const sets = unionOf(proxies.flat().map((one) => JsonAssignment.parse(one)))
  return sets.map((one) => withoutKeys(one.toJson(), '@type'))
}

test('a union has each endpoint once, in its most cautious state', () => {
  const one = set('a', { '10.0.0.1': 'HEALTHY', '10.0.0.2': 'DRAINING' })
  const other = set('a', { '10.0.0.1': 'DRAINING', '10.0.0.2': 'UNHEALTHY' })
  expect(union([[one], [other]])).toEqual([
    set('a', { '10.0.0.1': 'DRAINING', '10.0.0.2': 'DRAINING' }),
  ])
})

test('a union has the endpoints of a single proxy in their locality', () => {
  const [found] = union([
    [set('a', { '10.0.0.1': 'HEALTHY' })],
    [set('b', { '10.0.0.2': 'HEALTHY' })],
  ])
  expect(found).toEqual({
    cluster_name: 'web',
    endpoints: [
      ...set('a', { '10.0.0.1': 'HEALTHY' }).endpoints,
      ...set('b', { '10.0.0.2': 'HEALTHY' }).endpoints,
    ],
  })
})

test('a union keeps sets of other names apart, even an empty one', () => {
  const api = set('a', { '10.0.0.1': 'HEALTHY' }, 'api')
  const found = union([[api, set('a', {})], [set('a', {})]])
  expect(found.map((one) => one['cluster_name'])).toEqual(['api', 'web'])
})
