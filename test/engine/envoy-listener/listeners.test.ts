import { describe, expect, test } from 'vitest'
import { drain, startDrain } from 'drainable'
import { envoyListener } from 'drainable/envoy-listener'
import { engines } from '../../support/engines.js'
import { idleClient, startGateway, TARGET } from '../../support/envoy-gateway.js'
import { ask } from '../../support/envoy/client.js'
import { until } from '../../support/wait.js'

const POLICY = { timeout: '30s', keepReady: 0 } as const

/** Waits until nobody listens there. */
const closed = (port: number): Promise<unknown> =>
  until(
    () =>
      ask(port).then(
        () => false,
        () => true,
      ),
    'closed listeners',
  )

describe.each(engines('envoy'))('listeners of Envoy $version', ({ path }) => {
  test('once they are closed, no failed check is waited for', async () => {
    await using gateway = await startGateway(path, {
      envoy: { drainTime: 1 },
      provider: { noticed: { checks: 10_000 } },
    })
    const { provider } = gateway
    const run = startDrain(provider, TARGET, POLICY)
    await until(() => run.report().members[0]?.phase === 'draining', 'a drain')
    await provider.drainListeners()
    const [member] = (await run.done).members
    expect(member).toMatchObject({ outcome: 'idle', verifiedIdle: true })
    await run.close()
  })

  test('an Envoy without a client behind closed listeners is sealed', async () => {
    await using gateway = await startGateway(path, { envoy: { drainTime: 1 } })
    const { provider, proxy } = gateway
    const client = await idleClient(proxy.http)
    await provider.drainListeners()
    const sealed = async () => (await drain(provider, TARGET, POLICY)).members[0]?.sealed
    await closed(proxy.http)
    expect(await sealed()).toBe(false) // the client may come again
    client.destroy()
    await until(async () => (await sealed()) === true, 'a seal')
  })

  test('a health check filter is not needed behind closed listeners', async () => {
    await using gateway = await startGateway(path, { envoy: { httpFilters: [], drainTime: 1 } })
    const { provider, proxy } = gateway
    await provider.drainListeners()
    await closed(proxy.http)
    expect((await drain(provider, TARGET, POLICY)).outcome).toBe('idle')
  })

  test('skipExit asks clients to go and keeps the listeners open', async () => {
    await using gateway = await startGateway(path, { envoy: { drainTime: 1 } })
    const { provider, proxy } = gateway
    await provider.drainListeners(undefined, { skipExit: true })
    const closed = '^http.in.downstream_cx_drain_close$'
    const asked = async () => !(await proxy.get(`/stats?filter=${closed}`)).endsWith(': 0\n')
    await until(async () => (await ask(proxy.http)).status === 200 && (await asked()), 'a goodbye')
    const stopped = await proxy.get('/stats?filter=listener_manager.listener_stopped')
    expect(stopped).toContain(': 0')
  })

  test('failAfter leaves the health check good for that long', async () => {
    await using gateway = await startGateway(path)
    const { proxy } = gateway
    await using slow = envoyListener({ admin: proxy.admin, failAfter: '2s' })
    const begun = performance.now()
    const run = startDrain(slow, TARGET, POLICY)
    const failed = await until(async () => {
      const { status } = await ask(proxy.http, '/healthz')
      return status === 503 ? performance.now() - begun : undefined
    }, 'a failed check')
    expect(failed).toBeGreaterThan(1_900)
    expect((await run.done).members[0]).toMatchObject({ outcome: 'idle', verifiedIdle: true })
    await run.close()
  })
})
