import { expect, test } from 'vitest'
import type { EndpointSink } from 'drainable/envoy'
import { startFake } from 'drainable/testing/envoy'
import { Fleet } from '../../../src/adapters/envoy/session/session.js'
import { systemClock as clock } from '../../../src/provider/clock.js'

/** A sink of which only the nodes matter. */
const sinkWith = (nodes: readonly string[], connected: boolean): EndpointSink => ({
  kind: 'grpc',
  instance: 'test',
  lateBound: 0,
  load: () => Promise.resolve(new Map()),
  publish: () => Promise.reject(new Error('not here')),
  subscribers: {
    of: () => [],
    nodes: () => new Set(nodes),
    streams: () => 0,
    dropOne: () => false,
    isConnected: () => connected,
    drop: () => undefined,
    listen: () => () => undefined,
  },
  close: () => Promise.resolve(),
})

test('a connected node is never gone, however long it is unread', async () => {
  await using fake = await startFake({ node: 'envoy-1' })
  let now = 0
  const fleet = new Fleet({
    admin: [fake.url],
    sink: sinkWith(['envoy-1', 'envoy-2'], true),
    loads: undefined,
    expect: undefined,
    goneAfter: 100,
    now: () => now,
  })
  const stateOf2 = async () => {
    const views = await fleet.read([], AbortSignal.timeout(5_000), clock)
    return views.find(({ scope }) => scope === 'envoy-2')?.state
  }
  expect(await stateOf2()).toBe('unread')
  now = 1_000
  expect(await stateOf2()).toBe('unread')
})

test('a known node stays listed while a new proxy has not answered yet', async () => {
  await using fake = await startFake({ node: 'envoy-1' })
  const list = [fake.url]
  const fleet = new Fleet({
    admin: () => Promise.resolve([...list]),
    sink: sinkWith(['envoy-1', 'envoy-2'], true),
    loads: undefined,
    expect: undefined,
    goneAfter: Infinity,
    now: () => performance.now(),
  })
  const read = () => fleet.read([], AbortSignal.timeout(5_000), clock)
  await read()
  list.push('http://127.0.0.1:1')
  const views = await read()
  expect(views.find(({ scope }) => scope === 'envoy-2')?.state).toBe('unread')
})

test('a proxy listed twice is one, and does not stand for a missing one', async () => {
  await using fake = await startFake()
  const fleet = new Fleet({
    admin: [fake.url, fake.url, `${fake.url}/`],
    sink: sinkWith([], false),
    loads: undefined,
    expect: 2,
    goneAfter: Infinity,
    now: () => performance.now(),
  })
  const views = await fleet.read([], AbortSignal.timeout(5_000), clock)
  expect(views.map(({ state }) => state)).toEqual(['read', 'unread'])
})
