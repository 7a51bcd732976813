import { BinaryWriter, WireType } from '@bufbuild/protobuf/wire'
import * as grpc from '@grpc/grpc-js'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { envoy } from 'drainable/envoy'
import { grpcEndpoints } from 'drainable/envoy/grpc'
import { setOf } from '../../support/envoy/sets.js'
import { delay, until } from '../../support/wait.js'
import { systemClock } from '../../../src/provider/clock.js'

// No Envoy here: gRPC's own xDS client is a second, independent judge of the server.
const BASE = 'type.googleapis.com/envoy'
const PATH = '/test.Echo/Say'
const clock = systemClock

const servers: { port: number; calls: number[]; server: grpc.Server }[] = []

beforeAll(async () => {
  for (let i = 0; i < 2; i++) {
    const calls: number[] = []
    const server = new grpc.Server()
    const same = (value: Buffer): Buffer => value
    const method = {
      path: PATH,
      requestStream: false,
      responseStream: false,
      requestSerialize: same,
      requestDeserialize: same,
      responseSerialize: same,
      responseDeserialize: same,
    } as const
    server.addService(
      { Say: method },
      {
        Say: (call: grpc.ServerUnaryCall<Buffer, Buffer>, done: grpc.sendUnaryData<Buffer>) => {
          calls.push(performance.now())
          done(null, call.request)
        },
      },
    )
    const port = await new Promise<number>((resolve, reject) => {
      server.bindAsync('127.0.0.1:0', grpc.ServerCredentials.createInsecure(), (error, bound) =>
        error === null ? resolve(bound) : reject(error),
      )
    })
    servers.push({ port, calls, server })
  }
})

afterAll(() => {
  vi.unstubAllEnvs()
  for (const { server } of servers) server.forceShutdown()
})

test('@grpc/grpc-js-xds over ADS stops calling a drained endpoint', async () => {
  const [a, b] = servers
  if (a === undefined || b === undefined) throw new Error('two servers')
  const sink = grpcEndpoints({
    port: 0,
    initial: [withLocality(setOf([a.port, b.port]))],
    resources: [
      { type: `${BASE}.config.listener.v3.Listener`, name: 'echo', value: listener() },
      { type: `${BASE}.config.cluster.v3.Cluster`, name: 'web', value: cluster() },
    ],
  })
  await using lb = envoy({ endpoints: sink, expect: 1 })
  const { port } = await until(() => sink.address, 'a listening sink')
  const bootstrap = {
    xds_servers: [
      {
        server_uri: `127.0.0.1:${port}`,
        channel_creds: [{ type: 'insecure' }],
        server_features: ['xds_v3'],
      },
    ],
    node: { id: 'grpc-client', locality: {} },
  }
  vi.stubEnv('GRPC_XDS_BOOTSTRAP_CONFIG', JSON.stringify(bootstrap))
  const xds = await import('@grpc/grpc-js-xds')
  xds.register()
  const client = new grpc.Client('xds:///echo', grpc.credentials.createInsecure())
  const say = (): Promise<unknown> =>
    new Promise((resolve, reject) => {
      const same = (value: Buffer): Buffer => value
      const options = { deadline: Date.now() + 5_000 }
      client.makeUnaryRequest(PATH, same, same, Buffer.from('x'), options, (error, value) =>
        error === null ? resolve(value) : reject(error),
      )
    })
  await until(
    async () => {
      await say()
      return a.calls.length > 0 && b.calls.length > 0
    },
    'calls to both servers',
    15_000,
  )
  expect(sink.subscribers?.of('web')).toMatchObject([{ node: 'grpc-client', state: 'acked' }])
  const signal = AbortSignal.timeout(10_000)
  const ref = { pool: 'web', member: `127.0.0.1:${a.port}` }
  const results = await lb.apply([{ kind: 'hold', ref, to: 'drain' }], { signal, clock })
  expect(results[0]?.status).toBe('applied')
  await until(() => sink.subscribers?.of('web')[0]?.state === 'acked', 'its receipt')
  await delay(200)
  const [before, other] = [a.calls.length, b.calls.length]
  for (let i = 0; i < 30; i++) await say()
  expect(a.calls.length).toBe(before)
  expect(b.calls.length).toBe(other + 30)
  await lb.apply([{ kind: 'restore', ref, expect: 'drain', to: 'ready' }], { signal, clock })
  await until(async () => {
    await say()
    return a.calls.length > before
  }, 'calls to the restored server')
  client.close()
})

/** gRPC refuses a group without locality and ignores one without weight; Envoy takes both. */
function withLocality(set: Record<string, unknown>): Record<string, unknown> {
  const groups = set['endpoints'] as object[]
  const locality = { region: 'r1' }
  return {
    ...set,
    endpoints: groups.map((group) => ({ ...group, locality, load_balancing_weight: 1 })),
  }
}

type Field = readonly [number, string | Uint8Array | number]

/** A message by its field numbers: gRPC's own client needs a listener and a cluster too. */
function message(...fields: readonly Field[]): Uint8Array {
  const writer = new BinaryWriter()
  for (const [no, value] of fields) {
    if (typeof value === 'number') writer.tag(no, WireType.Varint).int32(value)
    else if (typeof value === 'string') writer.tag(no, WireType.LengthDelimited).string(value)
    else writer.tag(no, WireType.LengthDelimited).bytes(value)
  }
  return writer.finish()
}

function any(type: string, value: Uint8Array): Uint8Array {
  return message([1, type], [2, value])
}

function listener(): Uint8Array {
  const filters = `${BASE}.extensions.filters`
  const route = message([1, message([1, ''])], [2, message([1, 'web'])])
  const hosts = message([1, 'all'], [2, '*'], [3, route])
  const router = any(`${filters}.http.router.v3.Router`, new Uint8Array())
  const manager = message(
    [4, message([1, 'routes'], [2, hosts])],
    [5, message([1, 'router'], [4, router])],
  )
  const type = `${filters}.network.http_connection_manager.v3.HttpConnectionManager`
  return message([1, 'echo'], [19, message([1, any(type, manager)])])
}

function cluster(): Uint8Array {
  const source = message([3, new Uint8Array()], [6, 2])
  return message([1, 'web'], [2, 3], [3, message([1, source])])
}
