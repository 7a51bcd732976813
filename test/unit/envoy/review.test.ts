import { expect, test } from 'vitest'
import { callbackEndpoints, envoy, restEndpoints, type EndpointSink } from 'drainable/envoy'
import { startFake } from 'drainable/testing/envoy'
import { Fleet } from '../../../src/adapters/envoy/session/session.js'
import { LoadBook } from '../../../src/adapters/envoy/grpc/load-book.js'
import { systemClock } from '../../../src/provider/clock.js'

const clock = systemClock
const ctx = (ms = 10_000) => ({ signal: AbortSignal.timeout(ms), clock })
const names = ['10.0.0.1:80', '10.0.0.2:80', '10.0.0.3:80', '10.0.0.4:80']
const endpointOf = (name: string) => ({
  endpoint: { address: { socket_address: { address: name.slice(0, -3), port_value: 80 } } },
})
const setOf = (members: readonly string[]) => ({
  cluster_name: 'web',
  endpoints: [{ lb_endpoints: members.map(endpointOf) }],
})
const ref = { pool: 'web', member: names[0]! }

/** A sink of which only the nodes matter. */
const sinkWith = (nodes: readonly string[], connected: boolean): EndpointSink => ({
  kind: 'grpc',
  instance: 'test',
  lateBound: 0,
  load: () => Promise.resolve(new Map()),
  publish: () => Promise.reject(new Error('not here')),
  nodes: () => new Set(nodes),
  isConnected: () => connected,
  close: () => Promise.resolve(),
})

test('a node that is connected is never gone, however long its counts cannot be read', async () => {
  await using fake = await startFake({ node: 'envoy-1' })
  let now = 0
  const fleet = new Fleet({ admin: [fake.url], expect: undefined, goneAfter: 100, now: () => now })
  const sink = sinkWith(['envoy-1', 'envoy-2'], true)
  const stateOf2 = async () => {
    const views = await fleet.read([], sink, AbortSignal.timeout(5_000), clock)
    return views.find(({ scope }) => scope === 'envoy-2')?.state
  }
  expect(await stateOf2()).toBe('unread')
  now = 1_000
  expect(await stateOf2()).toBe('unread')
  await fleet.close()
})

test('a known node stays listed while a new proxy has not answered yet', async () => {
  await using fake = await startFake({ node: 'envoy-1' })
  const list = [fake.url]
  const fleet = new Fleet({
    admin: () => Promise.resolve([...list]),
    expect: undefined,
    goneAfter: Infinity,
    now: () => performance.now(),
  })
  const sink = sinkWith(['envoy-1', 'envoy-2'], true)
  const read = () => fleet.read([], sink, AbortSignal.timeout(5_000), clock)
  await read()
  list.push('http://127.0.0.1:1')
  const views = await read()
  expect(views.find(({ scope }) => scope === 'envoy-2')?.state).toBe('unread')
  await fleet.close()
})

test('a proxy that is listed twice is one, and does not stand for a missing one', async () => {
  await using fake = await startFake()
  const fleet = new Fleet({
    admin: [fake.url, fake.url, `${fake.url}/`],
    expect: 2,
    goneAfter: Infinity,
    now: () => performance.now(),
  })
  const sink = sinkWith([], false)
  const views = await fleet.read([], sink, AbortSignal.timeout(5_000), clock)
  expect(views.map(({ state }) => state)).toEqual(['read', 'unread'])
  await fleet.close()
})

test('an admin function that hangs does not hold an aborted call', async () => {
  const sink = callbackEndpoints({
    load: () => Promise.resolve(setOf(names)),
    publish: () => Promise.resolve(),
  })
  await using lb = envoy({ endpoints: sink, admin: () => new Promise(() => undefined) })
  const hung = new Promise((resolve) => setTimeout(resolve, 1_000, 'hung'))
  const call = lb.observe('all', ctx(50)).catch(() => 'aborted')
  expect(await Promise.race([call, hung])).toBe('aborted')
})

test('a call that waits for the adoption ends with its own signal, and with no other', async () => {
  await using fake = await startFake({ pools: { web: names } })
  fake.fail({ how: 'silent' })
  await using lb = envoy({ endpoints: restEndpoints({ port: 0 }), admin: [fake.url] })
  const one = lb.observe('all', ctx(100)).catch((error: unknown) => error)
  await one // nothing else would end it
  const reason = new Error('mine alone')
  const giveUp = new AbortController()
  const other = lb.observe('all', { signal: giveUp.signal, clock }).catch((e: unknown) => e)
  const second = lb.observe('all', ctx()).catch((error: unknown) => error)
  await new Promise((resolve) => setTimeout(resolve, 1_500))
  giveUp.abort(reason)
  expect(await other).toBe(reason)
  expect(await second).not.toBe(reason)
})

