import { describe, expect, test } from 'vitest'
import { drain, isDrainableError, ready, startDrain } from 'drainable'
import { envoy, restEndpoints } from 'drainable/envoy'
import { grpcEndpoints } from 'drainable/envoy/grpc'
import { engines } from '../../support/engines.js'
import { startEnvoy, type RunningEnvoy } from '../../support/envoy/proxy.js'
import { startBackend, type Backend } from '../../support/envoy/backend.js'
import { ask, startTraffic } from '../../support/envoy/client.js'
import { setOf } from '../../support/envoy/sets.js'
import { delay, until } from '../../support/wait.js'
import { fileStage, look } from '../../support/envoy/stage.js'
import { systemClock } from '../../../src/provider/clock.js'

async function fleet(path: string, count: number, options: { gone?: '1s' } = {}) {
  const a = await startBackend()
  const b = await startBackend()
  const sink = grpcEndpoints({ port: 0, initial: [setOf([a.port, b.port])] })
  let list: string[] = []
  const lb = envoy({
    endpoints: sink,
    admin: () => Promise.resolve(list),
    ...(options.gone === undefined ? {} : { onProxyGone: { after: options.gone } }),
  })
  const { port } = await until(() => sink.address, 'a listening sink')
  const proxies = await Promise.all(
    Array.from({ length: count }, (_, i) =>
      startEnvoy({ path, eds: { grpc: port, delta: i % 2 === 1 }, id: `envoy-${i + 1}` }),
    ),
  )
  list = proxies.map(({ admin }) => admin)
  const spares: Backend[] = []
  return {
    spares,
    a,
    b,
    lb,
    sink,
    proxies,
    setList: (next: readonly RunningEnvoy[]) => (list = next.map(({ admin }) => admin)),
    [Symbol.asyncDispose]: async () => {
      await lb.close()
      await Promise.all([...proxies, ...spares, a, b].map((item) => item[Symbol.asyncDispose]()))
    },
  }
}

/** One request that hangs on this server through this proxy. */
async function hold(proxy: RunningEnvoy, backend: Backend): Promise<void> {
  const before = backend.held
  while (backend.held === before) {
    void ask(proxy.http, '/hold').catch(() => undefined)
    await delay(30)
  }
}

