import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { JsonAssignment } from '../../../../src/adapters/envoy/codec/json.js'
import { LoadBook } from '../../../../src/adapters/envoy/grpc/load-book.js'
import { WireAssignment } from '../../../../src/adapters/envoy/grpc/wire-assignment.js'
import { concat, fieldsOf, head, withVarint } from '../../../../src/adapters/envoy/grpc/wire.js'
import {
  decodeDelta,
  decodeLoads,
  decodeNode,
  decodeSotw,
  encodeDelta,
  encodeLoads,
  encodeSotw,
} from '../../../../src/adapters/envoy/grpc/xds-codec.js'

interface Recording {
  b64: string
  ack: { b64: string }
  nack: { b64: string }
  server_response_b64: string
  report_busy_b64_with_node_reduced_to_id_and_cluster: string
}

const recording = (name: string): Recording =>
  JSON.parse(
    readFileSync(new URL(`../../../fixtures/envoy/${name}`, import.meta.url), 'utf8'),
  ) as Recording
const bytes = (b64: string): Uint8Array => new Uint8Array(Buffer.from(b64, 'base64'))
const CLA = 'type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment'

const json = (extra: object = {}) => ({
  cluster_name: 'web',
  endpoints: [
    {
      locality: { region: 'r1' },
      lb_endpoints: [80, 81, 82].map((port) => ({
        endpoint: {
          address: { socket_address: { address: '10.0.0.1', port_value: port } },
          hostname: `app-${port}`,
        },
        health_status: port === 81 ? 'DEGRADED' : 'HEALTHY',
        load_balancing_weight: port,
        metadata: { filter_metadata: { 'envoy.lb': { canary: true } } },
      })),
      priority: 1,
    },
  ],
  policy: { overprovisioning_factor: 150 },
  ...extra,
})

describe('recorded answers of Envoy', () => {
  test.each(['wire-ads.json', 'wire-grpc.json'])('state of the world: %s', (name) => {
    const { ack, nack } = recording(name)
    expect(decodeSotw(bytes(ack.b64))).toMatchObject({ type: CLA, nonce: '2', error: undefined })
    const refused = decodeSotw(bytes(nack.b64))
    expect(refused.error).toContain('value must be greater than or equal to 1')
    expect(refused.names.length).toBeGreaterThan(0)
  })

  test.each(['wire-ads-delta.json', 'wire-delta.json'])('delta: %s', (name) => {
    const { ack, nack } = recording(name)
    expect(decodeDelta(bytes(ack.b64))).toMatchObject({ type: CLA, nonce: '2', error: undefined })
    expect(decodeDelta(bytes(nack.b64)).error).toContain('LoadBalancingWeight')
  })

  test('a delta response is written like the one that Envoy accepted', async () => {
    const set = await WireAssignment.fromJson(
      JsonAssignment.parse({
        cluster_name: 'web',
        endpoints: [
          {
            lb_endpoints: [
              {
                endpoint: {
                  address: { socket_address: { address: '127.0.0.1', port_value: 8080 } },
                },
                health_status: 'DRAINING',
              },
              {
                endpoint: {
                  address: { socket_address: { address: '127.0.0.1', port_value: 8081 } },
                },
                health_status: 'HEALTHY',
                load_balancing_weight: 5,
              },
            ],
          },
        ],
      }),
    )
    const resource = { type: CLA, name: 'web', version: '2', value: set.toBytes() }
    const ours = encodeDelta(CLA, '2', 'n2', [resource])
    expect(Buffer.from(ours).length).toBe(bytes(recording('wire-response-delta.json').b64).length)
    expect(encodeSotw(CLA, '2', 'n2', [resource]).length).toBeGreaterThan(set.toBytes().length)
  })

  test('load reports: the absent endpoint is idle, the unlisted unknown', () => {
    const {
      report_busy_b64_with_node_reduced_to_id_and_cluster: busy,
      server_response_b64: asked,
    } = recording('lrs.json')
    expect(Buffer.from(encodeLoads(500, undefined)).toString('base64')).toBe(asked)
    const { node, report } = decodeLoads(bytes(busy))
    expect(decodeNode(node).id).toBe('envoy-1')
    let now = 1_000
    const book = new LoadBook(() => now, 250)
    const key = {}
    const intervals: number[] = []
    book.begin(key, 'envoy-1', undefined, (ms) => intervals.push(ms))
    now += 700
    book.report(key, report)
    const [load] = book.nodes()
    expect(load?.of('web', '127.0.0.1:24005')).toMatchObject({ active: 1, arrivals: 0 })
    expect(load?.of('web', '127.0.0.1:1')).toMatchObject({ active: 0, arrivals: 0 })
    expect(load?.of('nowhere', '127.0.0.1:24005')).toBeUndefined()
    // It covers 506 ms since reports were asked for: that is the earliest moment it can be from.
    expect(load?.of('web', '127.0.0.1:24005')?.sampledAt).toBeCloseTo(1_505.9, 0)
    book.demand()
    expect(intervals).toEqual([60_000, 250])
    book.close()
  })
})

