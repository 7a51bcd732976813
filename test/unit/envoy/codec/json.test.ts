import { describe, expect, test } from 'vitest'
import fc from 'fast-check'
import {
  edsSteps,
  formatEdsJson,
  JsonAssignment,
} from '../../../../src/adapters/envoy/codec/json.js'
import { whole } from '../../../../src/adapters/envoy/codec/steps.js'

const parseEds = (text: string) => whole(edsSteps(text))
const lb = (port: number, rest: object = {}) => ({
  endpoint: { address: { socket_address: { address: '10.0.0.1', port_value: port } } },
  ...rest,
})
const cla = (...endpoints: object[]) => ({
  cluster_name: 'web',
  endpoints: [{ locality: { region: 'r1', zone: 'z/1' }, lb_endpoints: endpoints }],
})

describe('EDS JSON', () => {
  test('names members by address: IPv4, IPv6 in any spelling, a pipe', () => {
    const set = JsonAssignment.parse(
      cla(
        lb(80),
        { endpoint: { address: { socketAddress: { address: '2001:DB8:0::1', portValue: 81 } } } },
        { endpoint: { address: { pipe: { path: '/run/app.sock' } } } },
        { endpoint: { address: { socket_address: { address: 'x', named_port: 'http' } } } },
      ),
    )
    expect(set.endpoints.map(({ member }) => member)).toEqual([
      '10.0.0.1:80',
      '[2001:db8::1]:81',
      '/run/app.sock',
      undefined,
    ])
  })

  test('keeps what it does not know, and restores a set byte for byte', () => {
    const given = {
      '@type': 'type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment',
      policy: { drop_overloads: [{ category: 'x' }], overprovisioning_factor: 200 },
      cluster_name: 'web',
      future_field: { a: [1, { b: null }] },
      endpoints: [
        {
          load_balancing_weight: 7,
          lb_endpoints: [
            lb(80, { health_status: 'DEGRADED', metadata: { filter_metadata: {} } }),
            lb(81),
          ],
          priority: 1,
        },
      ],
    }
    const set = JsonAssignment.parse(given)
    expect(set.overprovisioning).toBe(200)
    const drained = set.withStatus(
      new Map([
        ['10.0.0.1:80', 'DRAINING'],
        ['10.0.0.1:81', 'DRAINING'],
      ]),
    )
    expect(drained.endpoints.map(({ status }) => status)).toEqual(['DRAINING', 'DRAINING'])
    expect(drained.version).not.toBe(set.version)
    const back = drained.withStatus(
      new Map([
        ['10.0.0.1:80', 'DEGRADED'],
        ['10.0.0.1:81', 'UNKNOWN'],
      ]),
    )
    expect(JSON.stringify(back.toJson())).toBe(JSON.stringify(given))
    expect(back.version).toBe(set.version)
  })

  test('keeps camelCase', () => {
    const set = JsonAssignment.parse({
      clusterName: 'web',
      endpoints: [{ lbEndpoints: [lb(80, { healthStatus: 'healthy', loadBalancingWeight: 3 })] }],
    })
    expect(set.endpoints[0]).toMatchObject({ status: 'HEALTHY', weight: 3 })
    const text = JSON.stringify(set.withStatus(new Map([['10.0.0.1:80', 'DRAINING']])).toJson())
    expect(text).toContain('"healthStatus":"DRAINING"')
    expect(text).not.toContain('health_status')
  })

  test.each([
    [
      cla(lb(80, { health_status: 'DRAINNG' })),
      'endpoints[0].lb_endpoints[0].health_status',
      'DRAINNG',
    ],
    [
      cla(lb(80), lb(81, { load_balancing_weight: 0 })),
      'endpoints[0].lb_endpoints[1].load_balancing_weight',
      '0',
    ],
    [
      { cluster_name: 'web', endpoints: [{ load_balancing_weight: 0 }] },
      'endpoints[0].load_balancing_weight',
      '0',
    ],
    [{ cluster_name: 'web', endpoints: {} }, 'endpoints', 'a list'],
    [{ endpoints: [] }, 'cluster_name', 'name of the endpoint set'],
    [{ '@type': 'x', cluster_name: 'web' }, '@type', 'ClusterLoadAssignment'],
  ])('refuses what Envoy would misread or reject, with its path: %#', (value, path, words) => {
    const problem = caught(() => JsonAssignment.parse(value))
    expect(problem).toContain(path)
    expect(problem).toContain(words)
  })

  test.each(['', '{', '[]', '{"a":1}', '{"resources":{}}', '{"resources":[{"@type":"x"}]}'])(
    'refuses a file that is not EDS JSON: %s',
    (text) => {
      expect(caught(() => parseEds(text))).not.toBe('')
    },
  )

  test('with one address twice keeps the first place and any drain', () => {
    const set = JsonAssignment.parse(
      cla(lb(80, { load_balancing_weight: 5 }), lb(81), lb(80, { health_status: 'DRAINING' })),
    )
    expect(set.endpoints).toMatchObject([
      { member: '10.0.0.1:80', status: 'DRAINING', weight: 5 },
      { member: '10.0.0.1:81', status: 'UNKNOWN' },
    ])
  })

  test('brings a removed endpoint back to its locality and place', () => {
    const set = JsonAssignment.parse(cla(lb(80), lb(81, { load_balancing_weight: 9 }), lb(82)))
    const native = set.endpoints[1]!.native()
    const without = set.without(new Set(['10.0.0.1:81']))
    expect(without.endpoints).toHaveLength(2)
    const back = without.withEndpoint({ address: '10.0.0.1', port: 81, native })
    expect(JSON.stringify(back.toJson())).toBe(JSON.stringify(set.toJson()))
    const alone = JsonAssignment.parse({ cluster_name: 'web', endpoints: [] })
    const added = alone.withEndpoint({ address: '10.0.0.1', port: 81, native })
    expect(added.toJson()['endpoints']).toMatchObject([{ locality: { region: 'r1', zone: 'z/1' } }])
  })

  test('keeps other resources and fields of a document', () => {
    const document = parseEds(
      JSON.stringify({
        version_info: '7',
        nonce: 'n',
        resources: [cla(lb(80)), { ...cla(lb(80)), cluster_name: 'api' }],
      }),
    )
    const text = formatEdsJson('8', document.assignments, document.rest)
    expect(JSON.parse(text)).toMatchObject({
      version_info: '8',
      nonce: 'n',
      resources: [{ cluster_name: 'web' }, { cluster_name: 'api' }],
    })
  })

  test('leaves any set as it was after a drain and its undo', () => {
    const status = fc.constantFrom(
      'HEALTHY',
      'UNHEALTHY',
      'DRAINING',
      'TIMEOUT',
      'DEGRADED',
      undefined,
    )
    const group = fc.array(fc.tuple(fc.integer({ min: 1, max: 60 }), status), { maxLength: 8 })
    fc.assert(
      fc.property(
        fc.array(group, { maxLength: 4 }),
        fc.integer({ min: 1, max: 60 }),
        (groups, port) => {
          const set = JsonAssignment.parse({
            cluster_name: 'web',
            endpoints: groups.map((list, priority) => ({
              priority,
              lb_endpoints: list.map(([p, s]) =>
                lb(p, s === undefined ? {} : { health_status: s }),
              ),
            })),
          })
          const member = `10.0.0.1:${port}`
          const before = set.endpoints.find((e) => e.member === member)?.status
          const drained = set.withStatus(new Map([[member, 'DRAINING']]))
          const back =
            before === undefined ? drained : drained.withStatus(new Map([[member, before]]))
          expect(JSON.stringify(back.toJson())).toBe(JSON.stringify(set.toJson()))
        },
      ),
    )
  })
})

function caught(fn: () => unknown): string {
  try {
    fn()
  } catch (problem) {
    return String(problem)
  }
  return ''
}
