/** What makes drains go wrong in production, in one HAProxy of each version. */
import { createConnection, createServer } from 'node:net'
import { once } from 'node:events'
import { drain, type DrainReport, ready, restore, select, startDrain, watch } from 'drainable'
import { haproxyRuntime } from 'drainable/haproxy-runtime'
import type { PresentReading } from 'drainable/provider'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { engines } from '../../support/engines.js'
import { freePort, Haproxy, until } from '../../support/haproxy.js'
import { Backend, request } from '../../support/haproxy-traffic.js'

function member(report: DrainReport): DrainReport['members'][number] {
  return report.members[0]!
}

type Provider = ReturnType<typeof haproxyRuntime>

describe.each(engines('haproxy'))('HAProxy $version', (engine) => {
  let haproxy: Haproxy
  let s1: Backend
  let s2: Backend

  beforeAll(async () => {
    haproxy = await Haproxy.start({
      engine,
      global: '  stats timeout 30s\n  stats maxconn 100',
      config: (port) => {
        const web = (name: string, s1Options = '', more = ''): string => `
frontend f_${name}
  bind 127.0.0.1:${port(name)}
  default_backend ${name}
backend ${name}
  balance roundrobin
  cookie SRV insert
  server s1 127.0.0.1:${port('s1')} cookie s1 ${s1Options}
  server s2 127.0.0.1:${port('s2')} cookie s2
${more}`
        return `
resolvers nowhere
  nameserver one 127.0.0.1:${port('dns')}
  hold valid 1s
${web('disabled', 'disabled')}
${web('parent', 'check inter 100')}
${web('lonely', 'check inter 100')}
backend lonelier
  server c1 127.0.0.1:${port('s1')} track lonely/s1
${web('boss', 'check inter 100')}
backend staff
  server c1 127.0.0.1:${port('s1')} track boss/s1
backend child
  server c1 127.0.0.1:${port('s1')} track parent/s1
  server c2 127.0.0.1:${port('s2')}
backend resolved
  server s1 nosuch.invalid:80 resolvers nowhere init-addr none
  server s2 127.0.0.1:${port('s2')}
backend unresolved
  server s1 nosuch.invalid:80 check resolvers nowhere init-addr none
  server s2 127.0.0.1:${port('s2')}
${web('agent', `agent-check agent-port ${port('agentcheck')} agent-inter 200`)}
${web('slot')}
${web('deleted')}
${web('removed')}
${web('cuts', 'on-marked-down shutdown-sessions')}
${web('backup', 'check inter 100 on-marked-up shutdown-backup-sessions', `  server b1 127.0.0.1:${port('s2')} backup`)}
${web('persist', '', '  option persist')}
${web('forced', '', '  force-persist if TRUE')}
${web('overruled')}
${web('reapplied')}
${web('maint')}
${web('outside')}
${web('aborted')}
${web('health', 'check inter 200 fall 1 rise 2')}
${web('events')}
backend alone
  server s1 127.0.0.1:${port('s1')}
backend many
${Array.from({ length: 300 }, (_, index) => `  server m${index} 127.0.0.1:${port('s1')}`).join('\n')}`
      },
    })
    s1 = await Backend.start(haproxy.port('s1'), 's1')
    s2 = await Backend.start(haproxy.port('s2'), 's2')
  })

  afterAll(async () => {
    await haproxy[Symbol.asyncDispose]()
    await s1[Symbol.asyncDispose]()
    await s2[Symbol.asyncDispose]()
  })

  function open(more: { maintCuts?: boolean; keepFollowers?: number } = {}): Provider {
    return haproxyRuntime({ socket: haproxy.socket, master: haproxy.master, ...more })
  }

  async function look(lb: Provider, pool: string, name = 's1'): Promise<PresentReading> {
    const [reading] = await select(lb, { pool, member: name })
    if (reading?.present !== true) throw new Error(`${pool}/${name} is not there`)
    return reading
  }

  async function mask(pool: string, name: string): Promise<number> {
    const reply = await haproxy.cli(`show servers state ${pool}`)
    return Number(
      reply
        .split('\n')
        .find((line) => line.split(' ')[3] === name)
        ?.split(' ')[6],
    )
  }

  async function ownBackend(pool: string): Promise<Backend> {
    const port = await freePort()
    const backend = await Backend.start(port, pool)
    await haproxy.cli(`set server ${pool}/s1 addr 127.0.0.1 port ${port}`)
    // 3.x answers first and changes the address a moment later.
    await until(
      async () => (await haproxy.cli(`show servers state ${pool}`)).includes(` ${port} `),
      'the address is changed',
    )
    return backend
  }

  it.concurrent(
    'configured disabled: found in maint, kept there; ready since: drained as any other',
    async ({ expect }) => {
      await using lb = open()
      const ref = { pool: 'disabled', member: 's1' }
      const found = startDrain(lb, ref, { timeout: '10s' })
      expect(member(await found.done)).toMatchObject({
        outcome: 'idle',
        wasAdmin: 'maint',
        sealed: true,
      })
      await restore(lb, await found.ticket)
      expect(await mask('disabled', 's1')).toBe(5)
      await haproxy.cli('set server disabled/s1 state ready')
      expect(await mask('disabled', 's1')).toBe(4)
      expect(await look(lb, 'disabled')).toMatchObject({ own: 'ready', serves: true })
      const drained = startDrain(lb, ref, { timeout: '10s', seal: false })
      expect(member(await drained.done)).toMatchObject({ outcome: 'idle', wasAdmin: 'ready' })
      expect(await mask('disabled', 's1')).toBe(12)
    },
  )

  it.concurrent(
    'tracking: followers are named; an own bit is set under an inherited drain',
    async ({ expect }) => {
      await using lb = open()
      await until(async () => (await look(lb, 'parent')).health === 'up', 'up')
      expect((await look(lb, 'parent')).hints).toEqual([
        'child/c1 tracks it and takes its state too',
      ])
      const parent = startDrain(
        lb,
        { pool: 'parent', member: 's1' },
        { timeout: '10s', seal: false },
      )
      await parent.done
      const child = await look(lb, 'child', 'c1')
      expect(child).toMatchObject({ own: 'ready', inherited: 'drain', serves: false })
      expect(child.hints?.join()).toContain('parent/s1')
      const own = startDrain(lb, { pool: 'child', member: 'c1' }, { timeout: '10s', seal: false })
      expect(member(await own.done)).toMatchObject({ outcome: 'idle', verifiedIdle: true })
      expect(await mask('child', 'c1')).toBe(24)
      await parent.restore()
      expect(await mask('child', 'c1')).toBe(8)
      await own.restore()
      expect(await mask('child', 'c1')).toBe(0)
    },
  )

  it.concurrent(
    'a follower that would leave its backend empty: refused, unless told',
    async ({ expect }) => {
      await using lb = open()
      await until(async () => (await look(lb, 'lonely')).health === 'up', 'up')
      const ref = { pool: 'lonely', member: 's1' }
      const error: unknown = await drain(lb, ref, { timeout: '10s' }).catch(
        (cause: unknown) => cause,
      )
      expect(error).toMatchObject({ code: 'POOL_AT_MINIMUM' })
      expect(String(error)).toContain('lonelier/c1')
      expect(await mask('lonely', 's1')).toBe(0)
      await using told = open({ keepFollowers: 0 })
      expect(member(await drain(told, ref, { timeout: '10s' }))).toMatchObject({ outcome: 'idle' })
    },
  )

  it.concurrent(
    'a name that does not resolve: inherited maint, its own bit apart',
    async ({ expect }) => {
      await using lb = open()
      await until(async () => (await mask('resolved', 's1')) === 32, 'not resolved')
      expect(await look(lb, 'resolved')).toMatchObject({
        own: 'ready',
        inherited: 'maint',
        serves: false,
      })
      const report = await drain(
        lb,
        { pool: 'resolved', member: 's1' },
        { timeout: '10s', seal: false },
      )
      expect(member(report)).toMatchObject({ outcome: 'idle', wasAdmin: 'ready' })
      expect(await mask('resolved', 's1')).toBe(40)
    },
  )

  it.concurrent('an undo waits for no check that can not come', async ({ expect }) => {
    await using lb = open()
    const ref = { pool: 'unresolved', member: 's1' }
    await until(async () => (await mask(ref.pool, ref.member)) === 32, 'not resolved')
    const drained = startDrain(lb, ref, { timeout: '10s', seal: false })
    await drained.done
    const from = performance.now()
    const report = await drained.restore()
    expect(report.members[0]).toMatchObject({ outcome: 'restored' })
    expect(performance.now() - from).toBeLessThan(5_000)
    expect(await mask(ref.pool, ref.member)).toBe(32)
  })

  it.concurrent('an agent that opens the member again is named', async ({ expect }) => {
    const agent = createServer((socket) => socket.on('error', () => undefined).end('up ready\n'))
    agent.listen(haproxy.port('agentcheck'), '127.0.0.1')
    await once(agent, 'listening')
    await using lb = open()
    const error: unknown = await drain(
      lb,
      { pool: 'agent', member: 's1' },
      { timeout: '20s' },
    ).catch((cause: unknown) => cause)
    agent.close()
    expect(error).toMatchObject({ code: 'DRAIN_OVERRULED' })
    expect(String(error)).toContain(`its agent at 127.0.0.1:${haproxy.port('agentcheck')}`)
  })

  it.concurrent(
    'a slot reused for another address is another member: nothing is touched',
    async ({ expect }) => {
      await using lb = open()
      await using own = await ownBackend('slot')
      const answer = request(haproxy.port('slot'), '/hold', { cookie: 's1' })
      await until(() => own.active === 1, 'in flight')
      const drained = startDrain(lb, { pool: 'slot', member: 's1' }, { timeout: '20s' })
      await until(async () => (await mask('slot', 's1')) === 8, 'drained')
      await haproxy.cli(`set server slot/s1 addr 127.0.0.1 port ${haproxy.port('s2')}`)
      const report = await drained.done
      expect(member(report)).toMatchObject({ outcome: 'gone', verifiedIdle: false })
      expect(await mask('slot', 's1')).toBe(8)
      own.release()
      await answer
    },
  )

  it.concurrent('deleted in mid-drain: gone, and not called idle', async ({ expect }) => {
    await using lb = open()
    const drained = startDrain(
      lb,
      { pool: 'deleted', member: 's1' },
      { timeout: '20s', settle: '5s' },
    )
    await until(async () => (await mask('deleted', 's1')) === 8, 'drained')
    await haproxy.cli('set server deleted/s1 state maint')
    expect(await haproxy.cli('del server deleted/s1')).toContain('Server deleted.')
    expect(member(await drained.done)).toMatchObject({ outcome: 'gone', verifiedIdle: false })
  })

  it.concurrent(
    'removed once idle, pooled connections and 2.6 framing included',
    async ({ expect }) => {
      await using lb = open()
      await request(haproxy.port('removed'), '/', { cookie: 's1' })
      const report = await drain(
        lb,
        { pool: 'removed', member: 's1' },
        { timeout: '40s', until: 'removed' },
      )
      expect(member(report)).toMatchObject({ outcome: 'removed', verifiedIdle: true })
      expect(await haproxy.stat('removed', 's1', 'status')).toBe('')
      const context = { signal: new AbortController().signal, clock: realClock }
      const ref = { pool: 'removed', member: 's1' }
      const add = { kind: 'add', ref, address: '127.0.0.1', port: haproxy.port('s1') } as const
      expect(await lb.apply([add], context)).toEqual([{ ref, status: 'applied' }])
      expect(await lb.apply([add], context)).toEqual([{ ref, status: 'unchanged' }])
      expect(await look(lb, 'removed')).toMatchObject({ own: 'ready', serves: true })
      const parent = await lb.apply(
        [{ kind: 'remove', ref: { pool: 'boss', member: 's1' } }],
        context,
      )
      expect(parent[0]).toMatchObject({
        status: 'rejected',
        error: { code: 'REJECTED', retryable: false },
      })
    },
  )

  it.concurrent(
    'on-marked-down shutdown-sessions: with maintCuts the door is left open and nothing is cut',
    async ({ expect }) => {
      await using lb = open({ maintCuts: true })
      await using own = await ownBackend('cuts')
      const answer = request(haproxy.port('cuts'), '/stream', { cookie: 's1' })
      await until(() => own.active === 1, 'in flight')
      const ref = { pool: 'cuts', member: 's1' }
      const refused: unknown = await drain(lb, ref, { timeout: '10s', hold: 'maint' }).catch(
        (cause: unknown) => cause,
      )
      expect(refused).toBeInstanceOf(Error)
      expect(await mask('cuts', 's1')).toBe(0)
      const drained = startDrain(lb, ref, { timeout: '20s' })
      await until(async () => (await mask('cuts', 's1')) === 8, 'drained')
      own.release()
      expect(await answer).toMatchObject({ cut: false, body: 'first;done' })
      expect(member(await drained.done)).toMatchObject({ outcome: 'idle', sealed: false })
      expect(await mask('cuts', 's1')).toBe(8)
    },
  )

  it.concurrent(
    'on-marked-up shutdown-backup-sessions: ready cuts nothing on the backup',
    async ({ expect }) => {
      await using lb = open()
      const port = haproxy.port('backup')
      for (const name of ['s1', 's2']) await haproxy.cli(`set server backup/${name} state maint`)
      const before = s2.active
      const answer = request(port, '/stream')
      await until(async () => (await haproxy.stat('backup', 'b1', 'scur')) === '1', 'on the backup')
      await until(() => s2.active > before, 'in flight')
      const { members } = await ready(lb, { pool: 'backup', member: 's1' }, { waitHealthy: '10s' })
      expect(members[0]).toMatchObject({ wasAdmin: 'maint', health: 'up' })
      expect(await haproxy.stat('backup', 's1', 'weight')).toBe('1')
      expect(await haproxy.stat('backup', 'b1', 'scur')).toBe('1')
      s2.release()
      expect(await answer).toMatchObject({ cut: false, body: 'first;done' })
    },
  )

  it.concurrent.for(['persist', 'forced'])(
    'option persist and force-persist override the closed door: idle is lost, and said so (%s)',
    async (pool, { expect }) => {
      await using lb = open()
      const drained = startDrain(lb, { pool, member: 's1' }, { timeout: '10s' })
      expect(member(await drained.done)).toMatchObject({ outcome: 'idle', sealed: true })
      const proved = drained.report().members[0]?.proof?.quietSince
      expect(await request(haproxy.port(pool), '/', { cookie: 's1' })).toMatchObject({
        server: 's1',
      })
      // The last event was `end`; the handle goes on looking until it is closed.
      await until(() => drained.report().members[0]?.phase === 'draining', 'idle is lost')
      await until(() => drained.report().members[0]?.phase === 'idle', 'and proved anew')
      expect(drained.report().members[0]?.proof?.quietSince).not.toBe(proved)
      await drained.close()
    },
  )

  it.concurrent(
    'somebody else sets ready: overruled, or put back where that is wished',
    async ({ expect }) => {
      await using lb = open()
      const drained = startDrain(
        lb,
        { pool: 'overruled', member: 's1' },
        { timeout: '20s', settle: '5s' },
      )
      await until(async () => (await mask('overruled', 's1')) === 8, 'drained')
      await haproxy.cli('set server overruled/s1 state ready')
      expect(member(await drained.done)).toMatchObject({ outcome: 'overruled' })
      expect(await mask('overruled', 's1')).toBe(0)
      const again = startDrain(
        lb,
        { pool: 'reapplied', member: 's1' },
        { timeout: '20s', settle: '2s', onOverrule: 'reapply', seal: false },
      )
      await until(async () => (await mask('reapplied', 's1')) === 8, 'drained')
      await haproxy.cli('set server reapplied/s1 state ready')
      await until(async () => (await mask('reapplied', 's1')) === 8, 'put back')
      expect(member(await again.done)).toMatchObject({ outcome: 'idle', verifiedIdle: true })
    },
  )

  it.concurrent(
    'a member found in maint stays there, one found drained is sealed and given back',
    async ({ expect }) => {
      await using lb = open()
      await haproxy.cli('set server maint/s1 state maint')
      await haproxy.cli('set server maint/s2 state drain')
      const first = startDrain(
        lb,
        { pool: 'maint', member: 's1' },
        { timeout: '10s', keepReady: 0 },
      )
      expect(member(await first.done)).toMatchObject({ outcome: 'idle', wasAdmin: 'maint' })
      await first.restore()
      expect(await mask('maint', 's1')).toBe(1)
      const second = startDrain(
        lb,
        { pool: 'maint', member: 's2' },
        { timeout: '10s', keepReady: 0 },
      )
      expect(member(await second.done)).toMatchObject({ wasAdmin: 'drain', sealed: true })
      await second.restore()
      expect(await mask('maint', 's2')).toBe(8)
    },
  )

  it.concurrent(
    'a drain begun by set server gives load and idle on the adapter',
    async ({ expect }) => {
      await using lb = open()
      await using own = await ownBackend('outside')
      const types = new Set<string>()
      lb.on('load', ({ type }) => types.add(type))
      lb.on('idle', ({ type }) => types.add(type))
      await using seen = watch(lb, { pool: 'outside', member: 's1' })
      const answer = request(haproxy.port('outside'), '/hold', { cookie: 's1' })
      await until(() => own.active === 1, 'in flight')
      await haproxy.cli('set server outside/s1 state drain')
      await until(() => types.has('load'), 'load')
      expect(types.has('idle')).toBe(false)
      own.release()
      await answer
      await until(() => types.has('idle'), 'idle')
      await until(() => seen.report().members[0]?.phase === 'idle', 'idle in the report')
    },
  )

  it.concurrent('ready waits for the first passed check, with fall 1 too', async ({ expect }) => {
    await using lb = open()
    await until(async () => (await look(lb, 'health')).health === 'up', 'up')
    const ref = { pool: 'health', member: 's1' }
    const drained = startDrain(lb, ref, { timeout: '10s' })
    expect(member(await drained.done)).toMatchObject({ outcome: 'idle', sealed: true })
    await drained.close()
    const dead = await freePort()
    await haproxy.cli(`set server health/s1 addr 127.0.0.1 port ${dead}`)
    await until(
      async () => (await haproxy.cli('show servers state health')).includes(` ${dead} `),
      'the address is changed',
    )
    const opening = ready(lb, ref, { waitHealthy: '20s' })
    await until(async () => (await mask('health', 's1')) === 8, 'out of maint, into drain')
    expect(await request(haproxy.port('health'), '/')).toMatchObject({ status: 200, server: 's2' })
    expect(await mask('health', 's1')).toBe(8)
    await using alive = await Backend.start(dead, 'alive')
    expect((await opening).members[0]).toMatchObject({ wasAdmin: 'maint', health: 'up' })
    expect(await mask('health', 's1')).toBe(0)
    expect(await request(haproxy.port('health'), '/', { cookie: 's1' })).toMatchObject({
      status: 200,
      server: 'alive',
    })
    expect(alive.total).toBeGreaterThan(0)
  })

  it.concurrent('300 drains on one process at once', async ({ expect }) => {
    await using lb = open()
    const before = Number(/^CumReq: (\d+)/m.exec(await haproxy.cli('show info'))?.[1])
    const report = await drain(lb, { pool: 'many' }, { timeout: '30s', keepReady: 0 })
    expect(report.members).toHaveLength(300)
    expect(report.members.every(({ verifiedIdle, sealed }) => verifiedIdle && sealed)).toBe(true)
    expect(before).toBeGreaterThan(0)
  })

  it.concurrent('what can be refused is refused before anything is changed', async ({ expect }) => {
    await using lb = open()
    const fails = (target: Parameters<typeof drain>[1], policy = {}): Promise<unknown> =>
      drain(lb, target, { timeout: '5s', ...policy }).catch((cause: unknown) => cause)
    expect(await fails({ pool: 'nope', member: 's1' })).toMatchObject({ code: 'NOT_FOUND' })
    expect(await fails({ pool: 'alone', member: 's9' })).toMatchObject({ code: 'NOT_FOUND' })
    expect(await fails({ pool: 'a b', member: 's1;' })).toMatchObject({ code: 'NOT_FOUND' })
    const minimum = await fails({ pool: 'alone', member: 's1' })
    expect(minimum).toMatchObject({ code: 'POOL_AT_MINIMUM' })
    expect(String(minimum)).toContain('keepReady')
    expect(await mask('alone', 's1')).toBe(0)
  })
})

