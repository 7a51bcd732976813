import { expect, test } from 'vitest'
import { callbackEndpoints, envoy } from 'drainable/envoy'
import { startFake } from 'drainable/testing/envoy'
import { systemClock } from '../../../src/provider/clock.js'

test('a cluster of any size is read in the text form, from the first look on', async () => {
  const size = 600
  const members = Array.from({ length: size }, (_, i) => `10.0.${i >> 8}.${i & 255}:80`)
  await using fake = await startFake({ pools: { web: members } })
  const set = {
    cluster_name: 'web',
    endpoints: [
      {
        lb_endpoints: members.map((name) => ({
          endpoint: { address: { socket_address: { address: name.slice(0, -3), port_value: 80 } } },
        })),
      },
    ],
  }
  const endpoints = callbackEndpoints({
    load: () => Promise.resolve(set),
    publish: () => Promise.resolve(),
  })
  await using lb = envoy({ endpoints, admin: [fake.url] })
  const ctx = { signal: AbortSignal.timeout(10_000), clock: systemClock }
  const { readings } = await lb.observe([{ pool: 'web', member: members[0]! }], ctx)
  expect(readings[0]?.scopes[0]?.state).toBe('read')
  const asked = fake.requests.flatMap(({ path }) => (path.startsWith('/clusters') ? [path] : []))
  expect(asked.length).toBeGreaterThan(0)
  for (const path of asked) expect(path).toContain('format=text')
})
