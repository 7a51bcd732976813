import { once } from 'node:events'
import { createServer as createH2, type ServerHttp2Stream } from 'node:http2'
import { spawn } from 'node:child_process'
import { connect, type AddressInfo, type Socket } from 'node:net'
import { describe, expect, test } from 'vitest'
import { drain, startDrain } from 'drainable'
import { envoy, fileEndpoints } from 'drainable/envoy'
import { engines } from '../../support/engines.js'
import { startEnvoy, workDir } from '../../support/envoy/proxy.js'
import { ask, openWebSocket } from '../../support/envoy/client.js'
import { setOf, writeEds } from '../../support/envoy/sets.js'
import { delay, until } from '../../support/wait.js'
import { cookieOf, SESSIONS } from '../../support/envoy/sessions.js'
import { fileStage, look, workOf } from '../../support/envoy/stage.js'
import { systemClock } from '../../../src/provider/clock.js'

describe.each(engines('envoy'))('work on Envoy $version', ({ path, series }) => {
  test('a stream, a WebSocket and a TCP connection keep a member busy', async () => {
    await using stage = await fileStage(path)
    const { a, proxy, lb, refOf } = stage
    const [socket, ...others] = await landOn(
      () => openWebSocket(proxy.http),
      () => a.requests.length,
    )
    const [raw, ...more] = await landOn(
      () => openWebSocket(proxy.tcp),
      () => a.requests.length,
    )
    for (const other of [...others, ...more]) other.destroy()
    while (a.held === 0) {
      void ask(proxy.http, '/hold-stream').catch(() => undefined)
      await delay(30)
    }
    const ref = refOf(a)
    await until(async () => (await workOf(lb, ref))[0] >= 3, 'three pieces of work')
    const run = startDrain(lb, ref, { timeout: '30s' })
    let over = false
    void run.done.then(() => (over = true))
    await delay(1_300)
    a.release()
    await until(async () => (await workOf(lb, ref))[0] === 2, 'the stream ended')
    socket.destroy()
    await until(async () => (await workOf(lb, ref))[0] === 1, 'the websocket ended')
    await delay(400)
    expect(over).toBe(false)
    raw.destroy()
    const report = await run.done
    expect(report.outcome).toBe('idle')
    expect(report.members[0]?.verifiedIdle).toBe(true)
    await run.close()
    stage.b.release()
  })

  test('HTTP/2 streams, as gRPC has them, keep a member busy', async () => {
    const streams: ServerHttp2Stream[] = []
    const server = createH2()
    server.on('stream', (stream) => {
      streams.push(stream)
      stream.on('error', () => undefined)
      stream.respond({ ':status': 200, 'content-type': 'application/grpc' })
      stream.write('begun')
    })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    const { port } = server.address() as AddressInfo
    await using dir = await workDir()
    await using spare = await fileStage(path)
    const file = `${dir.path}/web.json`
    await writeEds(file, [setOf([port, spare.a.port])])
    await using proxy = await startEnvoy({ path, eds: { file }, http2: true })
    await using lb = envoy({
      endpoints: fileEndpoints({ cluster: 'web', path: file }),
      admin: [proxy.admin],
    })
    while (streams.length === 0) {
      void ask(proxy.http, '/hold').catch(() => undefined)
      await delay(30)
    }
    const ref = { pool: 'web', member: `127.0.0.1:${port}` }
    const begun = performance.now()
    setTimeout(() => streams.forEach((stream) => stream.end()), 1_500)
    const report = await drain(lb, ref, { timeout: '20s' })
    expect(report.outcome).toBe('idle')
    expect(performance.now() - begun).toBeGreaterThan(1_400)
    server.close()
  })

  test('requests that wait for a connection are counted, and served', async () => {
    const limit = { thresholds: [{ max_connections: 1, max_pending_requests: 100 }] }
    await using stage = await fileStage(path, { envoy: { cluster: { circuit_breakers: limit } } })
    const { a, b, proxy, lb, refOf } = stage
    const asked: Promise<unknown>[] = []
    while (a.held === 0 || b.held === 0) {
      asked.push(ask(proxy.http, '/hold'))
      await delay(30)
    }
    const ref = refOf(a)
    // Each of the two worker threads has a connection of its own: which of them gets how many is
    // chance. A request that waits for its connection to open is queued for that moment, too; so
    // one of three is queued behind another request.
    await until(async () => {
      if (asked.length < 40) asked.push(ask(proxy.http, '/hold'))
      return (await workOf(lb, ref))[1] > 2
    }, 'queued requests')
    const run = drain(lb, ref, { timeout: '20s' })
    await delay(1_300)
    const before = a.requests.length
    let last = 0
    while ((await workOf(lb, ref)).some((count) => count > 0)) {
      a.release()
      last = performance.now()
      await delay(50)
    }
    expect(a.requests.length).toBeGreaterThan(before)
    const report = await run
    expect(report.outcome).toBe('idle')
    expect(performance.now() - last).toBeGreaterThan(500)
    while (b.held > 0) {
      b.release()
      await delay(30)
    }
    await Promise.all(asked)
  })

  test('a hanging connect keeps a member busy', async () => {
    await using hanging = await startHanging()
    await using stage = await fileStage(path, { extra: [hanging.port] })
    const { proxy, lb } = stage
    const ref = { pool: 'web', member: `127.0.0.1:${hanging.port}` }
    const asked = Array.from({ length: 12 }, () => ask(proxy.http))
    await until(async () => (await workOf(lb, ref))[1] > 0, 'a queued request')
    const begun = performance.now()
    const report = await drain(lb, ref, { timeout: '20s' })
    expect(report.outcome).toBe('idle')
    // connect_timeout is 2 s: idle before it would have been a lie.
    expect(performance.now() - begun).toBeGreaterThan(1_600)
    const statuses = (await Promise.all(asked)).map(({ status }) => status)
    expect(statuses).toContain(503)
  })

  test('sticky sessions that may come back keep a member from idle', async () => {
    const cluster = {
      common_lb_config: {
        override_host_status: { statuses: ['UNKNOWN', 'HEALTHY', 'DEGRADED', 'DRAINING'] },
      },
    }
    await using stage = await fileStage(path, { envoy: { cluster, httpFilters: [SESSIONS] } })
    const { a, proxy, lb, refOf } = stage
    const cookie = await cookieOf(proxy.http, a.port)
    const run = startDrain(lb, refOf(a), { timeout: '30s' })
    let over = false
    void run.done.then(() => (over = true))
    for (let i = 0; i < 6; i++) {
      await delay(300)
      expect((await ask(proxy.http, '/', { headers: { cookie } })).port).toBe(a.port)
    }
    const last = performance.now()
    expect(over).toBe(false)
    expect((await look(lb, refOf(a))).hints?.join()).toContain('sticky')
    const report = await run.done
    expect(report.members[0]).toMatchObject({ outcome: 'idle', verifiedIdle: false })
    expect(performance.now() - last).toBeGreaterThan(800)
    await run.close()
  })

  test(`is Envoy ${series} in fact`, async () => {
    await using stage = await fileStage(path)
    const clock = systemClock
    const info = await stage.lb.describe({ signal: AbortSignal.timeout(5_000), clock })
    expect(info.version.startsWith(series)).toBe(true)
    expect(info.capabilities.blind).toBe(0)
  })
})

