import { monitorEventLoopDelay } from 'node:perf_hooks'
import { describe, expect, test } from 'vitest'
import { drain } from 'drainable'
import { envoy, fileEndpoints } from 'drainable/envoy'
import { grpcEndpoints } from 'drainable/envoy/grpc'
import { engines } from '../../support/engines.js'
import { startEnvoy, workDir } from '../../support/envoy/proxy.js'
import { makePki } from '../../support/envoy/pki.js'
import { startBackend } from '../../support/envoy/backend.js'
import { startTraffic } from '../../support/envoy/client.js'
import { setOf, writeEds } from '../../support/envoy/sets.js'
import { delay, until } from '../../support/wait.js'
import { fileStage, look } from '../../support/envoy/stage.js'
import { systemClock } from '../../../src/provider/clock.js'

const clock = systemClock

describe.each(engines('envoy'))('in force on Envoy $version', ({ path, series }) => {
  test("in another change's merge window, no request comes after in-force", async () => {
    await using stage = await fileStage(path, { servers: 4 })
    const { a, b, proxy, lb, refOf } = stage
    await using traffic = startTraffic(proxy.http, { clients: 8, pause: 1 })
    await until(() => a.requests.length > 20, 'traffic')
    for (let round = 0; round < 2; round++) {
      const signal = AbortSignal.timeout(20_000)
      await delay(1_200)
      await lb.apply([{ kind: 'hold', ref: refOf(b), to: 'drain' }], { signal, clock })
      await delay(100)
      const askedAt = performance.now()
      await lb.apply([{ kind: 'hold', ref: refOf(a), to: 'drain' }], { signal, clock })
      const forced = await until(async () => {
        const { scopes } = await look(lb, refOf(a))
        return scopes.every(({ inForce }) => inForce) ? performance.now() : undefined
      }, 'it to be in force')
      await delay(1_500)
      // The servers share this process: what came before may be noted a moment later.
      expect(a.requests.filter((at) => at > forced + 25)).toEqual([])
      const late = a.requests.filter((at) => at > askedAt + 20)
      if (series === '1.39') expect(late.length).toBeGreaterThan(0) // acknowledged, and still served
      const back = { kind: 'restore', expect: 'drain', to: 'ready' } as const
      await lb.apply(
        [
          { ...back, ref: refOf(a) },
          { ...back, ref: refOf(b) },
        ],
        { signal, clock },
      )
    }
    expect(traffic.errors).toEqual([])
  })

  test('a drain goes through an admin API on a Unix socket', async () => {
    await using dir = await workDir()
    const adminSocket = `unix:${dir.path}/admin.sock`
    await using stage = await fileStage(path, { envoy: { adminSocket } })
    const report = await drain(stage.lb, stage.refOf(stage.a), { timeout: '20s' })
    expect(report.outcome).toBe('idle')
    expect(report.members[0]?.lastReading?.scopes[0]?.scope).toBe(adminSocket)
  })
})

describe.each(engines('envoy').slice(-1))('at size and over TLS on Envoy $version', ({ path }) => {
  test('10,000 endpoints: drained by file and by gRPC', async () => {
    await using a = await startBackend()
    await using b = await startBackend()
    await using dir = await workDir()
    const file = `${dir.path}/web.json`
    const many = setOf([a.port, b.port]) as { endpoints: { lb_endpoints: unknown[] }[] }
    for (let i = 0; i < 9_998; i++) {
      const address = `127.1.${Math.floor(i / 250)}.${i % 250}`
      many.endpoints[0]?.lb_endpoints.push({
        endpoint: { address: { socket_address: { address, port_value: 8_080 } } },
        health_status: 'UNHEALTHY',
      })
    }
    const cluster = { common_lb_config: { healthy_panic_threshold: { value: 0 } } }
    await writeEds(file, [many])
    await using one = await startEnvoy({ path, eds: { file }, cluster })
    const sink = grpcEndpoints({ port: 0, initial: [many] })
    const admin: string[] = []
    await using byGrpc = envoy({ endpoints: sink, admin: () => Promise.resolve(admin) })
    await using byFile = envoy({
      endpoints: fileEndpoints({ cluster: 'web', path: file }),
      admin: [one.admin],
    })
    const { port } = await until(() => sink.address, 'a listening sink')
    await using two = await startEnvoy({ path, eds: { grpc: port, ads: true }, cluster })
    admin.push(two.admin)
    const ref = { pool: 'web', member: a.member }
    for (const lb of [byFile, byGrpc]) {
      await look(lb, ref)
      const stalls = monitorEventLoopDelay({ resolution: 5 })
      stalls.enable()
      const report = await drain(lb, ref, { timeout: '60s' })
      stalls.disable()
      expect(report.outcome).toBe('idle')
      // No bound: on a shared machine it would measure the others.
      console.log(`longest stall ${(stalls.max / 1e6).toFixed(0)} ms`)
    }
  })

  test('mutual TLS serves only a client with the right certificate', async () => {
    await using dir = await workDir()
    const pki = makePki(dir.path)
    await using a = await startBackend()
    await using b = await startBackend()
    const sink = grpcEndpoints({
      port: 0,
      initial: [setOf([a.port, b.port])],
      tls: { cert: pki.server.cert, key: pki.server.key, clientCa: pki.server.ca },
    })
    const admin: string[] = []
    await using lb = envoy({ endpoints: sink, admin: () => Promise.resolve(admin) })
    const { port } = await until(() => sink.address, 'a listening sink')
    await using proxy = await startEnvoy({
      path,
      eds: { grpc: port, tls: pki.client },
    })
    admin.push(proxy.admin)
    const report = await drain(lb, { pool: 'web', member: a.member }, { timeout: '20s' })
    expect(report.outcome).toBe('idle')
    await using plain = await startEnvoy({ path, eds: { grpc: port }, id: 'without' }).catch(
      () => ({
        [Symbol.asyncDispose]: () => Promise.resolve(),
      }),
    )
    expect(plain).toBeDefined()
    expect([...(sink.subscribers?.nodes() ?? [])]).toEqual(['envoy-1'])
  })
})