describe.each(engines('envoy'))('a fleet of Envoy $version', ({ path }) => {
  test.concurrent('idle is said when no proxy of three has work left', async () => {
    await using it = await fleet(path, 3)
    const ref = { pool: 'web', member: it.a.member }
    await hold(it.proxies[1]!, it.a)
    const run = startDrain(it.lb, ref, { timeout: '30s' })
    const busy = () => run.why().filter(({ code }) => code === 'in-flight')
    await until(() => busy().length > 0 && run.why().length === 1, 'one thing to wait for')
    expect(run.report().outcome).not.toBe('idle')
    expect(busy().map(({ scope }) => scope)).toEqual([it.proxies[1]!.admin])
    it.a.release()
    const report = await run.done
    expect(report.outcome).toBe('idle')
    expect(report.members[0]?.proof?.samples.at(-1)?.scopes).toHaveLength(3)
    await run.close()
    it.b.release()
  })

  test.concurrent('a frozen proxy is unreadable, and the drain waits for it', async () => {
    await using it = await fleet(path, 2)
    const ref = { pool: 'web', member: it.a.member }
    it.proxies[1]!.pause()
    const run = startDrain(it.lb, ref, { timeout: '40s' })
    let over = false
    void run.done.then(() => (over = true))
    await delay(6_000)
    expect(over).toBe(false)
    expect(
      run.why().some(({ code, scope }) => code === 'unreadable' && scope === it.proxies[1]!.admin),
    ).toBe(true)
    it.proxies[1]!.resume()
    const report = await run.done
    expect(report.outcome).toBe('idle')
    await run.close()
  })

  test.concurrent('work of a dead proxy is unknown until it is dropped, then lost', async () => {
    await using it = await fleet(path, 2)
    const ref = { pool: 'web', member: it.a.member }
    await hold(it.proxies[1]!, it.a)
    const run = startDrain(it.lb, ref, { timeout: '30s' })
    let over = false
    void run.done.then(() => (over = true))
    await until(() => run.why().some(({ code }) => code === 'in-flight'), 'the work')
    await it.proxies[1]!.stop()
    await delay(1_500)
    expect(over).toBe(false)
    it.setList([it.proxies[0]!])
    const report = await run.done
    expect(report.members[0]?.lost).toMatchObject([{ scope: it.proxies[1]!.admin }])
    expect(report.members[0]?.verifiedIdle).toBe(false)
    await run.close()
    it.b.release()
  })

  test.concurrent('a proxy gone for longer than onProxyGone.after delays no drain', async () => {
    await using it = await fleet(path, 2, { gone: '1s' })
    const ref = { pool: 'web', member: it.a.member }
    await look(it.lb, ref)
    await it.proxies[1]!.stop()
    const report = await drain(it.lb, ref, { timeout: '20s' })
    expect(report.outcome).toBe('idle')
  })

  test.concurrent('a restarted proxy is another process and is drained too', async () => {
    await using it = await fleet(path, 2)
    const ref = { pool: 'web', member: it.a.member }
    await hold(it.proxies[0]!, it.a)
    const run = startDrain(it.lb, ref, { timeout: '30s' })
    await delay(1_200)
    const before = (await look(it.lb, ref)).scopes.map(({ incarnation }) => incarnation)
    await it.proxies[1]!.restart()
    await until(async () => {
      const { scopes } = await look(it.lb, ref).catch(() => ({ scopes: [] }))
      return scopes.length === 2 && scopes[1]?.incarnation !== before[1] && scopes[1]?.inForce
    }, 'the new process in force')
    const sent = it.a.requests.length
    for (let i = 0; i < 20; i++) await ask(it.proxies[1]!.http)
    expect(it.a.requests.length).toBe(sent)
    it.a.release()
    expect((await run.done).outcome).toBe('idle')
    await run.close()
    it.b.release()
  })

  test.concurrent('a restarted management server adopts what the proxies hold', async () => {
    const a = await startBackend()
    const b = await startBackend()
    const first = grpcEndpoints({ port: 0, initial: [setOf([a.port, b.port])] })
    const admin: string[] = []
    const one = envoy({ endpoints: first, admin: () => Promise.resolve(admin) })
    const { port } = await until(() => first.address, 'a listening sink')
    await using proxy = await startEnvoy({ path, eds: { grpc: port, delta: true } })
    admin.push(proxy.admin)
    await using traffic = startTraffic(proxy.http)
    const ref = { pool: 'web', member: a.member }
    await drain(one, ref, { timeout: '20s' })
    await one.close()
    const drainedAt = performance.now()
    await using two = envoy({ endpoints: grpcEndpoints({ port, initial: 'adopt' }), admin })
    const reading = await look(two, ref)
    expect(reading.own).toBe('drain')
    await until(
      async () => (await look(two, ref)).scopes[0]?.inForce,
      'the proxy to come back',
      20_000,
    )
    expect(a.requests.filter((at) => at > drainedAt)).toEqual([])
    expect(traffic.errors).toEqual([])
    await drain(two, { pool: 'web', member: a.member }, { timeout: '20s' })
    await a[Symbol.asyncDispose]()
    await b[Symbol.asyncDispose]()
  })

  test.concurrent('equal sets have equal versions: delta sends nothing again', async () => {
    await using a = await startBackend()
    await using b = await startBackend()
    const initial = [setOf([a.port, b.port])]
    const first = grpcEndpoints({ port: 0, initial })
    const one = envoy({ endpoints: first, expect: 1 })
    const { port } = await until(() => first.address, 'a listening sink')
    await using proxy = await startEnvoy({ path, eds: { grpc: port, delta: true } })
    const updates = async (): Promise<string> =>
      (await proxy.get('/stats?filter=cluster.web.update_success')).trim()
    const before = await updates()
    await one.close()
    const second = grpcEndpoints({ port, initial })
    await using two = envoy({ endpoints: second, admin: [proxy.admin] })
    await until(() => second.subscribers?.of('web')[0]?.state === 'acked', 'its receipt', 20_000)
    expect(await updates()).toBe(before)
    const ref = { pool: 'web', member: a.member }
    await until(async () => (await look(two, ref)).scopes[0]?.inForce, 'it to be in force')
  })

  test.concurrent('one bad endpoint fails the whole set, which is then taken back', async () => {
    await using it = await fleet(path, 2)
    const clock = systemClock
    const ref = { pool: 'web', member: 'not-an-address:80' }
    const signal = AbortSignal.timeout(10_000)
    await until(() => it.sink.subscribers?.of('web').length === 2, 'both proxies')
    const [result] = await it.lb.apply(
      [{ kind: 'add', ref, address: 'not-an-address', port: 80 }],
      { signal, clock },
    )
    expect(result).toMatchObject({ status: 'rejected', error: { code: 'REJECTED' } })
    expect(String(result !== undefined && 'error' in result && result.error)).toContain(
      'malformed IP',
    )
    const report = await drain(it.lb, { pool: 'web', member: it.a.member }, { timeout: '20s' })
    expect(report.outcome).toBe('idle')
  })

  test.concurrent('an expected proxy that is missing keeps every member from idle', async () => {
    await using stage = await fileStage(path, { provider: { expect: 2 } })
    const error: unknown = await drain(stage.lb, stage.refOf(stage.a), { timeout: '3s' }).catch(
      (e: unknown) => e,
    )
    expect(isDrainableError(error, 'DRAIN_TIMEOUT')).toBe(true)
    if (isDrainableError(error, 'DRAIN_TIMEOUT')) {
      expect(error.report.members[0]?.why.map(({ text }) => text).join()).toContain(
        '2 proxies are expected',
      )
    }
  })

  test.concurrent('a drain polled over REST comes into force', async () => {
    await using a = await startBackend()
    await using b = await startBackend()
    const sink = restEndpoints({ port: 0, initial: [setOf([a.port, b.port])] })
    const admin: string[] = []
    await using lb = envoy({ endpoints: sink, admin: () => Promise.resolve(admin) })
    const { port } = await until(() => sink.address, 'a listening sink')
    await using proxy = await startEnvoy({ path, eds: { rest: port } })
    admin.push(proxy.admin)
    await using traffic = startTraffic(proxy.http)
    await until(() => a.requests.length > 5, 'traffic')
    const report = await drain(lb, { pool: 'web', member: a.member }, { timeout: '20s' })
    const idleAt = performance.now()
    expect(report.outcome).toBe('idle')
    await delay(300)
    expect(a.requests.filter((at) => at > idleAt - 900)).toEqual([])
    expect(traffic.errors).toEqual([])
  })
})

