import { expect, test } from 'vitest'
import { envoy, restEndpoints } from 'drainable/envoy'
import { grpcEndpoints } from 'drainable/envoy/grpc'

test.each([
  ['restEndpoints', restEndpoints],
  ['grpcEndpoints', grpcEndpoints],
] as const)('two %s on a port that the system chooses are two balancers', async (_, make) => {
  const providers = [1, 2].map(() =>
    envoy({ endpoints: make({ port: 0 }), admin: ['http://127.0.0.1:1'] }),
  )
  expect(new Set(providers.map(({ instance }) => instance)).size).toBe(2)
  for (const provider of providers) await provider.close()
})

test('two on one port are one balancer', async () => {
  const providers = [1, 2].map(() =>
    envoy({ endpoints: restEndpoints({ port: 18_000 }), admin: ['http://127.0.0.1:1'] }),
  )
  expect(new Set(providers.map(({ instance }) => instance)).size).toBe(1)
  for (const provider of providers) await provider.close()
})
