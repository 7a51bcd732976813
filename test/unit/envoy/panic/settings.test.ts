import { describe, expect, test } from 'vitest'
import { parseClustersJson, runtimeThreshold } from '../../../../src/adapters/envoy/codec/admin.js'
import { parseClusterConfigs } from '../../../../src/adapters/envoy/codec/config-dump.js'
import { JsonAssignment } from '../../../../src/adapters/envoy/codec/json.js'
import { WireAssignment } from '../../../../src/adapters/envoy/grpc/wire-assignment.js'

const configOf = (cluster: object) =>
  parseClusterConfigs(
    JSON.stringify({ configs: [{ cluster: { name: 'web', type: 'EDS', ...cluster } }] }),
  )[0]

describe('what a panic is reckoned by', () => {
  test.each([
    [33.4, 33],
    [0.4, 0],
    [66.7, 67],
  ])('a threshold of %d %% is %d, as Envoy rounds it', (value, rounded) => {
    const common_lb_config = { healthy_panic_threshold: { value } }
    expect(configOf({ common_lb_config })?.panicThreshold).toBe(rounded)
  })

  test('a default subset that only a selector falls back to is a subset', () => {
    const lb_subset_config = {
      fallback_policy: 'ANY_ENDPOINT',
      default_subset: { v: 'a' },
      subset_selectors: [{ keys: ['s'], fallback_policy: 'DEFAULT_SUBSET' }],
    }
    expect(configOf({ lb_subset_config })?.subsets?.fallback).toEqual({ v: 'a' })
  })

  test.each([
    ['100', 100],
    ['400', 100],
    ['0', 0],
    ['none', undefined],
  ])('a threshold of %s in the runtime', (final_value, expected) => {
    const entries = { 'upstream.healthy_panic_threshold': { final_value } }
    expect(runtimeThreshold(JSON.stringify({ entries }))).toBe(expected)
    expect(runtimeThreshold('{}')).toBeUndefined()
  })

  test('weights of hosts, and whether they count, by JSON and protobuf', async () => {
    const set = JsonAssignment.parse({
      cluster_name: 'web',
      policy: { weighted_priority_health: true },
    })
    expect(set.isWeighted).toBe(true)
    const wire = await WireAssignment.fromJson(set)
    expect(wire.isWeighted).toBe(true)
    expect(wire.withStatus(new Map()).isWeighted).toBe(true)
    const address = { socket_address: { address: '10.0.0.1', port_value: 80 } }
    const stats = [{ name: 'rq_active' }, { name: 'rq_total' }]
    const host_statuses = [{ address, stats, weight: 7 }]
    const reply = { cluster_statuses: [{ name: 'web', host_statuses }] }
    const [rows] = parseClustersJson(JSON.stringify(reply))
    expect(rows?.hosts.get('10.0.0.1:80')?.weight).toBe(7)
  })
})
