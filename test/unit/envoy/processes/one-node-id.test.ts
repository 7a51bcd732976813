import { describe, expect, test } from 'vitest'
import { envoy, restEndpoints } from 'drainable/envoy'
import { grpcEndpoints } from 'drainable/envoy/grpc'
import { startFake } from 'drainable/testing/envoy'
import { ReceiptBook } from '../../../../src/adapters/envoy/sources/receipts.js'
import { systemClock } from '../../../../src/provider/clock.js'

const ctx = () => ({ signal: AbortSignal.timeout(10_000), clock: systemClock })
const names = ['10.0.0.1:80', '10.0.0.2:80', '10.0.0.3:80', '10.0.0.4:80']
const ref = { pool: 'web', member: names[0]! }
const initial = [
  {
    cluster_name: 'web',
    endpoints: [
      {
        lb_endpoints: names.map((name) => ({
          endpoint: { address: { socket_address: { address: name.slice(0, -3), port_value: 80 } } },
        })),
      },
    ],
  },
]

test.each([
  ['both are listed', 2, ['read', 'read']],
  ['one is not', 1, ['read', 'unread']],
])('two proxies with one node.id: %s', async (_, listed, states) => {
  const sink = grpcEndpoints({ port: 0, initial })
  const admin: string[] = []
  await using lb = envoy({ endpoints: sink, admin: () => Promise.resolve(admin) })
  await lb.observe('all', ctx()).catch(() => undefined)
  const grpc = `http://127.0.0.1:${sink.address?.port}`
  const options = { pools: { web: [] }, eds: { grpc }, node: 'copied' }
  await using one = await startFake(options)
  await using two = await startFake(options)
  admin.push(...[one.url, two.url].slice(0, listed))
  await expect.poll(() => sink.subscribers?.streams('copied')).toBe(2)
  const { readings } = await lb.observe([ref], ctx())
  expect(readings[0]?.scopes.map(({ state }) => state)).toEqual(states)
  if (listed === 1) expect(readings[0]?.scopes[1]?.note).toContain("node.id 'copied'")
})

describe('by REST', () => {
  test.each([
    ['both are listed', 2, ['read', 'read']],
    ['one is not', 1, ['read', 'unread']],
  ])('two proxies with one node.id: %s', async (_, listed, states) => {
    const sink = restEndpoints({ port: 0, initial })
    const admin: string[] = []
    await using lb = envoy({ endpoints: sink, admin: () => Promise.resolve(admin) })
    await lb.observe('all', ctx()).catch(() => undefined)
    const options = {
      pools: { web: [], api: [] },
      services: { api: 'web' },
      eds: { rest: `http://127.0.0.1:${sink.address?.port}` },
      node: 'copied',
    }
    await using one = await startFake(options)
    await using two = await startFake(options)
    admin.push(...[one.url, two.url].slice(0, listed))
    // Two clusters of each take the set, and ask for it by themselves.
    await expect.poll(() => sink.subscribers?.streams('copied')).toBe(4)
    expect(sink.subscribers?.streams('copied', () => 2)).toBe(2)
    const { readings } = await lb.observe([ref], ctx())
    expect(readings[0]?.scopes.map(({ state }) => state)).toEqual(states)
  })
})

test.each([
  ['EDS', { ads: false }, 2],
  ['ADS', { ads: true }, 1],
])('one proxy whose two clusters take one set is one process by %s', async (_, over, streams) => {
  const sink = grpcEndpoints({ port: 0, initial })
  const admin: string[] = []
  await using lb = envoy({ endpoints: sink, admin: () => Promise.resolve(admin) })
  await lb.observe('all', ctx()).catch(() => undefined)
  const eds = { grpc: `http://127.0.0.1:${sink.address?.port}`, ...over }
  const pools = { web: [], api: [] }
  await using fake = await startFake({ pools, services: { api: 'web' }, eds })
  admin.push(fake.url)
  await expect.poll(() => sink.subscribers?.streams('envoy-1')).toBe(streams)
  const { readings } = await lb.observe([ref], ctx())
  expect(readings[0]?.scopes.map(({ state }) => state)).toEqual(['read'])
})

test('without any admin API each stream is a process', async () => {
  const sink = grpcEndpoints({ port: 0, initial, loadInterval: '100ms' })
  await using lb = envoy({ endpoints: sink })
  await lb.observe('all', ctx())
  const grpc = `http://127.0.0.1:${sink.address?.port}`
  const options = { pools: { web: [] }, eds: { grpc }, node: 'copied' }
  await using one = await startFake({ ...options, loads: grpc })
  await using two = await startFake(options)
  const states = async () => {
    const { readings } = await lb.observe([ref], ctx())
    return readings[0]?.scopes.filter(({ scope }) => scope !== 'a proxy').map(({ state }) => state)
  }
  await expect.poll(states, { timeout: 5_000 }).toEqual(['read', 'unread'])
  expect([one.url, two.url]).toHaveLength(2)
})

test('a replaced stream is forgotten, a live one is not', () => {
  let now = 0
  const book = new ReceiptBook(() => now)
  const [lost, twin, fresh] = [{}, {}, {}]
  for (const stream of [lost, twin]) {
    book.subscribe(stream, 'n1', undefined, 'web')
    book.acked(stream, 'web', 1)
  }
  now = 10
  book.subscribe(fresh, 'n1', undefined, 'web')
  now = 20
  book.acked(twin, 'web', 2)
  book.acked(fresh, 'web', 2)
  book.gone(lost)
  book.gone(twin)
  expect(book.streams('n1')).toBe(3)
  now = 40_000
  expect(book.streams('n1')).toBe(2)
  expect(book.dropOne('n1')).toBe(true)
  expect(book.streams('n1')).toBe(1)
  expect(book.of('web')[0]?.ackedAt(2)).toBe(20)
})

test('a client that never took a set leaves nothing behind', () => {
  const book = new ReceiptBook(() => 0)
  for (let i = 0; i < 1_000; i++) {
    const stream = {}
    book.subscribe(stream, `stranger-${i}`, undefined, 'web')
    book.sent(stream, 'web', 1)
    book.gone(stream)
  }
  expect(book.nodes().size).toBe(0)
  expect(book.of('web')).toEqual([])
})
