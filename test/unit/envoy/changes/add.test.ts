import { expect, test } from 'vitest'
import { callbackEndpoints, envoy } from 'drainable/envoy'
import { startFake } from 'drainable/testing/envoy'
import { systemClock } from '../../../../src/provider/clock.js'

const ctx = () => ({ signal: AbortSignal.timeout(10_000), clock: systemClock })

test.each([
  ['a pipe', ['/run/app.sock', '/run/app.sock'], '/run/app.sock', 0],
  ['a pipe with a port', ['/run/app.sock', '/run/app.sock'], '/run/app.sock', 80],
  ['an abstract pipe', ['@app', '@app'], '@app', 0],
  ['IPv6 in two spellings', ['[2001:db8::1]:80', '[2001:DB8:0::1]:80'], '2001:db8::1', 80],
])('%s that is added twice exists once', async (_, members, address, port) => {
  await using fake = await startFake({ pools: { web: ['10.0.0.1:80'] } })
  const socket = { address: '10.0.0.1', port_value: 80 }
  let set: unknown = {
    cluster_name: 'web',
    endpoints: [{ lb_endpoints: [{ endpoint: { address: { socket_address: socket } } }] }],
  }
  let published = 0
  const endpoints = callbackEndpoints({
    load: () => Promise.resolve(set),
    publish: (next) => {
      published += 1
      set = next
      return Promise.resolve()
    },
  })
  await using lb = envoy({ endpoints, admin: [fake.url] })
  const statuses: string[] = []
  for (const member of members) {
    const ref = { pool: 'web', member }
    const [result] = await lb.apply([{ kind: 'add', ref, address, port }], ctx())
    statuses.push(result?.status ?? '')
  }
  expect(statuses).toEqual(['applied', 'unchanged'])
  expect(published).toBe(1)
})
