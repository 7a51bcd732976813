import { afterEach, expect, test, vi } from 'vitest'
import { callbackEndpoints, envoy } from 'drainable/envoy'
import { startFake } from 'drainable/testing/envoy'
import { systemClock } from '../../../src/provider/clock.js'

const clock = systemClock
const ctx = () => ({ signal: AbortSignal.timeout(10_000), clock })
const names = ['10.0.0.1:80', '10.0.0.2:80', '10.0.0.3:80', '10.0.0.4:80']
const set = {
  cluster_name: 'web',
  endpoints: [
    {
      lb_endpoints: names.map((name) => ({
        endpoint: { address: { socket_address: { address: name.slice(0, -3), port_value: 80 } } },
      })),
    },
  ],
}

/** Longer than any machine stands still, in milliseconds: the clock is moved over it. */
const WINDOW = 60_000

afterEach(() => {
  vi.restoreAllMocks()
})

/** Lets the monotonic clock run ahead. */
function clockAhead(): (ms: number) => void {
  const real = performance.now.bind(performance)
  let ahead = 0
  vi.spyOn(performance, 'now').mockImplementation(() => real() + ahead)
  return (ms) => void (ahead += ms)
}

test('a row from before the change does not end its merge window', async () => {
  const ref = { pool: 'web', member: names[0]! }
  await using fake = await startFake({
    pools: { web: names },
    version: '1.39.3',
    mergeWindow: WINDOW,
  })
  // The proxy still shows the drain before last: the control plane is slow.
  await fake.setBehind(ref, 'drain')
  let current: unknown = set
  const sink = callbackEndpoints({
    load: () => Promise.resolve(current),
    publish: (next) => {
      current = next
      return Promise.resolve()
    },
  })
  await using lb = envoy({ endpoints: sink, admin: [fake.url] })
  const pass = clockAhead()
  await lb.observe([ref], ctx())
  pass(WINDOW + 1_000)
  await lb.apply([{ kind: 'hold', ref, to: 'drain' }], ctx())
  const inForce = async () => (await lb.observe([ref], ctx())).readings[0]?.scopes[0]?.inForce
  expect(await inForce()).toBe(false)
  pass(WINDOW + 1_000)
  expect(await inForce()).toBe(true)
})
