import type { Socket } from 'node:net'
import { describe, expect, test } from 'vitest'
import { startDrain } from 'drainable'
import { envoy, observedEndpoints } from 'drainable/envoy'
import type { DrainableProvider, MemberRef } from 'drainable/provider'
import { engines } from '../../support/engines.js'
import { openWebSocket } from '../../support/envoy/client.js'
import { clusterStage, type ClusterStage } from '../../support/envoy/clusters.js'
import { delay, until } from '../../support/wait.js'
import { systemClock } from '../../../src/provider/clock.js'

const DEFERRED = { deferred_stat_options: { enable_deferred_creation_stats: true } }
const hiding = (pattern: object) => ({
  stats_config: { stats_matcher: { exclusion_list: { patterns: [pattern] } } },
})
const HIDDEN = hiding({ prefix: 'cluster.dyn.' })
const HALF_HIDDEN = hiding({ safe_regex: { regex: 'cluster\\..*upstream_rq.*' } })
const IDLE = { outcome: 'idle', verifiedIdle: true }

async function scopesOf(lb: DrainableProvider, ref: MemberRef) {
  const ctx = { signal: AbortSignal.timeout(10_000), clock: systemClock }
  return (await lb.observe([ref], ctx)).readings[0]?.scopes
}

const isSaid = (run: ReturnType<typeof startDrain>, words: string) => () =>
  run.why().some(({ text }) => text.includes(words))

describe.each(engines('envoy'))('a proxy without the cluster, Envoy $version', ({ path }) => {
  test.concurrent.each([
    [
      'a request',
      async (it: ClusterStage) => {
        await it.hold(it.proxies[1]!)
        return () => it.a.release()
      },
    ],
    [
      'a WebSocket',
      async (it: ClusterStage) => {
        const sockets: Socket[] = []
        while (it.a.tunnels === 0) sockets.push(await openWebSocket(it.proxies[1]!.http))
        return () => {
          for (const socket of sockets) socket.destroy()
        }
      },
    ],
  ] as const)('%s of a removed cluster keeps its member busy', async (_, begin) => {
    await using it = await clusterStage(path, [{}, {}])
    const end = await begin(it)
    await it.proxies[1]?.remove()
    await using fresh = it.provide()
    await using run = startDrain(fresh, it.ref, { timeout: '60s' })
    await until(isSaid(run, 'on no listed endpoint'), 'the work of the removed cluster')
    await delay(1_500)
    expect(it.a.held + it.a.tunnels).toBeGreaterThan(0)
    expect(run.report().members[0]?.phase).toBe('draining')
    end()
    expect((await run.done).members[0]).toMatchObject(IDLE)
  })

  test.concurrent.each([
    ['shown', {}],
    ['deferred', DEFERRED],
    ['deferred and in part hidden', { ...DEFERRED, ...HALF_HIDDEN }],
  ])('one that never had it delays no drain: statistics %s', async (_, bootstrap) => {
    await using it = await clusterStage(path, [{}, { bootstrap, without: true }])
    await using lb = it.provide()
    await using run = startDrain(lb, it.ref, { timeout: '20s' })
    const [member] = (await run.done).members
    expect(member).toMatchObject(IDLE)
    expect(member?.proof?.samples[0]?.scopes.length).toBe(2)
  })

  test.concurrent('one whose statistics are hidden is unread', async () => {
    await using it = await clusterStage(path, [{}, { bootstrap: HIDDEN }])
    await it.hold(it.proxies[1]!)
    await it.proxies[1]?.remove()
    await using lb = it.provide()
    await using run = startDrain(lb, it.ref, { timeout: '60s' })
    await until(isSaid(run, 'does not tell cluster.dyn.upstream_rq_active'), 'the hidden gauge')
    expect(run.report().members[0]?.phase).toBe('draining')
    it.a.release()
  })

  test.concurrent(
    'one that hides the gauge alone is unread until the cluster is gone',
    async () => {
      await using it = await clusterStage(path, [
        {},
        { bootstrap: { ...DEFERRED, ...HALF_HIDDEN } },
      ])
      await it.hold(it.proxies[1]!)
      await it.proxies[1]?.remove()
      await using lb = it.provide()
      await using run = startDrain(lb, it.ref, { timeout: '60s' })
      await until(isSaid(run, 'does not tell cluster.dyn.upstream_rq_active'), 'the hidden gauge')
      it.a.release()
      expect((await run.done).members[0]).toMatchObject(IDLE)
    },
  )

  test.concurrent("a cluster's own matcher wins over that of the proxy", async () => {
    const type = 'type.googleapis.com/envoy.config.metrics.v3.StatsMatcher'
    const matcher = { '@type': type, reject_all: false }
    const cluster = { metadata: { typed_filter_metadata: { 'envoy.stats_matcher': matcher } } }
    await using it = await clusterStage(path, [{ cluster }, { cluster, bootstrap: HIDDEN }])
    await it.hold(it.proxies[1]!)
    await it.proxies[1]?.remove()
    await using lb = it.provide()
    await using run = startDrain(lb, it.ref, { timeout: '60s' })
    await until(isSaid(run, 'on no listed endpoint'), 'the work of the removed cluster')
    it.a.release()
    expect((await run.done).members[0]).toMatchObject(IDLE)
  })

  test.concurrent('a drain goes on when its only proxy loses the cluster', async () => {
    await using it = await clusterStage(path, [{}])
    await it.hold(it.proxies[0]!)
    await using lb = it.provide()
    await using run = startDrain(lb, it.ref, { timeout: '60s' })
    await until(() => run.report().members[0]?.phase === 'draining', 'a drain')
    await it.proxies[0]?.remove()
    await until(isSaid(run, 'on no listed endpoint'), 'the work of the removed cluster')
    it.a.release()
    expect((await run.done).members[0]).toMatchObject(IDLE)
  })

  test.concurrent('a verdict stands when a proxy loses the cluster after it', async () => {
    await using it = await clusterStage(path, [{}, {}])
    await using lb = it.provide()
    let isLost = false
    await using run = startDrain(lb, it.ref, { timeout: '60s' })
    run.on('idle-lost', () => (isLost = true))
    expect((await run.done).members[0]).toMatchObject(IDLE)
    await it.proxies[1]?.remove()
    const looks = run.report().members[0]?.lastReading
    await until(() => run.report().members[0]?.lastReading !== looks, 'another look')
    await delay(500)
    expect(isLost).toBe(false)
  })
})

