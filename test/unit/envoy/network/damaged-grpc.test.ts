import { Client, credentials } from '@grpc/grpc-js'
import { create, toBinary } from '@bufbuild/protobuf'
import { readFileSync } from 'node:fs'
import fc from 'fast-check'
import { envoy } from 'drainable/envoy'
import { grpcEndpoints } from 'drainable/envoy/grpc'
import { describe, expect, test } from 'vitest'
import { AssignmentProblem } from '../../../../src/adapters/envoy/codec/assignment.js'
import { LoadStatsRequestSchema } from '../../../../src/adapters/envoy/grpc/gen/envoy/service/load_stats/v3/lrs_pb.js'
import { LoadBook } from '../../../../src/adapters/envoy/grpc/load-book.js'
import { WireAssignment } from '../../../../src/adapters/envoy/grpc/wire-assignment.js'
import { concat, head } from '../../../../src/adapters/envoy/grpc/wire.js'
import {
  decodeDelta,
  decodeLoads,
  decodeNode,
  decodeSotw,
} from '../../../../src/adapters/envoy/grpc/xds-codec.js'

type Fixture = Readonly<Record<string, { readonly b64: string } | string>>

function fixture(name: string): Fixture {
  const text = readFileSync(new URL(`../../../fixtures/envoy/${name}`, import.meta.url), 'utf8')
  return JSON.parse(text) as Fixture
}

function bytes(given: Fixture[string] | undefined): Uint8Array {
  const b64 = typeof given === 'object' ? given.b64 : (given ?? '')
  return new Uint8Array(Buffer.from(b64, 'base64'))
}

const SOTW = bytes(fixture('wire-ads.json')['nack'])
const DELTA = bytes(fixture('wire-ads-delta.json')['nack'])
const LOADS = bytes(fixture('lrs.json')['report_busy_b64_with_node_reduced_to_id_and_cluster'])
const BUSY = '127.0.0.1:24005'

/** A field in a field in a field. */
function nested(number: number, depth: number): Uint8Array {
  let message: Uint8Array = new Uint8Array(0)
  for (let i = 0; i < depth; i += 1) message = concat([head(number, message.length), message])
  return message
}

/** One message with a damage: cut, bytes changed or put in, a text that is none. */
function damaged(message: Uint8Array): fc.Arbitrary<Uint8Array> {
  const place = fc.nat({ max: message.length - 1 })
  const some = fc.uint8Array({ minLength: 1, maxLength: 12 })
  const put = (at: number, given: Uint8Array, over: number): Uint8Array =>
    concat([message.subarray(0, at), given, message.subarray(at + over)])
  return fc.oneof(
    place.map((at) => message.slice(0, at)),
    fc.tuple(place, fc.integer({ min: 1, max: 255 })).map(([at, by]) => {
      const copy = message.slice()
      copy[at] = (copy[at] ?? 0) ^ by
      return copy
    }),
    fc.tuple(place, some).map(([at, given]) => put(at, given, 0)),
    fc.tuple(place, some).map(([at, given]) => put(at, given, given.length)),
    place.map((at) => put(at, new Uint8Array([0xff, 0xfe, 0xc3, 0x28]), 4)),
  )
}

const RUNS = { numRuns: 1_500 } as const
/** Depth without end, in fields and in groups. */
const DEEP = [nested(1, 3_000), nested(2, 3_000), new Uint8Array(12_000).fill(0x0b)]