/** Opens connections until one lands where it is counted; it comes first. */
async function landOn(
  open: () => Promise<Socket>,
  count: () => number,
): Promise<[Socket, ...Socket[]]> {
  const others: Socket[] = []
  for (;;) {
    const before = count()
    const socket = await open()
    if (count() > before) return [socket, ...others]
    others.push(socket)
  }
}

/** A server that accepts nothing, with its backlog full: a connect to it hangs. */
async function startHanging(): Promise<AsyncDisposable & { port: number }> {
  const code =
    "const s=require('net').createServer();s.listen({port:0,host:'127.0.0.1',backlog:1},()=>{console.log(s.address().port)})"
  const child = spawn(process.execPath, ['-e', code], { stdio: ['ignore', 'pipe', 'ignore'] })
  const [line] = (await once(child.stdout, 'data')) as [Buffer]
  const port = Number(line.toString())
  child.kill('SIGSTOP')
  const fillers = Array.from({ length: 6 }, () => {
    const socket = connect(port, '127.0.0.1')
    socket.on('error', () => undefined)
    return socket
  })
  await delay(100)
  return {
    port,
    [Symbol.asyncDispose]: async () => {
      for (const socket of fillers) socket.destroy()
      child.kill('SIGKILL')
      await once(child, 'exit')
    },
  }
}
