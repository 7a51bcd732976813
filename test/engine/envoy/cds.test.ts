import { describe, expect, test } from 'vitest'
import { drain, startDrain } from 'drainable'
import { envoy, observedEndpoints } from 'drainable/envoy'
import { look } from '../../support/envoy/stage.js'
import { engines } from '../../support/engines.js'
import { startTraffic } from '../../support/envoy/client.js'
import { clusterStage } from '../../support/envoy/clusters.js'
import { delay, until } from '../../support/wait.js'
import { systemClock } from '../../../src/provider/clock.js'

const [newest] = engines('envoy').slice(-1)

describe.each(engines('envoy'))('clusters by CDS, Envoy $version', ({ path }) => {
  const stage = async () => {
    const it = await clusterStage(path, [{}])
    const [proxy] = it.proxies
    if (proxy === undefined) throw new Error('one proxy')
    return { ...it, proxy, [Symbol.asyncDispose]: () => it[Symbol.asyncDispose]() }
  }
  type Stage = Awaited<ReturnType<typeof stage>>

  test.each([
    ['is changed', (it: Stage) => it.proxy.clusters([{ name: 'dyn', connect_timeout: '3s' }])],
    [
      'is removed and comes back',
      async (it: Stage) => {
        await it.proxy.remove()
        await it.proxy.clusters([{ name: 'dyn' }])
      },
    ],
    [
      'is removed while another takes its set',
      (it: Stage) => it.proxy.clusters([{ name: 'two', connect_timeout: '3s' }]),
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
    const { a, b, proxy, ref } = it
    await using lb = it.provide()
    await it.hold(proxy)
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
    await it.hold(proxy)
    await it.endpoints([a.port, b.port], a.port)
    await until(async () => (await look(lb, ref)).own === 'drain', 'its drain')
    await proxy.clusters([])
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
      const { a, proxy, ref } = it
      await using lb = it.provide()
      await using traffic = startTraffic(proxy.http, { clients: 8, pause: 0 })
      await until(() => a.requests.length > 50, 'traffic')
      await proxy.clusters([{ name: 'dyn', connect_timeout: '3s' }])
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