describe.each(engines('envoy'))('rolling through Envoy $version under load', ({ path }) => {
  test.concurrent('no client sees an error: by file', async () => {
    await using stage = await fileStage(path, { servers: 3 })
    await using traffic = startTraffic(stage.proxy.http, { clients: 8, pause: 1 })
    for (const backend of stage.backends) {
      const ref = stage.refOf(backend)
      await drain(stage.lb, ref, { timeout: '20s' }, async () => {
        const before = backend.requests.length
        await delay(100)
        expect(backend.requests.length).toBe(before)
      })
      await ready(stage.lb, ref)
    }
    expect(traffic.errors).toEqual([])
    expect(traffic.sent).toBeGreaterThan(500)
  })

  test.concurrent('no client sees an error: every endpoint replaced, by two proxies', async () => {
    await using it = await fleet(path, 2)
    await using one = startTraffic(it.proxies[0]!.http, { clients: 4, pause: 1 })
    await using two = startTraffic(it.proxies[1]!.http, { clients: 4, pause: 1 })
    const clock = systemClock
    for (const old of [it.a, it.b]) {
      const fresh = await startBackend()
      it.spares.push(fresh)
      const ref = { pool: 'web', member: fresh.member }
      const add = { kind: 'add', ref, address: '127.0.0.1', port: fresh.port } as const
      const [result] = await it.lb.apply([add], { signal: AbortSignal.timeout(5_000), clock })
      expect(result?.status).toBe('applied')
      await until(() => fresh.requests.length > 0, 'requests at the new server')
      const gone = { pool: 'web', member: old.member }
      const report = await drain(it.lb, gone, { timeout: '20s', until: 'removed' })
      expect(report.outcome).toBe('removed')
      await old[Symbol.asyncDispose]() // nothing is there any more
      await delay(100)
    }
    expect([...one.errors, ...two.errors]).toEqual([])
    expect(one.sent + two.sent).toBeGreaterThan(500)
  })
})
