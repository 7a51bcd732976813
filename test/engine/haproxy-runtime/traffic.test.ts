/** What holds a drain and what does not, in one HAProxy of each version. */
import { Agent } from 'node:http'
import { drain, startDrain } from 'drainable'
import { haproxyRuntime } from 'drainable/haproxy-runtime'
import { afterAll, beforeAll, describe, it } from 'vitest'
import { engines } from '../../support/engines.js'
import { Haproxy, until } from '../../support/haproxy.js'
import { member, ownBackend, site } from '../../support/haproxy-lab.js'
import { Backend, request, TcpBackend, Tunnel } from '../../support/haproxy-traffic.js'

const REUSE = ['never', 'safe', 'aggressive', 'always'] as const

describe.each(engines('haproxy'))('HAProxy $version', (engine) => {
  /** 3.3 and newer refuse a frontend and a backend of one name. */
  const sameNames = Number(engine.series) < 3.3
  let haproxy: Haproxy
  let s1: Backend
  let s2: Backend
  let tcp: TcpBackend
  const backends: Backend[] = []

  beforeAll(async () => {
    haproxy = await Haproxy.start({
      engine,
      global: '  stats timeout 30s',
      config: (port) => {
        return `
${REUSE.map((mode) => site(port, `reuse_${mode}`, { backend: `  http-reuse ${mode}` })).join('\n')}
${site(port, 'keepalive', { backend: '  http-reuse safe' })}
${site(port, 'queue', { backend: '  no option redispatch', s1: 'maxconn 1' })}
${site(port, 'jump', { backend: '  option redispatch', s1: 'maxconn 1' })}
${site(port, 'flicker')}
${site(port, 'seldom')}
${site(port, 'terminate')}
${site(port, 'cleared')}
frontend ${sameNames ? 'both' : 'f_both'}
  bind 127.0.0.1:${port('both')}
  default_backend both
backend both
  server s1 127.0.0.1:${port('s1')}
  server s2 127.0.0.1:${port('s2')}
backend dead
  server s1 127.0.0.1:${port('nobody')} check inter 100 fall 1
  server s2 127.0.0.1:${port('s2')}
frontend f_retry
  bind 127.0.0.1:${port('retry')}
  default_backend retry
backend retry
  cookie SRV insert
  server s1 127.0.0.1:${port('late')} cookie s1
  server s2 127.0.0.1:${port('s2')} cookie s2
frontend f_tcp
  mode tcp
  bind 127.0.0.1:${port('tcp')}
  default_backend tcp
backend tcp
  mode tcp
  server s1 127.0.0.1:${port('echo')}
  server s2 127.0.0.1:${port('echo')} backup`
      },
    })
    s1 = await Backend.start(haproxy.port('s1'), 's1')
    s2 = await Backend.start(haproxy.port('s2'), 's2')
    tcp = await TcpBackend.start(haproxy.port('echo'))
    backends.push(s1, s2)
  })

  afterAll(async () => {
    await haproxy[Symbol.asyncDispose]()
    await tcp[Symbol.asyncDispose]()
    for (const backend of backends) await backend[Symbol.asyncDispose]()
  })

  function open(): ReturnType<typeof haproxyRuntime> {
    return haproxyRuntime({ socket: haproxy.socket, master: haproxy.master })
  }

  it.concurrent.for(REUSE)(
    'waits for request, stream and upgraded connection (http-reuse %s)',
    async (mode, { expect }) => {
      const pool = `reuse_${mode}`
      await using lb = open()
      await using own = await ownBackend(haproxy, pool)
      const port = haproxy.port(pool)
      const hold = request(port, '/hold', { cookie: 's1' })
      const stream = request(port, '/stream', { cookie: 's1' })
      await using tunnel = await Tunnel.websocket(port, 's1')
      await until(() => own.active === 3, 'three at the backend')
      const drained = startDrain(lb, { pool, member: 's1' }, { timeout: '30s' })
      let busyAtIdle = -1
      drained.on('idle', () => (busyAtIdle = own.active))
      await until(() => drained.why().some(({ count }) => count === 3), 'why() counts three')
      own.release(1)
      await until(() => drained.why().some(({ count }) => count === 2), 'why() counts two')
      own.release()
      expect(await hold).toMatchObject({ status: 200, body: 'done', cut: false })
      expect(await stream).toMatchObject({ status: 200, body: 'first;done', cut: false })
      await tunnel.echo('still here')
      expect(drained.report().members[0]?.verifiedIdle).toBe(false)
      await tunnel[Symbol.asyncDispose]()
      const report = await drained.done
      expect(member(report)).toMatchObject({ outcome: 'idle', verifiedIdle: true, sealed: true })
      expect(member(report).proof?.arrivals).toBe('unchanged')
      expect(busyAtIdle).toBe(0)
    },
  )

  it.concurrent(
    'waits for a raw TCP connection, which no used_conn counter shows',
    async ({ expect }) => {
      await using lb = open()
      await using tunnel = await Tunnel.tcp(haproxy.port('tcp'))
      const drained = startDrain(lb, { pool: 'tcp', member: 's1' }, { timeout: '30s' })
      await until(() => drained.why().some(({ code }) => code === 'in-flight'), 'in flight')
      expect(await haproxy.stat('tcp', 's1', 'used_conn_cur')).toBe('0')
      await tunnel.echo('more')
      await tunnel[Symbol.asyncDispose]()
      expect(member(await drained.done)).toMatchObject({ outcome: 'idle', verifiedIdle: true })
    },
  )

  it.concurrent('an idle keep-alive client does not hold the drain', async ({ expect }) => {
    await using lb = open()
    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    const port = haproxy.port('keepalive')
    await request(port, '/', { agent, cookie: 's1' })
    const report = await drain(lb, { pool: 'keepalive', member: 's1' }, { timeout: '10s' })
    expect(member(report)).toMatchObject({ outcome: 'idle', verifiedIdle: true })
    expect(await request(port, '/', { agent })).toMatchObject({ status: 200, server: 's2' })
    agent.destroy()
  })

  it.concurrent.for(['queue', 'jump'])(
    'queued requests hold the drain (%s)',
    async (pool, { expect }) => {
      await using lb = open()
      await using own = await ownBackend(haproxy, pool)
      const port = haproxy.port(pool)
      const ask = (): ReturnType<typeof request> => request(port, '/hold', { cookie: 's1' })
      const answers = [ask()]
      // Until 3.0 two that come at once can both pass a maxconn of 1.
      await until(() => own.active === 1, 'one served')
      answers.push(ask(), ask())
      await until(async () => (await haproxy.stat(pool, 's1', 'qcur')) === '2', 'two queued')
      const drained = startDrain(lb, { pool, member: 's1' }, { timeout: '30s' })
      let wrong = 0
      drained.on('idle', () => (wrong += own.active))
      const release = setInterval(() => {
        own.release(1)
        s2.release()
      }, 300)
      const replies = await Promise.all(answers)
      clearInterval(release)
      expect(replies.map(({ status }) => status)).toEqual([200, 200, 200])
      expect(member(await drained.done)).toMatchObject({ outcome: 'idle', verifiedIdle: true })
      expect(wrong).toBe(0)
    },
  )

  it.concurrent(
    'sticky traffic between 0 and 1 never gives idle, and why() names it',
    async ({ expect }) => {
      await using lb = open()
      const port = haproxy.port('flicker')
      const client = { on: true }
      const statuses = new Set<number>()
      const traffic = (async () => {
        while (client.on) {
          statuses.add((await request(port, '/', { cookie: 's1' })).status)
          await new Promise((resolve) => setTimeout(resolve, 40))
        }
      })()
      const drained = startDrain(lb, { pool: 'flicker', member: 's1' }, { timeout: '30s' })
      let idleWhileOn = false
      drained.on('idle', () => (idleWhileOn = client.on))
      await until(
        () => drained.why().some(({ code }) => code === 'persistence'),
        'persistence',
        15_000,
      )
      const seen = Number(await haproxy.stat('flicker', 's1', 'stot'))
      await until(
        async () => Number(await haproxy.stat('flicker', 's1', 'stot')) > seen + 20,
        'twenty more requests',
      )
      client.on = false
      await traffic
      expect(member(await drained.done)).toMatchObject({ outcome: 'idle', verifiedIdle: true })
      expect(idleWhileOn).toBe(false)
      expect([...statuses]).toEqual([200])
    },
  )

  it.concurrent(
    'after idle a rare sticky client goes elsewhere, and nothing fails',
    async ({ expect }) => {
      await using lb = open()
      const port = haproxy.port('seldom')
      const own = await ownBackend(haproxy, 'seldom')
      expect(await request(port, '/', { cookie: 's1' })).toMatchObject({ server: 'seldom' })
      const asked: number[] = []
      await drain(lb, { pool: 'seldom', member: 's1' }, { timeout: '20s' }, async () => {
        const before = own.total
        await own[Symbol.asyncDispose]()
        for (let index = 0; index < 5; index += 1) {
          const answer = await request(port, '/', { cookie: 's1' })
          asked.push(answer.status)
          expect(answer.server).toBe('s2')
        }
        expect(own.total).toBe(before)
      })
      expect(asked).toEqual([200, 200, 200, 200, 200])
    },
  )

  it.concurrent(
    'a dead server with nothing in flight is idle after the blind time',
    async ({ expect }) => {
      await using lb = open()
      await until(
        async () => (await haproxy.stat('dead', 's1', 'status')).startsWith('DOWN'),
        'the server is down',
      )
      const report = await drain(lb, { pool: 'dead', member: 's1' }, { timeout: '10s' })
      expect(member(report)).toMatchObject({ outcome: 'idle', verifiedIdle: true })
      expect(report.elapsed).toBeGreaterThan(1_000)
    },
  )

  if (sameNames)
    it.concurrent('a frontend and a backend of one name are told apart', async ({ expect }) => {
      await using lb = open()
      const report = await drain(lb, { pool: 'both', member: 's1' }, { timeout: '10s' })
      expect(member(report)).toMatchObject({ outcome: 'idle', verifiedIdle: true })
      expect(await haproxy.stat('both', 's1', 'status')).toBe('MAINT')
      expect(await haproxy.stat('both', 's2', 'status')).toBe('no check')
    })

  it.concurrent('a request in retry turn-around holds the drain', async ({ expect }) => {
    await using lb = open()
    const port = haproxy.port('retry')
    const answer = request(port, '/hold', { cookie: 's1' })
    await until(
      async () => Number(await haproxy.stat('retry', 's1', 'wretr')) > 0,
      'the first connect was refused',
    )
    const drained = startDrain(lb, { pool: 'retry', member: 's1' }, { timeout: '20s', settle: 0 })
    let busyAtIdle = -1
    await using late = await Backend.start(haproxy.port('late'), 'late')
    drained.on('idle', () => (busyAtIdle = late.active))
    await until(() => late.active === 1, 'the retry reached the drained server')
    await until(() => drained.report().members[0]?.phase === 'draining', 'the drain')
    late.release()
    expect((await answer).status).toBe(200)
    expect(member(await drained.done)).toMatchObject({ outcome: 'idle', verifiedIdle: true })
    expect(busyAtIdle).toBe(0)
  })

  it.concurrent(
    'terminate cuts what is left, with the queue, and says how many',
    async ({ expect }) => {
      await using lb = open()
      await using own = await ownBackend(haproxy, 'terminate')
      await haproxy.cli('set maxconn server terminate/s1 2')
      const port = haproxy.port('terminate')
      const answers = [1, 2, 3].map(() => request(port, '/stream', { cookie: 's1' }))
      await until(() => own.active === 2, 'two in flight')
      const report = await drain(
        lb,
        { pool: 'terminate', member: 's1' },
        { timeout: '5s', onTimeout: 'terminate' },
      )
      expect(member(report)).toMatchObject({ outcome: 'terminated' })
      expect(member(report).terminated).toBeGreaterThanOrEqual(2)
      s2.release()
      const replies = await Promise.all(answers)
      expect(replies.filter(({ cut }) => cut).length).toBeGreaterThanOrEqual(2)
      await until(() => own.active === 0, 'nothing is left')
    },
  )

  it.concurrent('counters cleared in mid-drain give no idle', async ({ expect }) => {
    await using lb = open()
    await using own = await ownBackend(haproxy, 'cleared')
    const answer = request(haproxy.port('cleared'), '/hold', { cookie: 's1' })
    await until(() => own.active === 1, 'in flight')
    const drained = startDrain(lb, { pool: 'cleared', member: 's1' }, { timeout: '20s' })
    await until(() => drained.why().some(({ count }) => count === 1), 'why() counts one')
    await haproxy.cli('clear counters all')
    await until(async () => (await haproxy.stat('cleared', 's1', 'stot')) === '0', 'cleared')
    await until(() => drained.report().members[0]?.phase === 'draining', 'draining')
    own.release()
    await answer
    expect(member(await drained.done)).toMatchObject({ outcome: 'idle', verifiedIdle: true })
  })
})