describe.each(engines('haproxy'))('sockets of HAProxy $version', (engine) => {
  const config = (port: (name: string) => number): string => `
frontend f_web
  bind 127.0.0.1:${port('web')}
  default_backend web
backend web
  cookie SRV insert
  server s1 127.0.0.1:${port('s1')} cookie s1
  server s2 127.0.0.1:${port('s2')} cookie s2`
  const ref = { pool: 'web', member: 's1' }

  it.concurrent('backends whose names are the numbers of others', async ({ expect }) => {
    await using haproxy = await Haproxy.start({
      engine,
      mode: 'plain',
      config: (port) =>
        [5, 4, 3, 2, 1, 6]
          .map(
            (name) => `
frontend ${name}
  bind 127.0.0.1:${port(`in${name}`)}
  default_backend ${name}
backend ${name}
${Array.from({ length: 20 }, (_, index) => `  server ${index} 127.0.0.1:${port('s1')}`).join('\n')}`,
          )
          .join('\n'),
    })
    await using lb = haproxyRuntime({ socket: haproxy.socket })
    const refs = ['1', '2', '3', '4', '5', '6'].map((pool) => ({ pool, member: '7' }))
    const report = await drain(lb, refs, { timeout: '10s', seal: false })
    expect(report.members.every(({ verifiedIdle }) => verifiedIdle)).toBe(true)
    for (const { pool } of refs) {
      expect(await haproxy.stat(pool, '7', 'status')).toBe('DRAIN')
      expect(await haproxy.stat(pool, '6', 'status')).toBe('no check')
      expect(await haproxy.stat(pool, 'BACKEND', 'act')).toBe('19')
    }
  })

  it.concurrent('level operator: can look, is refused before any change', async ({ expect }) => {
    await using haproxy = await Haproxy.start({ engine, config, level: 'operator', mode: 'master' })
    await using lb = haproxyRuntime({ socket: haproxy.socket, master: haproxy.master })
    expect(await select(lb, { pool: 'web' })).toHaveLength(2)
    const error: unknown = await drain(lb, ref, { timeout: '5s' }).catch((cause: unknown) => cause)
    expect(error).toMatchObject({ code: 'FORBIDDEN' })
    expect(String(error)).toContain('level admin')
    expect(await haproxy.stat('web', 's1', 'status')).toBe('no check')
  })

  it.concurrent('a short stats timeout and few connections are enough', async ({ expect }) => {
    await using haproxy = await Haproxy.start({
      engine,
      config,
      mode: 'plain',
      global: '  stats timeout 200ms\n  stats maxconn 2',
    })
    await using backend = await Backend.start(haproxy.port('s1'), 's1')
    await using lb = haproxyRuntime({ socket: haproxy.socket, maxConnections: 1 })
    const answer = request(haproxy.port('web'), '/hold', { cookie: 's1' })
    await until(() => backend.active === 1, 'in flight')
    const drained = startDrain(lb, ref, { timeout: '20s', until: 'removed' })
    await until(() => drained.why().some(({ count }) => count === 1), 'why() counts one')
    await until(async () => (await haproxy.stat('web', 's1', 'status')) === 'DRAIN', 'drained')
    backend.release()
    await answer
    const report = await drained.done
    // `balance roundrobin` is the default: servers can be deleted.
    expect(member(report)).toMatchObject({ outcome: 'removed', verifiedIdle: true })
  })

  it.concurrent(
    'stats maxconn used up: no answer is an error that names it, never an idle',
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
      const error: unknown = await drain(lb, ref, { timeout: '2s' }).catch(
        (cause: unknown) => cause,
      )
      expect(error).toMatchObject({ code: 'CALL_TIMEOUT' })
      expect(String(error)).toContain('stats maxconn')
      for (const socket of others) socket.destroy()
      // The kernel refuses a connection as long as HAProxy has not taken those that wait.
      const status = await until(
        () => haproxy.stat('web', 's1', 'status').catch(() => undefined),
        'a free place',
      )
      expect(status).toBe('no check')
      expect(member(await drain(lb, ref, { timeout: '10s' }))).toMatchObject({ outcome: 'idle' })
    },
  )

  it.concurrent(
    'an aborted drain that a frozen process executes late does not undo ready',
    async ({ expect }) => {
      await using haproxy = await Haproxy.start({ engine, config, mode: 'plain' })
      await using lb = haproxyRuntime({ socket: haproxy.socket, replyTimeout: '1s' })
      for (let round = 0; round < 3; round += 1) {
        await select(lb, ref)
        const pid = await haproxy.signal('SIGSTOP')
        const stop = new AbortController()
        const aborted = drain(lb, ref, { timeout: '10s', signal: stop.signal }).catch(
          (cause: unknown) => cause,
        )
        setTimeout(() => stop.abort(new Error('stopped by the caller')), 100)
        expect(await aborted).toMatchObject({ message: 'stopped by the caller' })
        process.kill(pid, 'SIGCONT')
        await ready(lb, ref, { waitHealthy: false })
        await until(async () => (await haproxy.stat('web', 's1', 'status')) === 'no check', 'ready')
      }
    },
  )
})

describe('sockets that are none', () => {
  it.each([
    [{ socket: '/nonexistent/admin.sock' }, 'UNREACHABLE', /no such socket/],
    [{ socket: { host: '127.0.0.1', port: 1 } }, 'UNREACHABLE', /nobody listens/],
  ])('%j', async (options, code, words) => {
    await using lb = haproxyRuntime(options)
    const error: unknown = await drain(lb, { pool: 'web', member: 's1' }, { timeout: '2s' }).catch(
      (cause: unknown) => cause,
    )
    expect(error).toMatchObject({ code })
    expect(String(error)).toMatch(words)
  })
})

const realClock = {
  now: () => performance.now(),
  setTimeout(fn: () => void, ms: number): () => void {
    const timer = setTimeout(fn, ms)
    return () => clearTimeout(timer)
  },
}
