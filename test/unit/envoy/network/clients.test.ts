import { EventEmitter } from 'node:events'
import { Client, credentials, status, type ServiceError } from '@grpc/grpc-js'
import { create, toBinary } from '@bufbuild/protobuf'
import { afterEach, describe, expect, test } from 'vitest'
import { envoy, restEndpoints } from 'drainable/envoy'
import { grpcEndpoints } from 'drainable/envoy/grpc'
import { DiscoveryRequestSchema } from '../../../../src/adapters/envoy/grpc/gen/envoy/service/discovery/v3/discovery_pb.js'
import type { ByteStream } from '../../../../src/adapters/envoy/grpc/server.js'
import { WireAssignment } from '../../../../src/adapters/envoy/grpc/wire-assignment.js'
import { allNames, XdsStream } from '../../../../src/adapters/envoy/grpc/xds-stream.js'
import { ReceiptBook } from '../../../../src/adapters/envoy/sources/receipts.js'
import { LoadBook } from '../../../../src/adapters/envoy/grpc/load-book.js'
import { systemClock } from '../../../../src/provider/clock.js'

const ctx = () => ({ signal: AbortSignal.timeout(10_000), clock: systemClock })
const setOf = (size: number, cluster = 'web') => ({
  cluster_name: cluster,
  endpoints: [
    {
      lb_endpoints: Array.from({ length: size }, (_, i) => ({
        endpoint: {
          address: { socket_address: { address: `10.0.${i >> 8}.${i & 255}`, port_value: 80 } },
        },
      })),
    },
  ],
})
const CLA = 'type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment'
const EDS = '/envoy.service.endpoint.v3.EndpointDiscoveryService/StreamEndpoints'

/** A set of that name, without endpoints. */
function bytesOf(cluster: string): Uint8Array {
  return new Uint8Array([0x0a, cluster.length, ...Buffer.from(cluster)])
}

const closing: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const close of closing.splice(0)) await close()
})

async function rest(initial: readonly unknown[] = [setOf(4)]) {
  const sink = restEndpoints({ port: 0, initial })
  const lb = envoy({ endpoints: sink, admin: ['http://127.0.0.1:1'] })
  closing.push(() => lb.close())
  await sink.load({ held: () => Promise.resolve([]) }, AbortSignal.timeout(5_000))
  const url = `http://127.0.0.1:${sink.address?.port}/v3/discovery:endpoints`
  const post = (body: string) => fetch(url, { method: 'POST', body })
  return { sink, post }
}

describe('a request to the REST server', () => {
  const names = (list: unknown) => JSON.stringify({ node: { id: 'x' }, resource_names: list })

  test.each([
    ['a name that is no text', names([{ toString: null, valueOf: null }]), 400],
    ['depth without end', names(['_']).replace('"_"', '['.repeat(9_999) + ']'.repeat(9_999)), 400],
    ['names that are no list', names('web'), 400],
    ['too many names', names(Array.from({ length: 20_000 }, (_, i) => `n${i}`)), 400],
    ['no JSON', '{"node', 400],
    ['a list', '[]', 400],
    ['a node that is none', '{"node":7,"resource_names":["web"]}', 200],
    ['a version that is none', JSON.stringify({ version_info: {}, resource_names: ['web'] }), 200],
  ])('with %s gets an answer', async (_, body, expected) => {
    const { post } = await rest()
    expect((await post(body)).status).toBe(expected)
    expect((await post(names(['web']))).status).toBe(200)
  })

  test('with one name many times gets one set', async () => {
    const { post } = await rest([setOf(1_000)])
    const once = (await (await post(names(['web']))).text()).length
    const reply = await post(names(Array.from({ length: 400_000 }, () => 'web')))
    expect((await reply.text()).length).toBe(once)
  })
})

