import { describe, expect, test } from 'vitest'
import { drain, isDrainableError } from 'drainable'
import { envoy, fileEndpoints } from 'drainable/envoy'
import { engines } from '../../support/engines.js'
import { startBackend } from '../../support/envoy/backend.js'
import { ask } from '../../support/envoy/client.js'
import { writeEds } from '../../support/envoy/sets.js'
import { fileStage, look } from '../../support/envoy/stage.js'
import { until } from '../../support/wait.js'
import { systemClock } from '../../../src/provider/clock.js'

const PAUSE = '0.2s'
const CHECKED = {
  // An endpoint with another check is another host: the first one is not to linger.
  ignore_health_on_host_removal: true,
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

/** Three endpoints whose active checks go to servers of their own: two of these end. */
async function failingStage(path: string) {
  const stage = await fileStage(path, { servers: 3, envoy: { cluster: CHECKED } })
  const checks = await Promise.all(stage.backends.map(() => startBackend()))
  const { proxy, file, backends } = stage
  const lb_endpoints = backends.map(({ port }, i) => ({
    endpoint: {
      address: { socket_address: { address: '127.0.0.1', port_value: port } },
      health_check_config: { port_value: checks[i]?.port },
    },
  }))
  await writeEds(file, [{ cluster_name: 'web', endpoints: [{ lb_endpoints }] }], '2')
  const gauge = async (name: string): Promise<number> =>
    Number((await proxy.get(`/stats?filter=cluster.web.membership_${name}$`)).split(': ')[1])
  const rebuilt = async () =>
    (await proxy.get('/stats?filter=cluster.web.version_text')).includes('"2"')
  await until(rebuilt, 'the set')
  await until(async () => (await gauge('healthy')) === 3, 'three healthy')
  for (const check of checks.slice(1)) await check[Symbol.asyncDispose]()
  await until(async () => (await gauge('healthy')) === 1, 'one healthy')
  return {
    ...stage,
    gauge,
    [Symbol.asyncDispose]: async () => {
      await stage[Symbol.asyncDispose]()
      for (const check of checks) await check[Symbol.asyncDispose]()
    },
  }
}

describe.each(engines('envoy'))('a failing active check on Envoy $version', ({ path }) => {
  test('a drain of its host is refused in panic, because Envoy counts it', async () => {
    await using stage = await failingStage(path)
    const { b, lb, refOf } = stage
    const error: unknown = await drain(lb, refOf(b), { timeout: '10s' }).catch((e: unknown) => e)
    expect(isDrainableError(error, 'REJECTED') && error.message).toContain('1 of 3 endpoints')
  })

  test('its drained host still gets requests, and is not in force', async () => {
    await using stage = await failingStage(path)
    const { b, proxy, file, refOf, gauge } = stage
    await using lb = envoy({
      endpoints: fileEndpoints({ cluster: 'web', path: file }),
      admin: [proxy.admin],
      onPanic: 'allow',
    })
    const signal = AbortSignal.timeout(10_000)
    await lb.apply([{ kind: 'hold', ref: refOf(b), to: 'drain' }], { signal, clock: systemClock })
    const scope = async () => (await look(lb, refOf(b))).scopes[0]
    await until(async () => (await scope())?.note?.includes('counted as before'), 'the panic')
    expect(await scope()).toMatchObject({ inForce: false })
    expect(await gauge('excluded')).toBe(0)
    const seen = new Set<number>()
    for (let i = 0; i < 30; i++) seen.add((await ask(proxy.http)).port)
    expect(seen).toContain(b.port)
  })
})
