import { describe, expect, test } from 'vitest'
import { runtimeThreshold } from '../../../../src/adapters/envoy/codec/admin.js'
import { ClustersTextDecoder } from '../../../../src/adapters/envoy/codec/clusters-text.js'
import { parseClusters } from '../../../../src/adapters/envoy/codec/config-dump.js'
import { JsonAssignment } from '../../../../src/adapters/envoy/codec/json.js'
import { WireAssignment } from '../../../../src/adapters/envoy/grpc/wire-assignment.js'

const configOf = (cluster: object) =>
  parseClusters(
    JSON.stringify({ configs: [{ cluster: { name: 'web', type: 'EDS', ...cluster } }] }),
  ).eds[0]

describe('the settings for a panic', () => {
  test.each([
    [33.4, 33],
    [0.4, 0],
    [66.7, 67],
  ])('a threshold of %d %% is rounded to %d, as Envoy does', (value, rounded) => {
    const common_lb_config = { healthy_panic_threshold: { value } }
    expect(configOf({ common_lb_config })?.panicThreshold).toBe(rounded)
  })

  const FAILS = { zone_aware_lb_config: { fail_traffic_on_panic: true } }
  const typed = (type: string, config: object) => ({
    policies: [
      {
        typed_extension_config: {
          name: type,
          typed_config: {
            '@type': `type.googleapis.com/envoy.extensions.load_balancing_policies.${type}`,
            ...config,
          },
        },
      },
    ],
  })
  const structured = (type: string, value: object) =>
    typed('', {
      '@type': 'type.googleapis.com/xds.type.v3.TypedStruct',
      type_url: `type.googleapis.com/envoy.extensions.load_balancing_policies.${type}`,
      value,
    })
  const ROBIN = typed('round_robin.v3.RoundRobin', { locality_lb_config: FAILS })

  test.each([
    ['the default policy', {}, true],
    ['random', { lb_policy: 'RANDOM' }, true],
    ['ring hash', { lb_policy: 'RING_HASH' }, false],
    ['maglev', { lb_policy: 'MAGLEV' }, false],
    ['a round robin of its own', { load_balancing_policy: ROBIN }, true],
    [
      'a round robin that does not fail',
      { load_balancing_policy: typed('round_robin.v3.RoundRobin', {}) },
      false,
    ],
    [
      'a ring hash of its own',
      { load_balancing_policy: typed('ring_hash.v3.RingHash', { locality_lb_config: FAILS }) },
      false,
    ],
    [
      'a round robin in a struct, in camelCase',
      {
        load_balancing_policy: structured('random.v3.Random', {
          localityLbConfig: { zoneAwareLbConfig: { failTrafficOnPanic: true } },
        }),
      },
      true,
    ],
    [
      'subsets over a round robin',
      { load_balancing_policy: typed('subset.v3.Subset', { subset_lb_policy: ROBIN }) },
      true,
    ],
  ])('fail_traffic_on_panic is found under %s', (_, cluster, expected) => {
    expect(configOf({ common_lb_config: FAILS, ...cluster })?.failOnPanic).toBe(expected)
  })

  test('a policy given as a struct is found, whatever its case', () => {
    const picks = structured('override_host.v3.OverrideHost', {})
    expect(configOf({ load_balancing_policy: picks })?.overrideHost).toBe(true)
    const divides = structured('subset.v3.Subset', {
      fallbackPolicy: 'DEFAULT_SUBSET',
      defaultSubset: { v: 'a' },
      subsetSelectors: [{ keys: ['v'] }],
    })
    expect(configOf({ load_balancing_policy: divides })?.subsets).toEqual({
      selectors: [['v']],
      fallback: { v: 'a' },
      listAsAny: false,
    })
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
  ])('a threshold of %s is read from the runtime', (final_value, expected) => {
    const entries = { 'upstream.healthy_panic_threshold': { final_value } }
    expect(runtimeThreshold(JSON.stringify({ entries }))).toBe(expected)
    expect(runtimeThreshold('{}')).toBeUndefined()
  })

  test('weights of hosts, counted or not, are read by JSON and protobuf', async () => {
    const set = JsonAssignment.parse({
      cluster_name: 'web',
      policy: { weighted_priority_health: true },
    })
    expect(set.isWeighted).toBe(true)
    const wire = await WireAssignment.fromJson(set)
    expect(wire.isWeighted).toBe(true)
    expect(wire.withStatus(new Map()).isWeighted).toBe(true)
    const decoder = new ClustersTextDecoder()
    for (const line of ['rq_active::0', 'rq_total::0', 'weight::7'])
      decoder.push(`web::10.0.0.1:80::${line}\n`)
    const [rows] = decoder.finish()
    expect(rows?.hosts.get('10.0.0.1:80')?.weight).toBe(7)
  })
})
