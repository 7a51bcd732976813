import { describe, expect, test } from 'vitest'
import { drain, isDrainableError, ready } from 'drainable'
import { envoy } from 'drainable/envoy'
import { grpcEndpoints } from 'drainable/envoy/grpc'
import { engines } from '../../support/engines.js'
import { startEnvoy } from '../../support/envoy/proxy.js'
import { startBackend } from '../../support/envoy/backend.js'
import { ask } from '../../support/envoy/client.js'
import { setOf, writeEds } from '../../support/envoy/sets.js'
import { until } from '../../support/wait.js'
import { fileStage, look } from '../../support/envoy/stage.js'
import { systemClock } from '../../../src/provider/clock.js'

const clock = systemClock
const ctx = () => ({ signal: AbortSignal.timeout(10_000), clock })
const PICKED = 'type.googleapis.com/envoy.extensions.load_balancing_policies'

describe.each(engines('envoy'))('how Envoy $version balances', ({ path }) => {
  test("a drain of a subset's last member is refused, and never in force", async () => {
    const match = { metadata_match: { filter_metadata: { 'envoy.lb': { v: 'a' } } } }
    const subsets = { fallback_policy: 'ANY_ENDPOINT', subset_selectors: [{ keys: ['v'] }] }
    await using stage = await fileStage(path, {
      servers: 3,
      envoy: { route: match, cluster: { lb_subset_config: subsets } },
    })
    const { a, backends, lb, proxy, refOf, file } = stage
    const labelled = setOf(
      backends.map(({ port }) => port),
      'web',
      (port) => ({
        metadata: { filter_metadata: { 'envoy.lb': { v: port === a.port ? 'a' : 'b' } } },
      }),
    )
    await writeEds(file, [labelled], '2')
    await until(async () => (await ask(proxy.http)).port === a.port, 'the subset')
    const error: unknown = await drain(lb, refOf(a), { timeout: '10s' }).catch((e: unknown) => e)
    expect(isDrainableError(error, 'REJECTED') && error.message).toContain('the subset v=a')
    const drained = JSON.stringify(labelled).replace(
      `"port_value":${a.port}}}}`,
      `"port_value":${a.port}}}},"health_status":"DRAINING"`,
    )
    await writeEds(file, [JSON.parse(drained)], '3')
    const note = await until(async () => {
      const { own, scopes } = await look(lb, refOf(a))
      return own === 'drain' && scopes[0]?.inForce === false && scopes[0].note?.includes('subset')
    }, 'the panic of the subset')
    expect(note).toBe(true)
    expect((await ask(proxy.http)).port).toBe(a.port)
  })

  test('a panic threshold set at run time is the one that counts', async () => {
    const none = { common_lb_config: { healthy_panic_threshold: { value: 0 } } }
    const runtime = { 'upstream.healthy_panic_threshold': 100 }
    await using stage = await fileStage(path, { servers: 3, envoy: { cluster: none, runtime } })
    const { a, b, backends, lb, proxy, refOf, file } = stage
    const ports = backends.map(({ port }) => port)
    const status = (port: number) => (port === b.port ? { health_status: 'UNHEALTHY' } : {})
    await writeEds(file, [setOf(ports, 'web', status)], '2')
    await until(async () => (await proxy.get('/clusters')).includes('failed_eds'), 'the set')
    const error: unknown = await drain(lb, refOf(a), { timeout: '10s' }).catch((e: unknown) => e)
    expect(isDrainableError(error, 'REJECTED') && error.message).toContain('of 100 %')
  })

  test('a threshold set at run time in mid-drain takes the drain out of force', async () => {
    const none = { common_lb_config: { healthy_panic_threshold: { value: 0 } } }
    const layered_runtime = { layers: [{ name: 'admin', admin_layer: {} }] }
    await using stage = await fileStage(path, {
      envoy: { cluster: none, bootstrap: { layered_runtime } },
    })
    const { a, b, lb, proxy, refOf } = stage
    for (const one of [a, b]) await drain(lb, refOf(one), { timeout: '20s', keepReady: 0 })
    const set = `${proxy.admin}/runtime_modify?upstream.healthy_panic_threshold=50`
    expect((await fetch(set, { method: 'POST' })).status).toBe(200)
    expect((await look(lb, refOf(a))).scopes).toMatchObject([
      { inForce: false, note: expect.stringContaining('panic') as string },
    ])
  })

  test('ring hash ignores fail_traffic_on_panic, and is judged accordingly', async () => {
    const common_lb_config = { zone_aware_lb_config: { fail_traffic_on_panic: true } }
    const route = { hash_policy: [{ header: { header_name: 'x-key' } }] }
    await using stage = await fileStage(path, {
      envoy: { cluster: { lb_policy: 'RING_HASH', common_lb_config }, route },
    })
    const { a, b, backends, lb, file, proxy, refOf } = stage
    const error: unknown = await drain(lb, [refOf(a), refOf(b)], {
      timeout: '10s',
      keepReady: 0,
    }).catch((e: unknown) => e)
    expect(isDrainableError(error, 'REJECTED') && error.message).toContain('healthy_panic')
    const ports = backends.map(({ port }) => port)
    await writeEds(file, [setOf(ports, 'web', () => ({ health_status: 'DRAINING' }))], '9')
    await until(
      async () => (await proxy.get('/clusters')).split('eds_status_draining').length === 3,
      'the set',
    )
    expect((await ask(proxy.http)).status).toBe(200)
    expect((await look(lb, refOf(a))).scopes).toMatchObject([{ inForce: false }])
  })

  test('UNHEALTHY to DRAINING is in force only where Envoy counts it so', async () => {
    await using stage = await fileStage(path, { servers: 3 })
    const { a, b, backends, lb, proxy, refOf, file } = stage
    const ports = backends.map(({ port }) => port)
    const write = (version: string, status: string) =>
      writeEds(
        file,
        [setOf(ports, 'web', (port) => (port === a.port ? {} : { health_status: status }))],
        version,
      )
    await write('2', 'UNHEALTHY')
    const shows = (eds: string) =>
      until(async () => (await proxy.get('/clusters')).split(eds).length === 3, eds)
    await shows('failed_eds_health')
    await write('3', 'DRAINING')
    await shows('eds_status_draining')
    const seen = new Set<number>()
    for (let i = 0; i < 30; i++) seen.add((await ask(proxy.http)).port)
    expect(seen).toContain(b.port)
    const scope = async () => (await look(lb, refOf(b))).scopes[0]
    await until(async () => (await scope())?.note?.includes('panic mode'), 'the panic')
    expect(await scope()).toMatchObject({ inForce: false })
  })

  test('requests with a picked host reach a drained one: idle is unverified', async () => {
    const policy = (type: string, config: object = {}) => ({
      policies: [
        {
          typed_extension_config: {
            name: type,
            typed_config: { '@type': `${PICKED}.${type}`, ...config },
          },
        },
      ],
    })
    const picks = policy('override_host.v3.OverrideHost', {
      override_host_sources: [{ header: 'x-pick' }],
      fallback_policy: policy('round_robin.v3.RoundRobin'),
    })
    await using stage = await fileStage(path, {
      envoy: { cluster: { load_balancing_policy: picks } },
    })
    const { a, lb, proxy, refOf } = stage
    const report = await drain(lb, refOf(a), { timeout: '20s' })
    expect(report.members[0]).toMatchObject({ outcome: 'idle', verifiedIdle: false })
    expect(report.members[0]?.why.map(({ text }) => text).join()).toContain('override_host')
    const picked = await ask(proxy.http, '/', { headers: { 'x-pick': a.member } })
    expect(picked.port).toBe(a.port)
  })
})

describe.each(engines('envoy'))('load reports alone on Envoy $version', ({ path }) => {
  test('ready() opens at once, whether it waits for health or not', async () => {
    await using a = await startBackend()
    await using b = await startBackend()
    const sink = grpcEndpoints({
      port: 0,
      initial: [setOf([a.port, b.port])],
      loadInterval: '100ms',
    })
    await using lb = envoy({ endpoints: sink, connectTimeout: '500ms' })
    const { port } = await until(() => sink.address, 'a listening sink')
    await using proxy = await startEnvoy({ path, eds: { grpc: port }, loads: port })
    const ref = { pool: 'web', member: a.member }
    for (const waitHealthy of [true, false]) {
      await drain(lb, ref, { timeout: '20s' })
      const begun = performance.now()
      await ready(lb, ref, { waitHealthy })
      expect(performance.now() - begun).toBeLessThan(4_000)
      await until(async () => (await ask(proxy.http)).port === a.port, 'requests again')
    }
    const { readings } = await lb.observe([ref], ctx())
    expect(readings[0]).toMatchObject({ own: 'ready', health: 'unchecked' })
  })
})