async function grpc(initial: readonly unknown[] = [setOf(4)]) {
  const sink = grpcEndpoints({ port: 0, initial })
  const lb = envoy({ endpoints: sink, admin: ['http://127.0.0.1:1'] })
  closing.push(() => lb.close())
  await sink.load({ held: () => Promise.resolve([]) }, AbortSignal.timeout(5_000))
  const client = new Client(`127.0.0.1:${sink.address?.port}`, credentials.createInsecure())
  closing.push(() => {
    client.close()
    return Promise.resolve()
  })
  const same = (value: Buffer): Buffer => value
  const open = () => {
    const stream = client.makeBidiStreamRequest(EDS, same, same)
    const ended = new Promise<ServiceError>((resolve) => stream.on('error', resolve))
    const got: Buffer[] = []
    const listen = (): void => {
      stream.on('data', (data: Buffer) => got.push(data))
    }
    return { stream, ended, got, listen }
  }
  return { sink, lb, open }
}

const asking = (id: string, resourceNames: string[]): Buffer =>
  Buffer.from(
    toBinary(
      DiscoveryRequestSchema,
      create(DiscoveryRequestSchema, {
        node: { id },
        resourceNames,
        typeUrl: CLA,
      }),
    ),
  )

describe('a stream of the gRPC server', () => {
  test('ends with too many names, and no other stream does', async () => {
    const { open } = await grpc()
    const greedy = open()
    greedy.listen()
    greedy.stream.write(
      asking(
        'x',
        Array.from({ length: 20_000 }, (_, i) => `n${i}`),
      ),
    )
    expect((await greedy.ended).code).toBe(status.INVALID_ARGUMENT)
    const other = open()
    other.listen()
    other.stream.write(asking('y', ['web']))
    await expect.poll(() => other.got.length).toBe(1)
    other.stream.cancel()
    await other.ended
  })

  test('may have 9,000 names, which are forgotten with it', async () => {
    const { sink, open } = await grpc()
    const wide = open()
    wide.listen()
    const names = Array.from({ length: 9_000 }, (_, i) => (i === 8_999 ? 'web' : `n${i}`))
    wide.stream.write(asking('x', names))
    await expect.poll(() => wide.got.length).toBe(1)
    wide.stream.write(asking('x', names.slice(1)))
    wide.stream.cancel()
    await wide.ended
    await expect.poll(() => sink.subscribers?.nodes().size).toBe(0)
  })

  test('that is read slowly gets the newest set, not all of them', () => {
    const writes: { readonly read: () => void }[] = []
    const stub = new EventEmitter()
    const stream = Object.assign(stub, {
      write: (_: Buffer, read: () => void) => writes.push({ read }),
      end: () => undefined,
    })
    const set = WireAssignment.parse(bytesOf('web'))
    let seq = 1
    const source = {
      book: new ReceiptBook(() => 0),
      names: allNames(),
      endpoints: () => ({ set, seq, version: String(seq) }),
      others: () => [],
    }
    const served = new XdsStream(
      stream as unknown as ByteStream,
      { delta: false, isWhole: false },
      source,
      () => undefined,
    )
    stub.emit('data', asking('x', ['web']))
    for (; seq < 500; seq++) served.push('web')
    expect(writes).toHaveLength(1)
    writes[0]?.read()
    expect(writes).toHaveLength(2)
    writes[1]?.read()
    expect(writes).toHaveLength(2)
  })

  test('of an unknown client that took nothing does not delay a drain', async () => {
    const { lb, open } = await grpc()
    for (let i = 0; i < 3; i++) {
      const one = open()
      one.listen()
      one.stream.write(asking(`stranger-${i}`, ['web']))
      await expect.poll(() => one.got.length).toBe(1)
      one.stream.cancel()
      await one.ended
    }
    await expect
      .poll(async () => {
        const error = (await lb.observe('all', ctx()).catch((e: unknown) => e)) as Error
        return error.message
      })
      .toContain('127.0.0.1:1')
  })
})

test('load reports of foreign sets leave nothing behind', () => {
  const book = new LoadBook(
    () => 0,
    250,
    (service) => service === 'web',
  )
  type Report = Parameters<LoadBook['report']>[1]
  const report = (clusterName: string) =>
    ({
      clusterStats: [{ clusterName, clusterServiceName: '', upstreamLocalityStats: [] }],
    }) as unknown as Report
  for (const name of ['web', 'other']) {
    const stream = {}
    book.begin(stream, `node-${name}`, undefined, () => undefined)
    book.report(stream, report(name))
    book.end(stream)
  }
  book.begin({}, 'silent', undefined, () => undefined)
  expect(book.nodes().map(({ node }) => node)).toEqual(['node-web', 'silent'])
})
