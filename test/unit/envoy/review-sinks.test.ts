import { expect, test } from 'vitest'
import { callbackEndpoints, envoy } from 'drainable/envoy'
import { grpcEndpoints } from 'drainable/envoy/grpc'
import { startFake } from 'drainable/testing/envoy'
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

test('an endpoint that somebody else adds while a change is prepared is not lost', async () => {
  await using fake = await startFake({ pools: { web: names } })
  let members: readonly string[] = names
  let published: unknown
  let loads = 0
  const sink = callbackEndpoints({
    load: () => {
      const now = setOf(members)
      // Right after the change has read the set.
      if (++loads === 1) members = [...names, '10.0.9.9:80']
      return Promise.resolve(now)
    },
    publish: (set) => {
      published = set
      return Promise.resolve()
    },
  })
  await using lb = envoy({ endpoints: sink, admin: [fake.url] })
  const results = await lb.apply([{ kind: 'hold', ref, to: 'drain' }], ctx())
  expect(results[0]?.status).toBe('applied')
  expect(JSON.stringify(published)).toContain('10.0.9.9')
  expect(JSON.stringify(published).match(/DRAINING/g)).toHaveLength(1)
})

test('a key that is no PEM text is not repeated in the error', () => {
  const key = 'MIIEvQIBADANBgkqhkiG9w0BAQEFAASC'
  const cert = '-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----'
  let thrown: unknown
  try {
    grpcEndpoints({ port: 0, tls: { cert, key } })
  } catch (error) {
    thrown = error
  }
  expect(thrown).toMatchObject({ code: 'INVALID_OPTIONS' })
  const { message, cause } = thrown as Error
  expect(`${message} ${String(cause)}`).not.toContain(key)
  expect(message).toContain('tls.key')
})
