import { readFile } from 'node:fs/promises'
import { describe, expect, test } from 'vitest'
import { drain } from 'drainable'
import { engines } from '../../support/engines.js'
import { startBackend } from '../../support/envoy/backend.js'
import { ask } from '../../support/envoy/client.js'
import { cookieOf, SESSIONS } from '../../support/envoy/sessions.js'
import { fileStage } from '../../support/envoy/stage.js'
import { until } from '../../support/wait.js'

const PAUSE = '0.2s'
const CHECKS = {
  health_checks: [
    {
      tcp_health_check: {},
      timeout: '0.5s',
      interval: PAUSE,
      no_traffic_interval: PAUSE,
      unhealthy_threshold: 1,
      healthy_threshold: 1,
    },
  ],
}
const OUTLIERS = { outlier_detection: { consecutive_5xx: 5 } }

const listing = (...statuses: string[]) => ({
  common_lb_config: { override_host_status: { statuses } },
})

/** Two endpoints and a client with a cookie of the first; active checks of that go to a server of their own. */
async function sessionStage(path: string, cluster: object) {
  const checked = await startBackend()
  const stage = await fileStage(path, {
    envoy: { cluster: { ...cluster }, httpFilters: [SESSIONS] },
    set: (ports) => ({
      cluster_name: 'web',
      endpoints: [
        {
          lb_endpoints: ports.map((port, i) => ({
            endpoint: {
              address: { socket_address: { address: '127.0.0.1', port_value: port } },
              ...(i === 0 ? { health_check_config: { port_value: checked.port } } : {}),
            },
          })),
        },
      ],
    }),
  })
  const { a, proxy } = stage
  const cookie = await cookieOf(proxy.http, a.port)
  return {
    ...stage,
    /** Its check fails from now on, as that of a server that stops. */
    fails: async () => {
      await checked[Symbol.asyncDispose]()
      await until(async () => (await proxy.get('/clusters')).includes('/failed_active_hc'), 'that')
    },
    visit: async () => (await ask(proxy.http, '/', { headers: { cookie } })).port === a.port,
    [Symbol.asyncDispose]: async () => {
      await stage[Symbol.asyncDispose]()
      await checked[Symbol.asyncDispose]()
    },
  }
}

describe.each(engines('envoy'))('sessions of unhealthy hosts, Envoy $version', ({ path }) => {
  test('come back to a drained member whose check fails: idle is not verified', async () => {
    await using it = await sessionStage(path, { ...CHECKS, ...listing('HEALTHY', 'UNHEALTHY') })
    const [member] = (await drain(it.lb, it.refOf(it.a), { timeout: '20s' })).members
    expect(await it.visit()).toBe(false)
    await it.fails()
    expect(await it.visit()).toBe(true)
    expect(member).toMatchObject({ outcome: 'idle', verifiedIdle: false })
    expect(member?.why.map(({ text }) => text).join()).toContain('override_host_status')
  })

  test.each([
    ['outlier detection', { ...OUTLIERS, ...listing('HEALTHY', 'UNHEALTHY') }, false],
    ['nothing that finds it so', listing('HEALTHY', 'UNHEALTHY'), true],
    ['TIMEOUT alone in the list', { ...CHECKS, ...listing('HEALTHY', 'TIMEOUT') }, true],
    ['neither in the list', { ...CHECKS, ...listing('HEALTHY') }, true],
  ])('with %s idle is verified, or not', async (_, cluster, verifiedIdle) => {
    await using it = await sessionStage(path, cluster)
    const report = await drain(it.lb, it.refOf(it.a), { timeout: '20s' })
    expect(report.members[0]).toMatchObject({ outcome: 'idle', verifiedIdle })
    if (!verifiedIdle || !('health_checks' in cluster)) return
    await it.fails()
    for (let i = 0; i < 6; i++) expect(await it.visit()).toBe(false)
  })

  test('a removal sets no member UNHEALTHY', async () => {
    await using it = await sessionStage(path, { ...CHECKS, ...listing('HEALTHY', 'UNHEALTHY') })
    const sets: string[] = []
    let isOver = false
    const removed = drain(it.lb, it.refOf(it.a), { timeout: '20s', until: 'removed' })
    const watching = (async () => {
      const over = (): boolean => isOver
      while (!over()) sets.push(await readFile(it.file, 'utf8').catch(() => ''))
    })()
    await removed
    isOver = true
    await watching
    expect(sets.some((text) => text.includes('DRAINING'))).toBe(true)
    expect(sets.filter((text) => text.includes('UNHEALTHY'))).toEqual([])
    expect(await it.visit()).toBe(false)
  })
})
