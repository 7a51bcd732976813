import { describe, expect, test } from 'vitest'
import { drain, ready, startDrain } from 'drainable'
import { envoyListener } from 'drainable/envoy-listener'
import { engines } from '../../support/engines.js'
import { ask, openWebSocket } from '../../support/envoy/client.js'
import { until } from '../../support/wait.js'
import { type RunningEnvoy } from '../../support/envoy/proxy.js'
import {
  http2Ask,
  http2Client,
  idleClient,
  quietTcp,
  startGateway,
  TARGET,
} from '../../support/envoy-gateway.js'

const POLICY = { timeout: '60s', keepReady: 0 } as const

/** Clients that are connected now. `server.total_connections` moves only when statistics are flushed. */
async function connected(proxy: RunningEnvoy): Promise<number> {
  return Number(
    /: (\d+)/.exec(await proxy.get('/stats?filter=^http.in.downstream_cx_active$'))?.[1],
  )
}

describe.each(engines('envoy'))('Envoy $version drained itself', ({ path }) => {
  test('requests, HTTP/2, WebSockets and TCP count, idle clients do not', async () => {
    await using gateway = await startGateway(path)
    const { proxy, provider, stage } = gateway
    const idle = [await idleClient(proxy.http), await idleClient(proxy.http)]
    const second = await http2Client(proxy.http)
    const held = [ask(proxy.http, '/hold'), http2Ask(second, '/hold')]
    const all = () => stage.backends.reduce((sum, backend) => sum + backend.held, 0)
    await until(() => all() === 2, 'two requests in flight')
    const socket = await openWebSocket(proxy.http)
    const raw = await quietTcp(proxy.tcp)

    const run = startDrain(provider, TARGET, POLICY)
    const active = () => run.report().members[0]?.lastReading?.scopes[0]?.active
    await until(() => active() === 4, 'four in flight')
    await until(
      () => run.why().some(({ text }) => text.startsWith('3 requests of http.in, 1 of them')),
      'the WebSocket by its name',
    )
    for (const backend of stage.backends) backend.release()
    await Promise.all(held)
    await until(() => active() === 2, 'two in flight')
    socket.destroy()
    await until(() => active() === 1, 'one in flight')
    raw.destroy()

    const report = await run.done
    expect(report.members[0]).toMatchObject({ outcome: 'idle', verifiedIdle: true })
    expect(await connected(proxy)).toBeGreaterThanOrEqual(3)
    expect(second.closed).toBe(false)
    await run.restore()
    expect((await ask(proxy.http, '/healthz')).status).toBe(200)
    for (const one of idle) one.destroy()
    second.destroy()
    await run.close()
  })

  test('/healthcheck/ok undoes the drain', async () => {
    await using gateway = await startGateway(path)
    const { proxy, provider } = gateway
    await drain(provider, TARGET, POLICY)
    expect((await ask(proxy.http, '/healthz')).status).toBe(503)
    await ready(provider, TARGET)
    expect((await ask(proxy.http, '/healthz')).status).toBe(200)
  })

  test('a request that outlasts the drain time is waited for', async () => {
    await using gateway = await startGateway(path, { envoy: { drainTime: 1 } })
    const { proxy, provider, stage } = gateway
    const held = ask(proxy.http, '/hold')
    const all = () => stage.backends.reduce((sum, backend) => sum + backend.held, 0)
    await until(() => all() === 1, 'a request in flight')
    const run = startDrain(provider, TARGET, POLICY)
    await until(() => run.report().members[0]?.phase === 'draining', 'a drain')
    await provider.drainListeners()
    const refused = () =>
      ask(proxy.http).then(
        () => false,
        () => true,
      )
    await until(refused, 'closed listeners')
    expect(run.report().members[0]).toMatchObject({ phase: 'draining' })
    for (const backend of stage.backends) backend.release()
    expect((await held).status).toBe(200)
    expect((await run.done).members[0]).toMatchObject({ outcome: 'idle', verifiedIdle: true })
    await run.close()
  })

  test('quit ends the process within the action', async () => {
    await using gateway = await startGateway(path)
    const { proxy, provider } = gateway
    const report = await drain(provider, TARGET, POLICY, async (idle) => {
      await provider.quit()
      return idle
    })
    expect(report.outcome).toBe('idle')
    const gone = () =>
      proxy.get('/ready').then(
        () => false,
        () => true,
      )
    await until(gone, 'an Envoy that has ended')
  })
})

describe.each(engines('envoy'))('a refusal by Envoy $version changes nothing', ({ path }) => {
  test('a proxy without the health check filter is left as it is', async () => {
    await using gateway = await startGateway(path, { envoy: { httpFilters: [] } })
    const { proxy, provider } = gateway
    await expect(drain(provider, TARGET, POLICY)).rejects.toThrow(/no health check filter/)
    expect(await proxy.get('/ready')).toBe('LIVE\n')
  })

  test('paths that allow_paths lacks are named, and nothing is changed', async () => {
    const allowPaths = ['/server_info', '/stats', '/config_dump', '/healthcheck/fail', '/listeners']
    await using gateway = await startGateway(path, { envoy: { allowPaths } })
    const { proxy, provider } = gateway
    await expect(drain(provider, TARGET, POLICY)).rejects.toThrow(
      /\/healthcheck\/ok at .*must allow .*\/healthcheck\/ok/,
    )
    expect(await proxy.get('/server_info')).toContain('"LIVE"')
  })

  test('the admin address of another service is refused', async () => {
    await using gateway = await startGateway(path)
    const { proxy } = gateway
    await using wrong = envoyListener({ admin: `http://127.0.0.1:${proxy.http}` })
    await expect(drain(wrong, TARGET, POLICY)).rejects.toMatchObject({ code: 'MALFORMED_REPLY' })
    expect(await proxy.get('/ready')).toBe('LIVE\n')
  })
})
