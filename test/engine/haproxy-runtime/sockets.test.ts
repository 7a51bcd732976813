/** The stats socket: its rights, its bounds, what stands in front of it, and addresses without one. */
import { once } from 'node:events'
import { createConnection } from 'node:net'
import { drain, type DrainableError, ready, select, startDrain } from 'drainable'
import { haproxyRuntime } from 'drainable/haproxy-runtime'
import { describe, expect, it } from 'vitest'
import { engines } from '../../support/engines.js'
import { Haproxy, until } from '../../support/haproxy.js'
import { lab, member, SEALED_IDLE, site, web1, type Config } from '../../support/haproxy-lab.js'
import { Backend, request } from '../../support/haproxy-traffic.js'

describe.each(engines('haproxy'))('sockets of HAProxy $version', (engine) => {
  const config: Config = (port) => site(port, 'web')

  it.concurrent('backends whose names are the ids of others are told apart', async ({ expect }) => {
    await using haproxy = await Haproxy.start({
      engine,
      config: (port) =>
        [5, 4, 3, 2, 1, 6]
          .map(
            (name) => `
frontend ${Number(engine.series) < 3.3 ? name : `f_${name}`}
  bind 127.0.0.1:${port(`in${name}`)}
  default_backend ${name}
backend ${name}
${Array.from({ length: 20 }, (_, index) => `  server ${index} 127.0.0.1:${port('s1')}`).join('\n')}`,
          )
          .join('\n'),
    })
    await using lb = haproxyRuntime({ socket: haproxy.socket, master: haproxy.master })
    const refs = ['1', '2', '3', '4', '5', '6'].map((pool) => ({ pool, member: '7' }))
    const report = await drain(lb, refs, { timeout: '10s', seal: false })
    expect(report.members.every(({ verifiedIdle }) => verifiedIdle)).toBe(true)
    for (const { pool } of refs) {
      expect(await haproxy.stat(pool, '7', 'status')).toBe('DRAIN')
      expect(await haproxy.stat(pool, '6', 'status')).toBe('no check')
      expect(await haproxy.stat(pool, 'BACKEND', 'act')).toBe('19')
    }
  })

  it.concurrent(
    'a socket of level operator can look, and is refused before any change',
    async ({ expect }) => {
      await using haproxy = await Haproxy.start({
        engine,
        config,
        level: 'operator',
        mode: 'master',
      })
      await using lb = haproxyRuntime({ socket: haproxy.socket, master: haproxy.master })
      expect(await select(lb, { pool: 'web' })).toHaveLength(2)
      const error: unknown = await drain(lb, web1, { timeout: '5s' }).catch(
        (cause: unknown) => cause,
      )
      expect(error).toMatchObject({ code: 'FORBIDDEN' })
      expect(String(error)).toContain('level admin')
      expect(await haproxy.stat('web', 's1', 'status')).toBe('no check')
    },
  )

  it.concurrent('more drains than HAProxy takes connections all end', async ({ expect }) => {
    const pools = ['a', 'b', 'c', 'd', 'e', 'f']
    await using it = await lab({
      engine,
      global: '  stats maxconn 3',
      config: (port) => [...pools, 'web'].map((pool) => site(port, pool)).join(''),
    })
    const ends = pools.map(async (pool) => {
      await using lb = it.provider({ replyTimeout: '2s', maxConnections: 1 })
      await using drained = startDrain(lb, { pool, member: 's1' }, { timeout: '60s' })
      return member(await drained.done)
    })
    for (const end of await Promise.all(ends)) expect(end).toMatchObject(SEALED_IDLE)
    expect(await request(it.haproxy.port('web'), '/')).toMatchObject({ status: 200 })
  })

  it.concurrent('a short stats timeout and few connections are enough', async ({ expect }) => {
    await using haproxy = await Haproxy.start({
      engine,
      config,
      global: '  stats timeout 200ms\n  stats maxconn 2',
    })
    await using backend = await Backend.start(haproxy.port('s1'), 's1')
    await using lb = haproxyRuntime({
      socket: haproxy.socket,
      master: haproxy.master,
      maxConnections: 1,
    })
    const answer = request(haproxy.port('web'), '/hold', { cookie: 's1' })
    await until(() => backend.active === 1, 'in flight')
    const drained = startDrain(lb, web1, { timeout: '20s', until: 'removed' })
    await until(() => drained.why().some(({ count }) => count === 1), 'why() counts one')
    await until(async () => (await haproxy.stat('web', 's1', 'status')) === 'DRAIN', 'drained')
    backend.release()
    await answer
    const report = await drained.done
    // `balance roundrobin` is the default: servers can be deleted.
    expect(member(report)).toMatchObject({ outcome: 'removed', verifiedIdle: true })
  })

  it.concurrent(
    'a full stats maxconn is an error that names it, never an idle',
    async ({ expect }) => {
      await using haproxy = await Haproxy.start({
        engine,
        config,
        mode: 'plain',
        global: '  stats timeout 30s\n  stats maxconn 3',
      })
      await using lb = haproxyRuntime({ socket: haproxy.socket, replyTimeout: '300ms' })
      const others = await Promise.all(
        [1, 2, 3].map(async () => {
          const socket = createConnection({ path: haproxy.socket })
          socket.write('prompt\n')
          await once(socket, 'data')
          return socket
        }),
      )
      // Later than the patience of a first look: else what it says may be that the time was over.
      const error: unknown = await drain(lb, web1, { timeout: '30s' }).catch(
        (cause: unknown) => cause,
      )
      // Each try leaves a connection in the kernel's queue: the last may have found it full, which is another code.
      const { code } = error as DrainableError
      expect(['CALL_TIMEOUT', 'UNREACHABLE']).toContain(code)
      expect(String(error)).toContain('stats maxconn')
      for (const socket of others) socket.destroy()
      // The kernel refuses a connection as long as HAProxy has not taken those that wait.
      const status = await until(
        () => haproxy.stat('web', 's1', 'status').catch(() => undefined),
        'a free place',
      )
      expect(status).toBe('no check')
      expect(member(await drain(lb, web1, { timeout: '10s' }))).toMatchObject({ outcome: 'idle' })
    },
  )

  it.concurrent(
    'a drain that a frozen process executes late does not undo ready',
    async ({ expect }) => {
      await using haproxy = await Haproxy.start({ engine, config, mode: 'plain' })
      await using lb = haproxyRuntime({ socket: haproxy.socket, replyTimeout: '1s' })
      for (let round = 0; round < 3; round += 1) {
        await select(lb, web1)
        const pid = await haproxy.signal('SIGSTOP')
        const stop = new AbortController()
        const aborted = drain(lb, web1, { timeout: '10s', signal: stop.signal }).catch(
          (cause: unknown) => cause,
        )
        setTimeout(() => stop.abort(new Error('stopped by the caller')), 100)
        expect(await aborted).toMatchObject({ message: 'stopped by the caller' })
        process.kill(pid, 'SIGCONT')
        await ready(lb, web1, { waitHealthy: false })
        await until(async () => (await haproxy.stat('web', 's1', 'status')) === 'no check', 'ready')
      }
    },
  )
})

describe('addresses that are no stats socket', () => {
  it.each([
    [{ socket: '/nonexistent/admin.sock' }, 'UNREACHABLE', /no such socket/],
    [{ socket: { host: '127.0.0.1', port: 1 } }, 'UNREACHABLE', /nothing listens/],
  ])('%j', async (options, code, words) => {
    await using lb = haproxyRuntime(options)
    const error: unknown = await drain(lb, { pool: 'web', member: 's1' }, { timeout: '2s' }).catch(
      (cause: unknown) => cause,
    )
    expect(error).toMatchObject({ code })
    expect(String(error)).toMatch(words)
  })
})
