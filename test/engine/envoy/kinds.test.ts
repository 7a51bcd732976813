import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { describe, expect, test } from 'vitest'
import { startDrain } from 'drainable'
import { engines } from '../../support/engines.js'
import type { EnvoyOptions } from '../../support/envoy/bootstrap.js'
import { ask, openTcp, startTraffic } from '../../support/envoy/client.js'
import { setOf } from '../../support/envoy/sets.js'
import { fileStage, WAYS, workOf, type Stage } from '../../support/envoy/stage.js'
import { until } from '../../support/wait.js'

const TYPE = 'type.googleapis.com/envoy.extensions'
const OTHERS_FIRST = {
  name: 'envoy.retry_host_predicates.previous_hosts',
  typed_config: { '@type': `${TYPE}.retry.host.previous_hosts.v3.PreviousHostsPredicate` },
}
const FORWARD = {
  name: 'forward',
  lb_policy: 'CLUSTER_PROVIDED',
  cluster_type: {
    name: 'envoy.clusters.dynamic_forward_proxy',
    typed_config: {
      '@type': `${TYPE}.clusters.dynamic_forward_proxy.v3.ClusterConfig`,
      dns_cache_config: { name: 'forward', dns_lookup_family: 'V4_ONLY' },
    },
  },
}
const CONNECTING = {
  name: 'tunnel',
  address: { socket_address: { address: '127.0.0.1', port_value: 0 } },
  filter_chains: [
    {
      filters: [
        {
          name: 'tcp',
          typed_config: {
            '@type': `${TYPE}.filters.network.tcp_proxy.v3.TcpProxy`,
            stat_prefix: 'tunnel',
            cluster: 'web',
            tunneling_config: { hostname: 'somewhere:80' },
          },
        },
      ],
    },
  ],
}

/** Requests until the first server holds one. */
async function holdAtFirst({ a, proxy }: Stage): Promise<void> {
  await until(() => {
    void ask(proxy.http, '/hold').catch(() => undefined)
    return a.held > 0
  }, 'a request that is held')
}