describe('a damaged message of a proxy', () => {
  test.each([
    ['state of the world', SOTW, (of: Uint8Array) => decodeNode(decodeSotw(of).node)],
    ['delta', DELTA, (of: Uint8Array) => decodeNode(decodeDelta(of).node)],
    ['load report', LOADS, (of: Uint8Array) => decodeNode(decodeLoads(of).node)],
    ['endpoint set', LOADS, (of: Uint8Array) => WireAssignment.parse(of).toBytes()],
  ])('of kind %s is read or is an error', (_, message, decode) => {
    const check = (of: Uint8Array): void => {
      try {
        decode(of)
      } catch (error) {
        expect(error instanceof Error || error instanceof AssignmentProblem).toBe(true)
      }
    }
    for (const deep of DEEP) check(concat([message, deep]))
    fc.assert(fc.property(damaged(message), check), RUNS)
  })

  test('never makes a busy endpoint idle by a truncated load report', () => {
    expect(countAfter(LOADS)).toMatchObject({ active: 1 })
    for (let at = 0; at < LOADS.length; at += 1) {
      expect(countAfter(LOADS.slice(0, at))?.active).not.toBe(0)
    }
  })

  test('makes the whole cluster unknown by work at an invalid address', () => {
    const whole = report([stats('web', [[undefined, 1n]])])
    expect(countAfter(whole)).toBeUndefined()
  })

  test('counts a cluster together that is reported twice', () => {
    const twice = report([stats('web', [[24_005, 1n]]), stats('web', [[24_006, 1n]])])
    expect(countAfter(twice)).toMatchObject({ active: 1 })
  })

  test('is refused if the name of a set is not text', () => {
    const name = new Uint8Array([0xc3, 0x28])
    expect(() => WireAssignment.parse(concat([head(1, name.length), name]))).toThrow(
      expect.objectContaining({ problem: expect.stringContaining('protobuf') as string }),
    )
  })
})

type Stats = NonNullable<Parameters<typeof create<typeof LoadStatsRequestSchema>>[1]>

function stats(clusterName: string, endpoints: readonly (readonly [number | undefined, bigint])[]) {
  const upstreamEndpointStats = endpoints.map(([port, totalRequestsInProgress]) => ({
    totalRequestsInProgress,
    ...(port === undefined ? {} : { address: toAddress(port) }),
  }))
  const totalRequestsInProgress = endpoints.reduce((sum, [, active]) => sum + active, 0n)
  return {
    clusterName,
    upstreamLocalityStats: [{ totalRequestsInProgress, upstreamEndpointStats }],
  }
}

function toAddress(port: number) {
  const portSpecifier = { case: 'portValue' as const, value: port }
  const value = { address: '127.0.0.1', portSpecifier }
  return { address: { case: 'socketAddress' as const, value } }
}

function report(clusterStats: readonly ReturnType<typeof stats>[]): Uint8Array {
  const message = { clusterStats: [...clusterStats] } as Stats
  return toBinary(LoadStatsRequestSchema, create(LoadStatsRequestSchema, message))
}

/** What is known of the busy endpoint after one report; undefined where nothing is. */
function countAfter(message: Uint8Array) {
  const book = new LoadBook(() => 1_000, 250)
  const key = {}
  book.begin(key, 'envoy-1', undefined, () => undefined)
  try {
    book.report(key, decodeLoads(message).report)
  } catch (error) {
    expect(error).toBeInstanceOf(Error)
    return undefined
  }
  return book.nodes()[0]?.of('web', BUSY)
}

const METHODS = [
  '/envoy.service.discovery.v3.AggregatedDiscoveryService/StreamAggregatedResources',
  '/envoy.service.discovery.v3.AggregatedDiscoveryService/DeltaAggregatedResources',
  '/envoy.service.load_stats.v3.LoadReportingService/StreamLoadStats',
] as const

test.each(METHODS)('%s ends a stream of garbage, and no other', async (method) => {
  const host = { address: { socket_address: { address: '127.0.0.1', port_value: 80 } } }
  const sink = grpcEndpoints({
    host: '127.0.0.1',
    port: 0,
    initial: [{ cluster_name: 'web', endpoints: [{ lb_endpoints: [{ endpoint: host }] }] }],
  })
  await using lb = envoy({ endpoints: sink })
  const signal = AbortSignal.timeout(10_000)
  const clock = { now: () => performance.now(), setTimeout: () => () => undefined }
  await lb.observe('all', { signal, clock })
  const client = new Client(`127.0.0.1:${sink.address?.port}`, credentials.createInsecure())
  const same = (value: Buffer): Buffer => value
  const send = (message: Uint8Array): Promise<number> =>
    new Promise((resolve) => {
      const stream = client.makeBidiStreamRequest(method, same, same)
      stream.on('error', ({ code }: { code?: number }) => resolve(code ?? -1))
      stream.on('data', () => undefined)
      stream.write(Buffer.from(message))
    })
  try {
    const garbage = [new Uint8Array([7]), new Uint8Array(9_000).fill(0x0b)]
    for (const message of garbage) expect(await send(message)).toBe(3)
    expect((await lb.observe('all', { signal, clock })).readings).toHaveLength(1)
  } finally {
    client.close()
  }
})
