import { describe, expect, test } from 'vitest'
import { watch } from 'drainable'
import { envoy, observedEndpoints } from 'drainable/envoy'
import { engines } from '../../support/engines.js'
import { ask, startTraffic } from '../../support/envoy/client.js'
import { startBackend } from '../../support/envoy/backend.js'
import { startEnvoy, workDir } from '../../support/envoy/proxy.js'
import { setOf, writeEds } from '../../support/envoy/sets.js'
import { systemClock } from '../../../src/provider/clock.js'
import { delay, until } from '../../support/wait.js'

describe.each(engines('envoy'))('Envoy $version, removed before the first look', ({ path }) => {
  test('work left in one proxy is not hidden by the traffic of others', async () => {
    await using dir = await workDir()
    await using a = await startBackend()
    await using b = await startBackend()
    const [first, second] = [`${dir.path}/one.json`, `${dir.path}/two.json`]
    const drained = (port: number) => (port === a.port ? { health_status: 'DRAINING' } : {})
    for (const file of [first, second]) await writeEds(file, [setOf([a.port, b.port])])
    await using one = await startEnvoy({ path, eds: { file: first } })
    await using two = await startEnvoy({ path, eds: { file: second }, id: 'two' })
    const held: Promise<unknown>[] = []
    while (a.held === 0) {
      held.push(ask(one.http, '/hold').catch(() => undefined))
      await delay(20)
    }
    b.release()
    await writeEds(first, [setOf([b.port])], '2')
    await writeEds(second, [setOf([a.port, b.port], 'web', drained)], '2')
    await until(async () => !(await one.get('/clusters')).includes(a.member), 'a removed row')
    await using traffic = startTraffic(one.http, { clients: 32, pause: 0 })
    await using lb = envoy({ endpoints: observedEndpoints(), admin: [one.admin, two.admin] })
    const ref = { pool: 'web', member: a.member }
    const ctx = { signal: AbortSignal.timeout(60_000), clock: systemClock }
    const counts = async () => (await lb.observe([ref], ctx)).readings[0]?.scopes ?? []
    // Before, one look in three said 0.
    for (let i = 0; i < 20; i++) {
      const there = (await counts()).find(({ scope }) => scope === one.admin)
      expect(there?.state === 'read' ? there.active : 'unread').not.toBe(0)
    }
    expect(a.held).toBeGreaterThan(0)
    await traffic[Symbol.asyncDispose]()
    a.release()
    b.release()
    await Promise.all(held)
    await using run = watch(lb, ref, { settle: '100ms' })
    await until(() => run.report().members[0]?.phase === 'idle', 'idle')
    expect(traffic.errors).toEqual([])
  })
})