/** A server that takes CONNECT and echoes. */
async function startTunnels() {
  const open = new Set<Socket>()
  const server = createServer().on('connect', (_, socket: Socket) => {
    open.add(socket)
    socket.on('error', () => undefined).on('close', () => open.delete(socket))
    socket.write('HTTP/1.1 200 OK\r\n\r\n')
    socket.on('data', (data) => socket.write(data)).on('end', () => socket.end())
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  return {
    open,
    port: (server.address() as AddressInfo).port,
    [Symbol.asyncDispose]: async () => {
      for (const socket of open) socket.destroy()
      server.close()
      await once(server, 'close')
    },
  }
}

const served = engines('envoy').flatMap((engine) => WAYS.map((by) => ({ ...engine, by })))

describe.concurrent.each(served)('work of other kinds on Envoy $version by $by', ({ path, by }) => {
  test.each<[string, Partial<EnvoyOptions>]>([
    ['2 workers', { workers: 2 }],
    ['8 workers', { workers: 8 }],
    [
      'hedging',
      {
        route: {
          hedge_policy: { hedge_on_per_try_timeout: true },
          retry_policy: { retry_on: '5xx', num_retries: 1, per_try_timeout: '0.2s' },
        },
      },
    ],
  ])('with %s: a held request keeps its member from idle', async (_, options) => {
    await using stage = await fileStage(path, { by, envoy: options })
    const { a, b, lb, proxy, refOf } = stage
    await holdAtFirst(stage)
    const ref = refOf(a)
    await using run = startDrain(lb, ref, { timeout: '30s' })
    let isOver = false
    void run.done.then(() => (isOver = true))
    await run.inForce
    const came = a.requests.length
    const traffic = startTraffic(proxy.http)
    await until(() => traffic.sent > 200, 'traffic')
    await traffic[Symbol.asyncDispose]()
    expect(traffic.errors).toEqual([])
    expect(a.requests.length).toBe(came)
    expect((await workOf(lb, ref))[0]).toBe(a.held)
    expect(a.held).toBeGreaterThan(0)
    expect(isOver).toBe(false)
    a.release()
    expect((await run.done).members[0]).toMatchObject({ outcome: 'idle', verifiedIdle: true })
    b.release()
  })

  test('retries that shun the hosts before do not reach a drained one', async () => {
    const retry_policy = {
      retry_on: '5xx,reset',
      num_retries: 3,
      per_try_timeout: '0.1s',
      retry_host_predicate: [OTHERS_FIRST],
      host_selection_retry_max_attempts: 5,
    }
    await using stage = await fileStage(path, { by, envoy: { route: { retry_policy } } })
    const { a, b, lb, proxy, refOf } = stage
    await using run = startDrain(lb, refOf(a), { timeout: '30s' })
    await run.inForce
    const [came, before] = [a.requests.length, b.requests.length]
    const answers = await Promise.all(Array.from({ length: 10 }, () => ask(proxy.http, '/hold')))
    expect(answers.map(({ status }) => status)).toEqual(Array(10).fill(504))
    expect(b.requests.length - before).toBeGreaterThan(10)
    expect(a.requests.length).toBe(came)
    expect((await run.done).members[0]).toMatchObject({ outcome: 'idle', verifiedIdle: true })
  })

  test('drop_overload stays in the set, and what it drops is no work', async () => {
    const policy = {
      drop_overloads: [
        { category: 'all', drop_percentage: { numerator: 50, denominator: 'HUNDRED' } },
      ],
    }
    const set = (ports: readonly number[]) => ({ ...setOf(ports), policy })
    await using stage = await fileStage(path, { by, set })
    const { a, b, lb, proxy, refOf } = stage
    await holdAtFirst(stage)
    await using run = startDrain(lb, refOf(a), { timeout: '30s' })
    await run.inForce
    const answers = await Promise.all(Array.from({ length: 60 }, () => ask(proxy.http)))
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200, 503]))
    expect((await workOf(lb, refOf(a)))[0]).toBe(a.held)
    const held = await proxy.get('/config_dump?include_eds')
    expect(held).toMatch(/"drop_overloads": \[\s*\{\s*"category": "all"/)
    a.release()
    expect((await run.done).members[0]).toMatchObject({ outcome: 'idle', verifiedIdle: true })
    b.release()
  })

  test('TCP that is tunnelled by CONNECT keeps its member from idle', async () => {
    await using first = await startTunnels()
    await using other = await startTunnels()
    await using stage = await fileStage(path, {
      by,
      set: () => setOf([first.port, other.port]),
      envoy: { listeners: [CONNECTING] },
    })
    const { lb, proxy } = stage
    const listed = await proxy.get('/listeners')
    const entry = Number(/^tunnel::127\.0\.0\.1:(\d+)/m.exec(listed)?.[1])
    const sockets: Socket[] = []
    await until(async () => {
      sockets.push(await openTcp(entry))
      return first.open.size > 0
    }, 'a tunnel to the first server')
    const ref = { pool: 'web', member: `127.0.0.1:${first.port}` }
    await using run = startDrain(lb, ref, { timeout: '30s' })
    let isOver = false
    void run.done.then(() => (isOver = true))
    await run.inForce
    for (let i = 0; i < 10; i += 1) sockets.push(await openTcp(entry))
    expect(first.open.size).toBe(1)
    expect((await workOf(lb, ref))[0]).toBe(1)
    expect(isOver).toBe(false)
    for (const socket of sockets) socket.destroy()
    expect((await run.done).members[0]).toMatchObject({ outcome: 'idle', verifiedIdle: true })
  })

  test('a dynamic forward proxy has no endpoint to drain, and is named', async () => {
    await using stage = await fileStage(path, { by, envoy: { clusters: [FORWARD] } })
    await using run = startDrain(stage.lb, { pool: 'forward', member: '127.0.0.1:80' }, {})
    expect(JSON.stringify(await run.done)).toMatch(/cluster forward is of type .*dynamic_forward/)
  })
})
