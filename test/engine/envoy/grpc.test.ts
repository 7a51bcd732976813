import { describe, expect, test } from 'vitest'
import { drain } from 'drainable'
import { envoy } from 'drainable/envoy'
import { grpcEndpoints } from 'drainable/envoy/grpc'
import { engines } from '../../support/engines.js'
import { startEnvoy } from '../../support/envoy/proxy.js'
import { startBackend } from '../../support/envoy/backend.js'
import { ask, startTraffic } from '../../support/envoy/client.js'
import { setOf } from '../../support/envoy/sets.js'
import { delay, until } from '../../support/wait.js'

const ways = [
  { ads: false, delta: false },
  { ads: false, delta: true },
  { ads: true, delta: false },
  { ads: true, delta: true },
]

describe.each(engines('envoy'))('gRPC sink on Envoy $version', ({ path }) => {
  test.each(ways)('a drain is in force once acknowledged: ads $ads, delta $delta', async (way) => {
    await using a = await startBackend()
    await using b = await startBackend()
    const sink = grpcEndpoints({ port: 0, initial: [setOf([a.port, b.port])] })
    const admin: string[] = []
    await using lb = envoy({ endpoints: sink, admin: () => Promise.resolve(admin), expect: 1 })
    const { port } = await until(() => sink.address, 'a listening sink')
    await using proxy = await startEnvoy({ path, eds: { grpc: port, ...way } })
    admin.push(proxy.admin)
    await using traffic = startTraffic(proxy.http)
    await until(() => a.requests.length > 5, 'traffic')
    const report = await drain(lb, { pool: 'web', member: a.member }, { timeout: '20s' })
    const idleAt = performance.now()
    expect(report.outcome).toBe('idle')
    expect(report.members[0]?.verifiedIdle).toBe(true)
    await delay(300)
    expect(a.requests.filter((at) => at > idleAt - 900)).toEqual([])
    expect(traffic.errors).toEqual([])
    expect(sink.subscribers?.of('web')).toMatchObject([{ node: 'envoy-1', state: 'acked' }])
  })

  test('load reports alone are enough', async () => {
    await using a = await startBackend()
    await using b = await startBackend()
    const sink = grpcEndpoints({ port: 0, initial: [setOf([a.port, b.port])] })
    await using lb = envoy({ endpoints: sink, expect: ['envoy-1'], connectTimeout: '500ms' })
    const { port } = await until(() => sink.address, 'a listening sink')
    await using proxy = await startEnvoy({ path, eds: { grpc: port }, loads: port })
    while (a.held === 0) {
      void ask(proxy.http, '/hold').catch(() => undefined)
      await delay(50)
    }
    const begun = performance.now()
    setTimeout(() => a.release(), 1_500)
    const report = await drain(lb, { pool: 'web', member: a.member }, { timeout: '20s' })
    const took = performance.now() - begun
    expect(report.outcome).toBe('idle')
    expect(took).toBeGreaterThan(1_400)
    b.release()
  })
})