describe('sets in protobuf', () => {
  test('keep every byte through a change and its undo, with unknown fields', async () => {
    const made = (await WireAssignment.fromJson(JsonAssignment.parse(json()))).toBytes()
    const unknown = concat([head(99, 3), new Uint8Array([1, 2, 3])])
    const strange = concat([unknown, made, unknown])
    const set = WireAssignment.parse(strange)
    expect(Buffer.from(set.toBytes()).equals(Buffer.from(strange))).toBe(true)
    const drained = set.withStatus(new Map([['10.0.0.1:81', 'DRAINING']]))
    expect(drained.endpoints.map(({ status }) => status)).toEqual([
      'HEALTHY',
      'DRAINING',
      'HEALTHY',
    ])
    expect(drained.version).not.toBe(set.version)
    expect([...fieldsOf(drained.toBytes())].filter(({ no }) => no === 99)).toHaveLength(2)
    const again = WireAssignment.parse(drained.toBytes())
    const back = again.withStatus(new Map([['10.0.0.1:81', 'DEGRADED']]))
    expect(Buffer.from(back.toBytes()).equals(Buffer.from(strange))).toBe(true)
    expect(back.version).toBe(set.version)
  })

  test('put a removed endpoint back to its place', async () => {
    const set = await WireAssignment.fromJson(JsonAssignment.parse(json()))
    for (const endpoint of set.endpoints) {
      const { member = '', address = '', port = 0 } = endpoint
      const without = set.without(new Set([member]))
      expect(without.endpoints).toHaveLength(2)
      const back = without.withEndpoint({ address, port, native: endpoint.native() })
      expect(Buffer.from(back.toBytes()).equals(Buffer.from(set.toBytes()))).toBe(true)
    }
    const added = set.withEndpoint({ address: '2001:db8::9', port: 80, weight: 3 })
    expect(added.endpoints.at(-1)).toMatchObject({
      member: '[2001:db8::9]:80',
      weight: 3,
      priority: 1,
    })
  })

  test('refuse what these protos can not carry, with its path', async () => {
    const bad = JsonAssignment.parse(
      json({ endpoints: [{ lb_endpoints: [{ endpoint: { address: {}, colour: 'red' } }] }] }),
    )
    await expect(WireAssignment.fromJson(bad)).rejects.toMatchObject({
      path: 'endpoints[0].lb_endpoints[0]',
      problem: expect.stringContaining('colour') as string,
    })
    await expect(
      WireAssignment.fromJson(JsonAssignment.parse(json({ colour: 1 }))),
    ).rejects.toMatchObject({
      problem: expect.stringContaining('colour') as string,
    })
  })

  test('refuse bytes that are not a set', () => {
    expect(() => WireAssignment.parse(new Uint8Array([1, 2, 3, 255]))).toThrow()
    expect(() => WireAssignment.parse(new Uint8Array())).toThrow()
  })

  test('put a varint where its number belongs', () => {
    const message = concat([head(1, 1), new Uint8Array([65]), head(3, 1), new Uint8Array([66])])
    const numbers = (m: Uint8Array) => [...fieldsOf(m)].map(({ no }) => no)
    expect(numbers(withVarint(message, 2, 3))).toEqual([1, 2, 3])
    expect(numbers(withVarint(message, 5, 3))).toEqual([1, 3, 5])
    expect(withVarint(withVarint(message, 2, 3), 2, 0)).toEqual(message)
  })
})
