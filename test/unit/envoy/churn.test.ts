import { afterEach, expect, test, vi } from 'vitest'
import { callbackEndpoints, envoy } from 'drainable/envoy'
import { envoyListener } from 'drainable/envoy-listener'
import { startFake } from 'drainable/testing/envoy'
import { startFake as startListener } from 'drainable/testing/envoy-listener'
import { JsonAssignment } from '../../../src/adapters/envoy/codec/json.js'
import type { EndpointSink, Published } from '../../../src/adapters/envoy/sources/sink.js'
import { EndpointStore } from '../../../src/adapters/envoy/session/store.js'
import { systemClock } from '../../../src/provider/clock.js'

const MINUTE = 60_000
const ctx = () => ({ signal: AbortSignal.timeout(10_000), clock: systemClock })
const hostOf = (address: string) => ({
  endpoint: { address: { socket_address: { address, port_value: 80 } } },
})
const setOf = (...addresses: readonly string[]) => ({
  cluster_name: 'web',
  endpoints: [{ lb_endpoints: addresses.map(hostOf) }],
})

afterEach(() => {
  vi.restoreAllMocks()
})

/** Lets the monotonic clock run ahead, with a look every minute. */
function clock(look: () => Promise<unknown>) {
  const real = performance.now.bind(performance)
  let ahead = 0
  vi.spyOn(performance, 'now').mockImplementation(() => real() + ahead)
  return async (minutes: number): Promise<void> => {
    for (let i = 0; i < minutes; i++) {
      ahead += MINUTE
      await look()
    }
  }
}

test('work of a removed member is forgotten an hour after the last question', async () => {
  await using fake = await startFake({ pools: { web: ['10.0.0.1:80', '10.0.0.2:80'] } })
  let set = setOf('10.0.0.1', '10.0.0.2')
  const publish = () => Promise.resolve()
  const endpoints = callbackEndpoints({ load: () => Promise.resolve(set), publish })
  await using lb = envoy({ endpoints, admin: [fake.url] })
  const pass = clock(() => lb.observe('all', ctx()))
  const gone = { pool: 'web', member: '10.0.0.2:80' }
  const look = async () => (await lb.observe([gone], ctx())).readings[0]
  expect(await look()).toMatchObject({ present: true })
  set = setOf('10.0.0.1')
  await pass(50)
  expect(await look()).toMatchObject({ present: false, scopes: [{ scope: fake.url }] })
  await pass(62)
  expect(await look()).toEqual({ ref: gone, present: false, scopes: [] })
})

test('a gateway that was dropped is reported as ended for an hour', async () => {
  await using one = await startListener()
  await using two = await startListener()
  let listed = [one.url, two.url]
  await using lb = envoyListener({ admin: () => Promise.resolve(listed) })
  const pass = clock(() => lb.observe('all', ctx()))
  await lb.observe('all', ctx())
  listed = [one.url]
  await pass(50)
  expect((await lb.observe('all', ctx())).ended).toContain(two.member)
  await pass(12)
  const { ended, readings } = await lb.observe('all', ctx())
  expect(ended).not.toContain(two.member)
  expect(readings).toMatchObject([{ ref: { member: one.member }, present: true }])
})

test('a member that is back is in force by the publication that added it', async () => {
  const published: Published[] = [
    ['10.0.0.1', '10.0.0.2'],
    ['10.0.0.1'],
    ['10.0.0.1', '10.0.0.2'],
  ].map((addresses, i) => {
    const set = JsonAssignment.parse(setOf(...addresses), '')
    return { set, seq: i + 1, version: set.version }
  })
  let at = 0
  const sink = {
    load: () => Promise.resolve(new Map([['web', published[at]!]])),
  } as unknown as EndpointSink
  const store = new EndpointStore(sink, () => 0)
  const seqs: number[] = []
  for (; at < 3; at++) {
    await store.load({ held: () => Promise.resolve([]) }, AbortSignal.timeout(1_000))
    seqs.push(store.seqOf('web', '10.0.0.2:80'))
  }
  // Of one that is not there nothing is kept.
  expect(seqs).toEqual([1, 1, 3])
})
