import { EventEmitter } from 'node:events'
import { create, toBinary } from '@bufbuild/protobuf'
import { describe, expect, test } from 'vitest'
import {
  DeltaDiscoveryRequestSchema,
  DiscoveryRequestSchema,
} from '../../../../src/adapters/envoy/grpc/gen/envoy/service/discovery/v3/discovery_pb.js'
import { LoadBook } from '../../../../src/adapters/envoy/grpc/load-book.js'
import { NameLimit } from '../../../../src/adapters/envoy/grpc/name-limit.js'
import type { ByteStream } from '../../../../src/adapters/envoy/grpc/server.js'
import { WireAssignment } from '../../../../src/adapters/envoy/grpc/wire-assignment.js'
import { XdsStream } from '../../../../src/adapters/envoy/grpc/xds-stream.js'
import { ReceiptBook } from '../../../../src/adapters/envoy/sources/receipts.js'

const CLA = 'type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment'
const CDS = 'type.googleapis.com/envoy.config.cluster.v3.Cluster'

/** Notes what is remembered. */
class Noted extends NameLimit {
  readonly taken: string[] = []
  constructor() {
    super({ count: 1_000_000, characters: 100_000_000, of: 'names' })
  }
  override take(name: string): void {
    super.take(name)
    this.taken.push(name)
  }
}

/** One stream of a server that serves some sets, in memory. */
function stream({ served = ['web'], delta = false } = {}) {
  const stub = new EventEmitter()
  const errors: { code: number; details: string }[] = []
  let written = 0
  stub.on('error', (error: { code: number; details: string }) => errors.push(error))
  const write = (_: Buffer, read: () => void): void => {
    written += 1
    read()
  }
  const end = (): void => undefined
  const book = new ReceiptBook(() => 0)
  const names = new Noted()
  const set = WireAssignment.parse(new Uint8Array([0x0a, 3, ...Buffer.from('web')]))
  const given = new Set(served)
  const xds = new XdsStream(
    Object.assign(stub, { write, end }) as unknown as ByteStream,
    { delta, isWhole: true },
    {
      book,
      names,
      endpoints: (cluster) => (given.has(cluster) ? { set, seq: 1, version: '1' } : undefined),
      others: () => [],
    },
    () => undefined,
  )
  const ask = (resourceNames: readonly string[], typeUrl = CLA, id = 'x'): void => {
    const node = { id }
    const bytes = delta
      ? toBinary(
          DeltaDiscoveryRequestSchema,
          create(DeltaDiscoveryRequestSchema, {
            node,
            typeUrl,
            resourceNamesSubscribe: [...resourceNames],
          }),
        )
      : toBinary(
          DiscoveryRequestSchema,
          create(DiscoveryRequestSchema, { node, typeUrl, resourceNames: [...resourceNames] }),
        )
    stub.emit('data', Buffer.from(bytes))
  }
  const serve = (cluster: string): void => {
    given.add(cluster)
    xds.served(cluster)
    xds.push(cluster)
  }
  return { ask, serve, book, names, errors, stub, written: () => written }
}

const many = (count: number, tag = 'n'): string[] =>
  Array.from({ length: count }, (_, i) => `${tag}${i}`)

describe('the memory of the server for a stream', () => {
  test.each([false, true])('has nothing of types that are not served (delta %s)', (delta) => {
    const { ask, names, errors } = stream({ delta })
    for (let i = 0; i < 100; i++) ask(many(100, `${i}-`), `type.googleapis.com/x${i}`)
    ask(['web'], CDS)
    expect(names.taken).toEqual([])
    expect(errors).toEqual([])
  })

  test('has receipts of served sets only, even if one is served later', () => {
    const { ask, serve, book, written } = stream()
    ask(['shop', ...many(100)])
    expect([...book.nodes()]).toEqual([])
    serve('shop')
    expect([...book.nodes()]).toEqual(['x'])
    expect(book.of('shop')).toMatchObject([{ node: 'x', state: 'pending' }])
    expect(book.of('n1')).toEqual([])
    expect(written()).toBe(1)
  })

  test.each([
    ['10,001 names in many messages', [many(6_000, 'a'), many(4_001, 'b')], 'more than 10000'],
    ['names of a megabyte', many(500).map((name) => [name.padEnd(3_000)]), 'characters in'],
    ['a name of 5,000 characters', [['x'.repeat(5_000)]], 'longer than 4096 characters'],
  ])('%s: is refused in words, and all forgotten', (_, messages, words) => {
    const { ask, names, errors, book } = stream({ delta: true })
    for (const message of messages) ask(message)
    expect(errors[0]).toMatchObject({ code: 3, details: expect.stringContaining(words) as string })
    const taken = names.taken.length
    ask(many(10, 'later'))
    expect(names.taken).toHaveLength(taken)
    expect([...book.nodes()]).toEqual([])
  })

  test('has no endless node.id, which is refused', () => {
    const { ask, errors } = stream()
    ask(['web'], CLA, 'x'.repeat(5_000))
    expect(errors[0]?.details).toBe('node.id is longer than 4096 characters')
  })

  test('has a limit of names over all streams, freed when one leaves', () => {
    const whole = new NameLimit({ count: 2, characters: 100, of: 'names on all streams' })
    const [one, two] = [1, 2].map(() => new NameLimit({ count: 9, characters: 99, of: 'x' }, whole))
    one?.take('a')
    one?.take('b')
    expect(() => two?.take('c')).toThrow('more than 2 names on all streams')
    one?.giveAll()
    expect(() => two?.take('c')).not.toThrow()
  })
})

describe('the memory of the server for load reports', () => {
  type Report = Parameters<LoadBook['report']>[1]
  const report = (names: readonly string[], service = '') =>
    ({
      clusterStats: names.map((clusterName) => ({
        clusterName,
        clusterServiceName: service,
        upstreamLocalityStats: [],
      })),
    }) as unknown as Report

  const begun = () => {
    const book = new LoadBook(() => 0, 250)
    const key = {}
    book.begin(key, 'x', undefined, () => undefined)
    return { book, key }
  }

  test('has a limit of clusters over all reports of a proxy', () => {
    const { book, key } = begun()
    const send = (): void => {
      for (let i = 0; i < 30; i++) book.report(key, report(many(10_000, `${i}-`)))
    }
    expect(send).toThrow('more than 200000 clusters and endpoints in the load reports of one proxy')
  })

  test('does not grow by the same clusters again and again', () => {
    const { book, key } = begun()
    for (let i = 0; i < 30; i++) book.report(key, report(many(10_000)))
    expect(book.nodes()[0]?.of('n1', '10.0.0.1:80')).toMatchObject({ active: 0 })
  })

  test.each([
    ['cluster', report(['x'.repeat(5_000)])],
    ['service', report(['x'], 'x'.repeat(5_000))],
  ])('has no endless %s name, which is refused', (_, long) => {
    const { book, key } = begun()
    expect(() => book.report(key, long)).toThrow('longer than 4096 characters')
  })

  test('keeps the node of a stream that is gone, but not its counts', () => {
    const { book, key } = begun()
    book.report(key, report(['web']))
    expect(book.nodes()[0]?.of('web', '10.0.0.1:80')).toMatchObject({ active: 0 })
    book.end(key)
    book.report(key, report(many(100)))
    expect(book.nodes()).toMatchObject([{ node: 'x', connected: false }])
    expect(book.nodes()[0]?.of('web', '10.0.0.1:80')).toBeUndefined()
  })
})