describe.each(engines('envoy'))('deferred statistics of Envoy $version', ({ path }) => {
  const removed = async (it: ClusterStage, lb: DrainableProvider) => {
    await until(async () => (await scopesOf(lb, it.ref))?.length === 1, 'a reading')
    await it.endpoints([it.b.port])
    const rows = () => it.proxies[0]!.get('/clusters')
    await until(async () => !(await rows()).includes(it.a.member), 'its end')
    return await scopesOf(lb, it.ref)
  }

  test.concurrent.each([
    ['deferred', DEFERRED],
    ['deferred and in part hidden', { ...DEFERRED, ...HALF_HIDDEN }],
  ])('a removed endpoint that never had a request holds nothing: %s', async (_, bootstrap) => {
    await using it = await clusterStage(path, [{ bootstrap }])
    await using lb = envoy({
      endpoints: observedEndpoints(),
      admin: it.proxies.map(({ admin }) => admin),
    })
    expect(await removed(it, lb)).toMatchObject([{ state: 'read', active: 0 }])
  })

  test.concurrent('a removed endpoint is unread once hidden statistics have begun', async () => {
    await using it = await clusterStage(path, [{ bootstrap: { ...DEFERRED, ...HALF_HIDDEN } }])
    await using lb = envoy({
      endpoints: observedEndpoints(),
      admin: it.proxies.map(({ admin }) => admin),
    })
    await it.hold(it.proxies[0]!)
    expect(await removed(it, lb)).toMatchObject([{ state: 'unread' }])
    it.a.release()
  })
})
