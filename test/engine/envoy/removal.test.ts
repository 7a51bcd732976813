import { describe, expect, test } from 'vitest'
import { readFile } from 'node:fs/promises'
import { drain, isDrainableError, startDrain } from 'drainable'
import { engines } from '../../support/engines.js'
import { ask, startTraffic } from '../../support/envoy/client.js'
import { delay, until } from '../../support/wait.js'
import { fileStage, look, workOf } from '../../support/envoy/stage.js'
import { systemClock } from '../../../src/provider/clock.js'

const checks = [
  {
    timeout: '1s',
    interval: '1s',
    unhealthy_threshold: 3,
    healthy_threshold: 1,
    tcp_health_check: {},
  },
]

describe.each(engines('envoy'))('removal and panic on Envoy $version', ({ path }) => {
  test.concurrent.each([
    { name: 'no active checks', cluster: {} },
    { name: 'active checks', cluster: { health_checks: checks } },
    {
      name: 'active checks and ignore_health_on_host_removal',
      cluster: { health_checks: checks, ignore_health_on_host_removal: true },
    },
    {
      name: 'close_connections_on_host_set_change',
      cluster: { common_lb_config: { close_connections_on_host_set_change: true } },
    },
  ])('an endpoint is gone at once, and no request fails: $name', async ({ cluster }) => {
    await using stage = await fileStage(path, { servers: 3, envoy: { cluster } })
    const { a, proxy, lb, refOf } = stage
    await using traffic = startTraffic(proxy.http)
    await until(() => a.requests.length > 5, 'traffic')
    const report = await drain(lb, refOf(a), { timeout: '20s', until: 'removed' })
    const removedAt = performance.now()
    expect(report.outcome).toBe('removed')
    expect(report.members[0]?.verifiedIdle).toBe(true)
    await until(
      async () => !(await proxy.get('/clusters')).includes(a.member),
      'its row to go',
      1_000,
    )
    await delay(200)
    expect(a.requests.filter((at) => at > removedAt - 900)).toEqual([])
    expect(traffic.errors).toEqual([])
    expect(traffic.sent).toBeGreaterThan(50)
  })

  test.concurrent('the last healthy endpoint is not drained, and the reason is told', async () => {
    await using stage = await fileStage(path)
    const { a, b, lb, refOf } = stage
    await drain(lb, refOf(a), { timeout: '10s' })
    const error: unknown = await drain(lb, refOf(b), { timeout: '10s', keepReady: 0 }).catch(
      (e: unknown) => e,
    )
    expect(isDrainableError(error, 'REJECTED')).toBe(true)
    expect(String(error)).toContain('healthy_panic_threshold')
    expect((await look(lb, refOf(b))).own).toBe('ready')
  })

  test.concurrent('in an allowed or later panic no member is idle', async () => {
    await using stage = await fileStage(path, { provider: { onPanic: 'allow' } })
    const { a, b, proxy, lb, refOf } = stage
    await using traffic = startTraffic(proxy.http)
    const error: unknown = await drain(lb, [refOf(a), refOf(b)], {
      timeout: '4s',
      keepReady: 0,
    }).catch((e: unknown) => e)
    expect(isDrainableError(error, 'DRAIN_TIMEOUT')).toBe(true)
    const { scopes } = await look(lb, refOf(a))
    expect(scopes[0]).toMatchObject({ inForce: false })
    expect(scopes[0]?.note).toContain('panic')
    expect(traffic.errors).toEqual([])
  })

  test.concurrent('without a panic threshold all are drained, and Envoy answers 503', async () => {
    const cluster = { common_lb_config: { healthy_panic_threshold: { value: 0 } } }
    await using stage = await fileStage(path, { envoy: { cluster } })
    const { a, b, proxy, lb, refOf } = stage
    const report = await drain(lb, [refOf(a), refOf(b)], { timeout: '10s', keepReady: 0 })
    expect(report.outcome).toBe('idle')
    expect((await ask(proxy.http)).status).toBe(503)
  })

  test.concurrent(
    'an endpoint that vanishes under a request is gone, its work counted',
    async () => {
      await using stage = await fileStage(path, { servers: 3 })
      const { a, proxy, lb, refOf } = stage
      while (a.held === 0) {
        void ask(proxy.http, '/hold').catch(() => undefined)
        await delay(30)
      }
      const ref = refOf(a)
      await until(async () => (await workOf(lb, ref))[0] > 0, 'work')
      const clock = systemClock
      const signal = AbortSignal.timeout(30_000)
      await lb.apply([{ kind: 'remove', ref }], { signal, clock })
      const scope = async () => {
        const { readings } = await lb.observe([ref], { signal, clock })
        expect(readings[0]).toMatchObject({ present: false })
        return readings[0]?.scopes[0]
      }
      // A worker that stood still, on a busy machine, leaves it unread until two flushes have come.
      await until(async () => (await scope())?.state === 'read', 'its work to be read', 15_000)
      expect((await scope())?.active).toBeGreaterThan(0)
      for (const backend of stage.backends) backend.release()
      await until(async () => (await scope())?.active === 0, 'the orphan to end')
    },
  )

  test.concurrent('restore puts back status and place, byte for byte', async () => {
    await using stage = await fileStage(path, { servers: 3 })
    const { b, lb, refOf } = stage
    const before = JSON.parse(await readFile(stage.file, 'utf8')) as { resources: unknown }
    const run = startDrain(lb, refOf(b), { timeout: '10s' })
    await run.done
    await run.restore()
    const after = JSON.parse(await readFile(stage.file, 'utf8')) as { resources: unknown }
    expect(JSON.stringify(after.resources)).toBe(JSON.stringify(before.resources))
  })
})
