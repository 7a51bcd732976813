import { rename, writeFile } from 'node:fs/promises'
import { describe, expect, test } from 'vitest'
import { drain, startDrain } from 'drainable'
import { envoy, fileEndpoints, observedEndpoints } from 'drainable/envoy'
import { look } from '../../support/envoy/stage.js'
import { engines } from '../../support/engines.js'
import { startBackend } from '../../support/envoy/backend.js'
import { ask, startTraffic } from '../../support/envoy/client.js'
import { startEnvoy, workDir } from '../../support/envoy/proxy.js'
import { setOf, writeEds } from '../../support/envoy/sets.js'
import { delay, until } from '../../support/wait.js'
import { systemClock } from '../../../src/provider/clock.js'

const [newest] = engines('envoy').slice(-1)

describe.each(engines('envoy'))('clusters by CDS, Envoy $version', ({ path }) => {
  async function stage() {
    const dir = await workDir()
    const a = await startBackend()
    const b = await startBackend()
    const eds = `${dir.path}/dyn.json`
    let version = 0
    const endpoints = (ports: readonly number[], drained?: number) =>
      writeEds(
        eds,
        [setOf(ports, 'dyn', (port) => (port === drained ? { health_status: 'DRAINING' } : {}))],
        String(++version),
      )
    await endpoints([a.port, b.port])
    const cds = `${dir.path}/cds.json`
    const clusters = async (list: readonly Record<string, unknown>[]) => {
      const resources = list.map((more) => ({
        '@type': 'type.googleapis.com/envoy.config.cluster.v3.Cluster',
        type: 'EDS',
        connect_timeout: '2s',
        eds_cluster_config: {
          service_name: 'dyn',
          eds_config: { resource_api_version: 'V3', path_config_source: { path: eds } },
        },
        ...more,
      }))
      await writeFile(`${cds}.tmp`, JSON.stringify({ version_info: String(++version), resources }))
      await rename(`${cds}.tmp`, cds)
    }
    await clusters([{ name: 'dyn' }])
    const other = `${dir.path}/web.json`
    await writeEds(other, [setOf([1])])
    const proxy = await startEnvoy({
      path,
      eds: { file: other },
      route: { cluster: 'dyn' },
      bootstrap: {
        dynamic_resources: {
          cds_config: { resource_api_version: 'V3', path_config_source: { path: cds } },
        },
      },
    })
    const provide = () =>
      envoy({ endpoints: fileEndpoints({ cluster: 'dyn', path: eds }), admin: [proxy.admin] })
    const lb = provide()
    return {
      a,
      b,
      proxy,
      lb,
      provide,
      clusters,
      endpoints,
      ref: { pool: 'dyn', member: a.member },
      [Symbol.asyncDispose]: async () => {
        await lb.close()
        for (const one of [proxy, a, b, dir]) await one[Symbol.asyncDispose]()
      },
    }
  }
  type Stage = Awaited<ReturnType<typeof stage>>

  test.each([
    ['is changed', (it: Stage) => it.clusters([{ name: 'dyn', connect_timeout: '3s' }])],
    [
      'is removed and comes back',
      async (it: Stage) => {
        await it.clusters([])
        await until(async () => !(await it.proxy.get('/clusters')).includes('dyn::'), 'its end')
        await it.clusters([{ name: 'dyn' }])
      },
    ],
    [
      'is removed while another takes its set',
      (it: Stage) => it.clusters([{ name: 'two', connect_timeout: '3s' }]),
    ],
    [
      'loses the endpoint, which comes back',
      async (it: Stage) => {
        await it.endpoints([it.b.port])
        await until(async () => !(await it.proxy.get('/clusters')).includes(it.a.member), 'its end')
        await it.endpoints([it.a.port, it.b.port], it.a.port)
      },
    ],
  ] as const)('a cluster that %s: earlier work keeps its member busy', async (_, change) => {
    await using it = await stage()
    const { a, b, proxy, lb, ref } = it
    await until(async () => (await ask(proxy.http)).status === 200, 'a cluster')
    while (a.held === 0) {
      void ask(proxy.http, '/hold').catch(() => undefined)
      await delay(20)
    }
    b.release()
    await look(lb, ref)
    await change(it)
    await until(async () => (await proxy.get('/clusters')).includes(a.member), 'its return')
    const run = startDrain(lb, ref, { timeout: '60s' })
    await using fresh = it.provide()
    const other = startDrain(fresh, ref, { timeout: '60s' })
    for (const one of [run, other]) {
      const isNamed = () => one.why().some(({ text }) => text.includes('on no listed endpoint'))
      await until(isNamed, 'the work that no cluster lists')
    }
    await delay(1_500)
    expect(a.held).toBeGreaterThan(0)
    expect([run, other].map((one) => one.report().members[0]?.phase)).toEqual([
      'draining',
      'draining',
    ])
    a.release()
    b.release() // one may have come after the others were let go
    for (const one of [run, other]) {
      expect((await one.done).members[0]).toMatchObject({ outcome: 'idle', verifiedIdle: true })
      await one.close()
    }
  })

  test('requests of a cluster that another control plane removed still count', async () => {
    await using it = await stage()
    const { a, b, proxy, ref } = it
    await using lb = envoy({ endpoints: observedEndpoints(), admin: [proxy.admin] })
    await until(async () => (await ask(proxy.http)).status === 200, 'a cluster')
    while (a.held === 0) {
      void ask(proxy.http, '/hold').catch(() => undefined)
      await delay(20)
    }
    b.release()
    await it.endpoints([a.port, b.port], a.port)
    await until(async () => (await look(lb, ref)).own === 'drain', 'its drain')
    await it.clusters([])
    const gone = async () => {
      const ctx = { signal: AbortSignal.timeout(10_000), clock: systemClock }
      const { readings } = await lb.observe([ref], ctx)
      return readings[0]?.present === false ? readings[0].scopes : undefined
    }
    expect(await until(gone, 'its end')).toMatchObject([{ state: 'read', active: a.held }])
    expect(a.held).toBeGreaterThan(0)
    await until(async () => {
      a.release()
      return (await gone())?.[0]?.active === 0
    }, 'the end of its requests')
  })

  test.runIf(path === newest?.path)(
    'under load a member is idle soon after its cluster was changed',
    async () => {
      await using it = await stage()
      const { a, proxy, lb, ref } = it
      await using traffic = startTraffic(proxy.http, { clients: 8, pause: 0 })
      await until(() => a.requests.length > 50, 'traffic')
      await it.clusters([{ name: 'dyn', connect_timeout: '3s' }])
      const report = await drain(lb, ref, { timeout: '60s' })
      const idleAt = performance.now()
      expect(report.members[0]).toMatchObject({ outcome: 'idle', verifiedIdle: true })
      const sent = traffic.sent
      await until(() => traffic.sent > sent + 200, 'more traffic')
      expect(a.requests.filter((at) => at > idleAt)).toEqual([])
      expect(traffic.errors).toEqual([])
    },
  )
})
