import { describe, expect, test } from 'vitest'
import { ready, startDrain } from 'drainable'
import { envoy } from 'drainable/envoy'
import { grpcEndpoints } from 'drainable/envoy/grpc'
import { engines } from '../../support/engines.js'
import { startBackend } from '../../support/envoy/backend.js'
import { ask, startTraffic } from '../../support/envoy/client.js'
import { startEnvoy } from '../../support/envoy/proxy.js'
import { setOf } from '../../support/envoy/sets.js'
import { until } from '../../support/wait.js'

/** Of what nothing may come to a member before it is idle, ms; half of what the rule asks for. */
const QUIET = 500
const NO_PANIC = { common_lb_config: { healthy_panic_threshold: { value: 0 } } }

describe.each(engines('envoy'))('by load reports alone under traffic, Envoy $version', (engine) => {
  test('drains in turn: no request after idle, none shortly before', async () => {
    const { path } = engine
    await using all = new AsyncDisposableStack()
    const backends = await Promise.all([1, 2, 3].map(() => startBackend()))
    for (const backend of backends) all.use(backend)
    const initial = [setOf(backends.map(({ port }) => port))]
    const sink = grpcEndpoints({ port: 0, initial, loadInterval: '100ms' })
    const lb = all.use(
      envoy({ endpoints: sink, expect: 2, connectTimeout: '500ms', panicThreshold: 0 }),
    )
    const { port: loads } = await until(() => sink.address, 'a listening sink')
    const ways = [{ delta: false }, { delta: true, ads: true }]
    const proxies = await Promise.all(
      ways.map((way, i) =>
        startEnvoy({ path, eds: { grpc: loads, ...way }, loads, id: `p${i}`, cluster: NO_PANIC }),
      ),
    )
    for (const proxy of proxies) all.use(proxy)
    const traffic = proxies.map(({ http }) => all.use(startTraffic(http)))
    const served = (i: number) => until(() => traffic[i]!.sent > 20, 'traffic')
    await Promise.all(proxies.map((_, i) => served(i)))
    for (const backend of backends) {
      const ref = { pool: 'web', member: backend.member }
      await using run = startDrain(lb, ref, { timeout: '60s' })
      const at: Record<string, number> = {}
      for (const event of ['in-force', 'idle'] as const) {
        run.on(event, () => (at[event] = performance.now()))
      }
      const [member] = (await run.done).members
      expect(member).toMatchObject({ outcome: 'idle', verifiedIdle: true })
      expect(at['idle']).toBeGreaterThan(at['in-force'] ?? Infinity)
      const sent = traffic.map((one) => one.sent)
      await until(() => traffic.every((one, i) => one.sent > sent[i]! + 50), 'more traffic')
      const last = backend.requests.at(-1) ?? 0
      expect((at['idle'] ?? 0) - last).toBeGreaterThan(QUIET)
      await run.close()
      await ready(lb, ref, { waitHealthy: false })
      await until(() => backend.requests.at(-1) !== last, 'requests again')
    }
    for (const { errors } of traffic) expect(errors).toEqual([])
  }, 120_000)

  test('a panic that begins later sends to a drained one: idle is not verified', async () => {
    const { path } = engine
    const backends = await Promise.all([1, 2, 3].map(() => startBackend()))
    await using all = new AsyncDisposableStack()
    for (const backend of backends) all.use(backend)
    const [a] = backends
    if (a === undefined) throw new Error('a server')
    const ports = backends.map(({ port }) => port)
    const sink = grpcEndpoints({ port: 0, initial: [setOf(ports)], loadInterval: '100ms' })
    const lb = all.use(envoy({ endpoints: sink, expect: 1, connectTimeout: '100ms' }))
    const { port: loads } = await until(() => sink.address, 'a listening sink')
    const proxy = all.use(await startEnvoy({ path, eds: { grpc: loads }, loads }))
    const ref = { pool: 'web', member: a.member }
    await using run = startDrain(lb, ref, { timeout: '60s' })
    const [member] = (await run.done).members
    expect(member).toMatchObject({ outcome: 'idle', verifiedIdle: false })
    expect(member?.why.map(({ text }) => text).join()).toContain('panicThreshold: 0')
    const status = (port: number) => ({
      health_status: port === a.port ? 'DRAINING' : 'UNHEALTHY',
    })
    await sink.set([setOf(ports, 'web', status)])
    const reaches = async () => (await ask(proxy.http)).port === a.port
    await until(reaches, 'a request at the drained server')
  })
})