test('work of a proxy that was unread at the last look is not forgotten with the endpoint', async () => {
  await using fake = await startFake({ pools: { web: names } })
  let members: readonly string[] = names
  const sink = callbackEndpoints({
    load: () => Promise.resolve(setOf(members)),
    publish: () => Promise.resolve(),
  })
  await using other = await startFake({ pools: { web: names }, node: 'envoy-2' })
  await using lb = envoy({ endpoints: sink, admin: [fake.url, other.url] })
  await lb.observe([ref], ctx())
  await fake.occupy(ref)
  await lb.observe([ref], ctx())
  const recovers = fake.fail({ how: 'status' })
  const unread = await lb.observe([ref], ctx())
  expect(unread.readings[0]?.scopes.map(({ state }) => state)).toContain('unread')
  await recovers()
  members = names.slice(1)
  await fake.setBehind(ref, 'gone')
  await other.setBehind(ref, 'gone')
  const gone = await lb.observe([ref], ctx())
  expect(gone.readings[0]?.present).toBe(false)
  expect(gone.readings[0]?.scopes.find(({ scope }) => scope === fake.url)).toMatchObject({
    state: 'read',
    active: 1,
  })
})

test('where /stats is not allowed, what a removed endpoint still holds is unread', async () => {
  await using fake = await startFake({
    pools: { web: names },
    allowPaths: ['/clusters', '/server_info', '/config_dump'],
  })
  let members: readonly string[] = names
  const sink = callbackEndpoints({
    load: () => Promise.resolve(setOf(members)),
    publish: () => Promise.resolve(),
  })
  await using lb = envoy({ endpoints: sink, admin: [fake.url] })
  await fake.occupy(ref)
  await lb.observe([ref], ctx())
  members = names.slice(1)
  await fake.setBehind(ref, 'gone')
  const { readings } = await lb.observe([ref], ctx())
  expect(readings[0]?.scopes.map(({ state }) => state)).toEqual(['unread'])
})

test('while one proxy cannot be asked for its version, connects may hide requests', async () => {
  await using fake = await startFake({ pools: { web: names } })
  await using old = await startFake({ pools: { web: names }, version: '1.38.3', node: 'envoy-2' })
  old.fail({ how: 'status' })
  const sink = callbackEndpoints({
    load: () => Promise.resolve(setOf(names)),
    publish: () => Promise.resolve(),
  })
  await using lb = envoy({ endpoints: sink, admin: [fake.url, old.url] })
  expect((await lb.describe(ctx())).capabilities.blind).toBe(5_100)
})

test.each([
  ['shorter than the default', '1.38.3', 800, 900],
  ['longer than the default', '1.38.3', 20_000, 20_100],
  ['counted from 1.39.3 on', '1.39.3', 20_000, 0],
])(
  'a connect hides a request for as long as the proxies say: %s',
  async (_, version, own, blind) => {
    await using fake = await startFake({ pools: { web: names }, version, connectTimeout: own })
    const sink = callbackEndpoints({
      load: () => Promise.resolve(setOf(names)),
      publish: () => Promise.resolve(),
    })
    await using lb = envoy({ endpoints: sink, admin: [fake.url], connectTimeout: '3s' })
    expect((await lb.describe(ctx())).capabilities.blind).toBe(blind)
  },
)

test('load reports without endpoints are no knowledge about an endpoint', () => {
  let now = 0
  const book = new LoadBook(() => now, 250)
  const stream = {}
  book.begin(stream, 'grpc-client', undefined, () => undefined)
  now = 250
  type Report = Parameters<LoadBook['report']>[1]
  const report = {
    clusterStats: [
      {
        clusterName: 'web',
        clusterServiceName: '',
        upstreamLocalityStats: [
          { totalRequestsInProgress: 3n, totalIssuedRequests: 3n, upstreamEndpointStats: [] },
        ],
      },
    ],
  }
  book.report(stream, report as unknown as Report)
  expect(book.nodes()[0]?.of('web', '10.0.0.1:80')).toBeUndefined()
})
