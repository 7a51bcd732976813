import { expect, test } from 'vitest'
import { callbackEndpoints, envoy } from 'drainable/envoy'
import { startFake } from 'drainable/testing/envoy'
import { systemClock } from '../../../src/provider/clock.js'

test.each([
  ['large', 600, 'format=text'],
  ['small', 6, 'format=json'],
])('the first look at a %s cluster takes the form for it', async (_, size, form) => {
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
  for (const path of asked) expect(path).toContain(form)
})
