import { describe, expect, test } from 'vitest'
import { drain, startDrain } from 'drainable'
import { envoy, fileEndpoints, restEndpoints } from 'drainable/envoy'
import { grpcEndpoints } from 'drainable/envoy/grpc'
import { engines } from '../../support/engines.js'
import { startEnvoy, type RunningEnvoy } from '../../support/envoy/proxy.js'
import { startBackend } from '../../support/envoy/backend.js'
import { ask, openWebSocket } from '../../support/envoy/client.js'
import { setOf } from '../../support/envoy/sets.js'
import { delay, until } from '../../support/wait.js'
import { fileStage, look } from '../../support/envoy/stage.js'
import { systemClock } from '../../../src/provider/clock.js'

const HOT = { parentShutdown: 60, bootstrap: { stats_flush_interval: '0.3s' } }

describe.concurrent.each(engines('envoy'))('a hot restart of Envoy $version', ({ path }) => {
  test('a request of the old process keeps a member busy', async () => {
    await using stage = await fileStage(path, { envoy: HOT })
    const { a, b, proxy, lb, refOf, file } = stage
    await look(lb, refOf(a))
    let asked = 0
    while (a.held === 0) {
      void ask(proxy.http, '/hold').catch(() => undefined)
      asked += 1
      await delay(20)
    }
    // One that comes to b later would keep the old process busy for its cluster.
    await until(() => a.requests.length + b.requests.length >= asked, 'all requests')
    b.release()
    await proxy.hotRestart()
    await using fresh = envoy({
      endpoints: fileEndpoints({ cluster: 'web', path: file }),
      admin: [proxy.admin],
    })
    const runs = [lb, fresh].map((one) => startDrain(one, refOf(a), { timeout: '40s' }))
    const over: unknown[] = []
    for (const run of runs) void run.done.then((report) => over.push(report))
    await delay(4_000)
    expect(a.held).toBeGreaterThan(0)
    expect(over).toEqual([])
    const scopes = runs[1]?.why().map(({ scope }) => scope)
    expect(scopes).toContain(`${proxy.admin} before its hot restart`)
    a.release()
    for (const run of runs) {
      const report = await run.done
      expect(report.members[0]).toMatchObject({ outcome: 'idle', verifiedIdle: true, lost: [] })
      await run.close()
    }
  })

  test('a WebSocket cut by the end of the old process is lost, not idle', async () => {
    await using stage = await fileStage(path, { envoy: { ...HOT, parentShutdown: 6 } })
    const { a, proxy, lb, refOf } = stage
    const sockets = [await openWebSocket(proxy.http)]
    while (a.requests.length === 0) sockets.push(await openWebSocket(proxy.http))
    await proxy.hotRestart()
    const closed = Promise.all(
      sockets.map((socket) => new Promise((end) => socket.once('close', end))),
    )
    const run = startDrain(lb, refOf(a), { timeout: '40s' })
    const first = await Promise.race([run.done, closed.then(() => 'cut')])
    expect(first).toBe('cut')
    const report = await run.done
    expect(report.members[0]).toMatchObject({ outcome: 'idle', verifiedIdle: false })
    expect(report.members[0]?.lost.length).toBeGreaterThan(0)
    await run.close()
  })
})

/** Whether its statistics were flushed when it had been up for so many seconds. */
async function tellsUptime(proxy: RunningEnvoy, seconds: number): Promise<boolean> {
  const text = await proxy.get('/stats?filter=^server.uptime$')
  return Number(text.split(': ')[1]) >= seconds
}

describe.concurrent.each(engines('envoy'))(
  'figures of a process that Envoy $version replaced',
  ({ path }) => {
    test('prove nothing from before it closed its listeners', async () => {
      // They are added when the next process is up, before the old one is told.
      await using stage = await fileStage(path, { envoy: { parentShutdown: 60 } })
      const { a, proxy, lb, refOf } = stage
      await until(() => tellsUptime(proxy, 3), 'a flush', 30_000)
      await proxy.hotRestart()
      const { scopes } = await look(lb, refOf(a))
      expect(scopes).toMatchObject([
        { scope: proxy.admin },
        { scope: `${proxy.admin} before its hot restart`, open: true },
      ])
      const report = await drain(lb, refOf(a), { timeout: '40s' })
      expect(report.members[0]).toMatchObject({ outcome: 'idle', verifiedIdle: true, lost: [] })
    })

    test('hold those of the one before it too, which was cut', async () => {
      await using stage = await fileStage(path, { envoy: { ...HOT, parentShutdown: 10 } })
      const { a, b, proxy, lb, refOf } = stage
      const first = [await openWebSocket(proxy.http)]
      while (a.requests.length === 0) first.push(await openWebSocket(proxy.http))
      await until(() => tellsUptime(proxy, 1), 'a flush')
      const cut = Promise.all(
        first.map((socket) => new Promise((end) => socket.once('close', end))),
      )
      await proxy.hotRestart()
      const run = startDrain(lb, refOf(a), { timeout: '60s' })
      const texts = () => run.why().map(({ text }) => text)
      await until(
        () => texts().some((text) => text.includes(`has ${first.length} connections`)),
        'them',
      )
      await proxy.hotRestart()
      await cut
      expect(a.tunnels + b.tunnels).toBe(0)
      const words = `has up to ${first.length} connections: what epoch 0 had when it was ended`
      await until(() => texts().some((text) => text.includes(words)), 'both')
      const [member] = (await run.done).members
      expect(member).toMatchObject({ outcome: 'idle', verifiedIdle: false })
      expect(member?.lost.length).toBeGreaterThan(0)
      await run.close()
    })
  },
)

const SINKS = [
  { by: 'gRPC', serve: grpcEndpoints, eds: (port: number) => ({ grpc: port }) },
  { by: 'REST', serve: restEndpoints, eds: (port: number) => ({ rest: port }) },
]
const served = engines('envoy').flatMap((engine) => SINKS.map((sink) => ({ ...engine, ...sink })))

describe.each(served)('by $by on Envoy $version', ({ path, serve, eds }) => {
  test('a hot restart leaves no stale stream that a drain waits for', async () => {
    await using a = await startBackend()
    await using b = await startBackend()
    const sink = serve({ port: 0, initial: [setOf([a.port, b.port])] })
    const admin: string[] = []
    await using lb = envoy({ endpoints: sink, admin: () => Promise.resolve(admin) })
    const { port } = await until(() => sink.address, 'a listening sink')
    await using proxy = await startEnvoy({ path, eds: eds(port), ...HOT, parentShutdown: 4 })
    admin.push(proxy.admin)
    const ref = { pool: 'web', member: a.member }
    await look(lb, ref)
    await proxy.hotRestart()
    const report = await drain(lb, ref, { timeout: '30s' })
    expect(report.members[0]).toMatchObject({ outcome: 'idle', verifiedIdle: true })
    await until(async () => {
      await look(lb, ref)
      return sink.subscribers?.streams('envoy-1') === 1
    }, 'one stream')
    const other = { pool: 'web', member: b.member }
    const next = await lb.apply([{ kind: 'restore', ref, expect: 'drain', to: 'ready' }], {
      signal: AbortSignal.timeout(5_000),
      clock: systemClock,
    })
    expect(next[0]?.status).toBe('applied')
    expect((await drain(lb, other, { timeout: '30s' })).outcome).toBe('idle')
  })

  test('a restart leaves nothing behind that a drain waits for', async () => {
    await using a = await startBackend()
    await using b = await startBackend()
    const sink = serve({ port: 0, initial: [setOf([a.port, b.port])] })
    const admin: string[] = []
    await using lb = envoy({ endpoints: sink, admin: () => Promise.resolve(admin) })
    const { port } = await until(() => sink.address, 'a listening sink')
    await using proxy = await startEnvoy({ path, eds: eds(port) })
    admin.push(proxy.admin)
    const ref = { pool: 'web', member: a.member }
    await look(lb, ref)
    await proxy.restart()
    const report = await drain(lb, ref, { timeout: '25s' })
    expect(report.members[0]).toMatchObject({ outcome: 'idle', verifiedIdle: true })
    expect(sink.subscribers?.streams('envoy-1')).toBe(1)
  })

  test('of two proxies with one node.id the unlisted one is unread', async () => {
    await using a = await startBackend()
    await using b = await startBackend()
    const sink = serve({ port: 0, initial: [setOf([a.port, b.port])] })
    const admin: string[] = []
    await using lb = envoy({ endpoints: sink, admin: () => Promise.resolve(admin) })
    const { port } = await until(() => sink.address, 'a listening sink')
    await using one = await startEnvoy({ path, eds: eds(port), id: 'copied' })
    await using two = await startEnvoy({ path, eds: eds(port), id: 'copied' })
    admin.push(one.admin)
    const ref = { pool: 'web', member: a.member }
    while (a.held === 0) {
      void ask(two.http, '/hold').catch(() => undefined)
      await delay(20)
    }
    const run = startDrain(lb, ref, { timeout: '30s' })
    let over = false
    void run.done.then(() => (over = true))
    await until(() => run.why().some(({ scope }) => scope === 'copied#2'), 'the unread proxy')
    await delay(1_500)
    expect(over).toBe(false)
    admin.push(two.admin)
    a.release()
    const report = await run.done
    expect(report.members[0]).toMatchObject({ outcome: 'idle', verifiedIdle: true })
    await run.close()
    b.release()
  })
})
