/** Servers as they are configured and as other clients leave them, in one HAProxy of each version. */
import { drain, ready, restore, startDrain, watch } from 'drainable'
import { callContext } from 'drainable/provider'
import { afterAll, beforeAll, describe, it } from 'vitest'
import { engines } from '../../support/engines.js'
import { freePort, type Haproxy, until } from '../../support/haproxy.js'
import {
  lab,
  type Lab,
  look,
  member,
  moveServer,
  ownBackend,
  site,
  type Site,
} from '../../support/haproxy-lab.js'
import { Backend, request } from '../../support/haproxy-traffic.js'

describe.each(engines('haproxy'))('HAProxy $version', (engine) => {
  let all: Lab
  let haproxy: Haproxy
  const hasInitState = !['2.6', '3.0'].includes(engine.series)

  beforeAll(async () => {
    all = await lab({
      engine,
      global: '  stats timeout 30s\n  stats maxconn 100',
      config: (port) => {
        const web = (name: string, more: Site = {}): string => site(port, name, more)
        return `
${web('disabled', { s1: 'disabled' })}
${web('boss', { s1: 'check inter 100' })}
backend staff
  server c1 127.0.0.1:${port('s1')} track boss/s1
${web('slot')}
${web('deleted')}
${web('removed')}
${web('cuts', { s1: 'on-marked-down shutdown-sessions' })}
${web('backup', {
  backend: `  server b1 127.0.0.1:${port('s2')} backup`,
  s1: 'check inter 100 on-marked-up shutdown-backup-sessions',
})}
${web('cold', {
  backend: `  server b1 127.0.0.1:${port('s2')} backup`,
  s1: 'check inter 300 fall 1 rise 2 on-marked-up shutdown-backup-sessions',
})}
${web('persist', { backend: '  option persist' })}
${web('forced', { backend: '  force-persist if TRUE' })}
${web('overruled')}
${web('reapplied')}
${web('maint')}
${web('outside')}
${web('health', { s1: 'check inter 200 fall 1 rise 2' })}
${hasInitState ? web('full', { s1: 'check inter 200 fall 3 rise 2 init-state fully-up' }) : ''}
${engine.series === '2.6' ? '' : `backend logs\n  mode log\n  server s1 udp@127.0.0.1:${port('logs')}`}
backend alone
  server s1 127.0.0.1:${port('s1')}
backend many
${Array.from({ length: 300 }, (_, index) => `  server m${index} 127.0.0.1:${port('s1')}`).join('\n')}`
      },
    })
    haproxy = all.haproxy
  })

  afterAll(() => all[Symbol.asyncDispose]())

  it.concurrent(
    'a server configured as disabled stays in maint, and drains once ready',
    async ({ expect }) => {
      await using lb = all.provider()
      const ref = { pool: 'disabled', member: 's1' }
      const found = startDrain(lb, ref, { timeout: '10s' })
      expect(member(await found.done)).toMatchObject({
        outcome: 'idle',
        wasAdmin: 'maint',
        sealed: true,
      })
      await restore(lb, await found.ticket)
      expect(await haproxy.mask('disabled', 's1')).toBe(5)
      await haproxy.cli('set server disabled/s1 state ready')
      expect(await haproxy.mask('disabled', 's1')).toBe(4)
      expect(await look(lb, 'disabled')).toMatchObject({ own: 'ready', serves: true })
      const drained = startDrain(lb, ref, { timeout: '10s', seal: false })
      expect(member(await drained.done)).toMatchObject({ outcome: 'idle', wasAdmin: 'ready' })
      expect(await haproxy.mask('disabled', 's1')).toBe(12)
    },
  )

  it.concurrent(
    'a slot reused for another address is another member, left alone',
    async ({ expect }) => {
      await using lb = all.provider()
      await using own = await ownBackend(haproxy, 'slot')
      const answer = request(haproxy.port('slot'), '/hold', { cookie: 's1' })
      await until(() => own.active === 1, 'in flight')
      const drained = startDrain(lb, { pool: 'slot', member: 's1' }, { timeout: '20s' })
      await until(async () => (await haproxy.mask('slot', 's1')) === 8, 'drained')
      await haproxy.cli(`set server slot/s1 addr 127.0.0.1 port ${haproxy.port('s2')}`)
      const report = await drained.done
      expect(member(report)).toMatchObject({ outcome: 'gone', verifiedIdle: false })
      expect(await haproxy.mask('slot', 's1')).toBe(8)
      own.release()
      await answer
    },
  )

  it.concurrent(
    'a member deleted in mid-drain is gone, and not called idle',
    async ({ expect }) => {
      await using lb = all.provider()
      const drained = startDrain(
        lb,
        { pool: 'deleted', member: 's1' },
        { timeout: '20s', settle: '5s' },
      )
      await until(async () => (await haproxy.mask('deleted', 's1')) === 8, 'drained')
      await haproxy.cli('set server deleted/s1 state maint')
      expect(await haproxy.cli('del server deleted/s1')).toContain('Server deleted.')
      expect(member(await drained.done)).toMatchObject({ outcome: 'gone', verifiedIdle: false })
    },
  )

  it.concurrent(
    'an idle member is removed, with pooled connections and 2.6 framing too',
    async ({ expect }) => {
      await using lb = all.provider()
      await request(haproxy.port('removed'), '/', { cookie: 's1' })
      const report = await drain(
        lb,
        { pool: 'removed', member: 's1' },
        { timeout: '40s', until: 'removed' },
      )
      expect(member(report)).toMatchObject({ outcome: 'removed', verifiedIdle: true })
      expect(await haproxy.stat('removed', 's1', 'status')).toBe('')
      const context = callContext()
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
    'with shutdown-sessions and maintCuts nothing is cut or sealed',
    async ({ expect }) => {
      await using lb = all.provider({ maintCuts: true })
      await using own = await ownBackend(haproxy, 'cuts')
      const answer = request(haproxy.port('cuts'), '/stream', { cookie: 's1' })
      await until(() => own.active === 1, 'in flight')
      const ref = { pool: 'cuts', member: 's1' }
      const refused: unknown = await drain(lb, ref, { timeout: '10s', hold: 'maint' }).catch(
        (cause: unknown) => cause,
      )
      expect(refused).toBeInstanceOf(Error)
      expect(await haproxy.mask('cuts', 's1')).toBe(0)
      const drained = startDrain(lb, ref, { timeout: '20s' })
      await until(async () => (await haproxy.mask('cuts', 's1')) === 8, 'drained')
      own.release()
      expect(await answer).toMatchObject({ cut: false, body: 'first;done' })
      expect(member(await drained.done)).toMatchObject({ outcome: 'idle', sealed: false })
      expect(await haproxy.mask('cuts', 's1')).toBe(8)
    },
  )

  it.concurrent(
    'on-marked-up shutdown-backup-sessions: ready cuts no backup session',
    async ({ expect }) => {
      await using lb = all.provider()
      const port = haproxy.port('backup')
      for (const name of ['s1', 's2']) await haproxy.cli(`set server backup/${name} state maint`)
      const before = all.s2.active
      const answer = request(port, '/stream')
      await until(async () => (await haproxy.stat('backup', 'b1', 'scur')) === '1', 'on the backup')
      await until(() => all.s2.active > before, 'in flight')
      const { members } = await ready(lb, { pool: 'backup', member: 's1' }, { waitHealthy: '10s' })
      expect(members[0]).toMatchObject({ wasAdmin: 'maint', health: 'up' })
      expect(await haproxy.stat('backup', 's1', 'weight')).toBe('1')
      expect(await haproxy.stat('backup', 'b1', 'scur')).toBe('1')
      all.s2.release()
      expect(await answer).toMatchObject({ cut: false, body: 'first;done' })
    },
  )

  it.concurrent(
    'on-marked-up shutdown-backup-sessions: a check that passes cuts no backup session',
    async ({ expect }) => {
      await using lb = all.provider()
      const ref = { pool: 'cold', member: 's1' }
      const port = await freePort()
      await using own = await Backend.start(port, 'b1')
      await moveServer(haproxy, 'cold', port, 'b1')
      await until(async () => (await look(lb, 'cold')).health === 'up', 'up')
      for (const name of ['s1', 's2']) await haproxy.cli(`set server cold/${name} state maint`)
      const undo = { kind: 'restore', ref, expect: 'maint', to: 'drain' } as const
      expect(await lb.apply([undo], callContext())).toEqual([{ ref, status: 'applied' }])
      const answer = request(haproxy.port('cold'), '/stream')
      await until(() => own.active === 1, 'in flight on the backup')
      const status = (): Promise<string> => haproxy.stat('cold', 's1', 'status')
      await until(async () => (await status()).startsWith('DRAIN'), 'up under drain')
      expect(await haproxy.stat('cold', 'b1', 'scur')).toBe('1')
      own.release()
      expect(await answer).toMatchObject({ cut: false, body: 'first;done' })
    },
  )

  it.concurrent.for(['persist', 'forced'])(
    'option persist and force-persist lose an idle, and that is said (%s)',
    async (pool, { expect }) => {
      await using lb = all.provider()
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
    'a ready set by another client overrules, or is put back on request',
    async ({ expect }) => {
      await using lb = all.provider()
      const drained = startDrain(
        lb,
        { pool: 'overruled', member: 's1' },
        { timeout: '20s', settle: '5s' },
      )
      await until(async () => (await haproxy.mask('overruled', 's1')) === 8, 'drained')
      await haproxy.cli('set server overruled/s1 state ready')
      expect(member(await drained.done)).toMatchObject({ outcome: 'overruled' })
      expect(await haproxy.mask('overruled', 's1')).toBe(0)
      const again = startDrain(
        lb,
        { pool: 'reapplied', member: 's1' },
        { timeout: '20s', settle: '2s', onOverrule: 'reapply', seal: false },
      )
      await until(async () => (await haproxy.mask('reapplied', 's1')) === 8, 'drained')
      await haproxy.cli('set server reapplied/s1 state ready')
      await until(async () => (await haproxy.mask('reapplied', 's1')) === 8, 'put back')
      expect(member(await again.done)).toMatchObject({ outcome: 'idle', verifiedIdle: true })
    },
  )

  it.concurrent(
    'a member found in maint stays there, one found drained is sealed',
    async ({ expect }) => {
      await using lb = all.provider()
      await haproxy.cli('set server maint/s1 state maint')
      await haproxy.cli('set server maint/s2 state drain')
      const first = startDrain(
        lb,
        { pool: 'maint', member: 's1' },
        { timeout: '10s', keepReady: 0 },
      )
      expect(member(await first.done)).toMatchObject({ outcome: 'idle', wasAdmin: 'maint' })
      await first.restore()
      expect(await haproxy.mask('maint', 's1')).toBe(1)
      const second = startDrain(
        lb,
        { pool: 'maint', member: 's2' },
        { timeout: '10s', keepReady: 0 },
      )
      expect(member(await second.done)).toMatchObject({ wasAdmin: 'drain', sealed: true })
      await second.restore()
      expect(await haproxy.mask('maint', 's2')).toBe(8)
    },
  )

  it.concurrent(
    'a drain begun by set server emits load and idle on the adapter',
    async ({ expect }) => {
      await using lb = all.provider()
      await using own = await ownBackend(haproxy, 'outside')
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

  it.concurrent.for(hasInitState ? ['health', 'full'] : ['health'])(
    'ready waits for the first passed check, whatever the counts begin with (%s)',
    async (pool, { expect }) => {
      await using lb = all.provider()
      await until(async () => (await look(lb, pool)).health === 'up', 'up')
      const ref = { pool, member: 's1' }
      const drained = startDrain(lb, ref, { timeout: '10s' })
      expect(member(await drained.done)).toMatchObject({ outcome: 'idle', sealed: true })
      await drained.close()
      const dead = await freePort()
      await moveServer(haproxy, pool, dead)
      const opening = ready(lb, ref, { waitHealthy: '20s' })
      await until(async () => (await haproxy.mask(pool, 's1')) === 8, 'out of maint, into drain')
      expect(await request(haproxy.port(pool), '/')).toMatchObject({ status: 200, server: 's2' })
      const said = (): Promise<string> => haproxy.stat(pool, 's1', 'check_status')
      await until(async () => (await said()).endsWith('L4CON'), 'a failed check')
      expect(await haproxy.mask(pool, 's1')).toBe(8)
      await using alive = await Backend.start(dead, 'alive')
      expect((await opening).members[0]).toMatchObject({ wasAdmin: 'maint', health: 'up' })
      expect(await haproxy.mask(pool, 's1')).toBe(0)
      expect(await request(haproxy.port(pool), '/', { cookie: 's1' })).toMatchObject({
        status: 200,
        server: 'alive',
      })
      expect(alive.total).toBeGreaterThan(0)
    },
  )

  if (engine.series !== '2.6')
    it.concurrent('messages of mode log are in no count: not verified', async ({ expect }) => {
      await using lb = all.provider()
      const ref = { pool: 'logs', member: 's1' }
      const seen = member(await drain(lb, ref, { timeout: '10s', keepReady: 0 }))
      expect(seen).toMatchObject({ outcome: 'idle', verifiedIdle: false })
      expect(seen.why.map(({ text }) => text).join()).toContain('mode log')
    })

  it.concurrent('one process runs 300 drains at once', async ({ expect }) => {
    await using lb = all.provider()
    const before = Number(/^CumReq: (\d+)/m.exec(await haproxy.cli('show info'))?.[1])
    const report = await drain(lb, { pool: 'many' }, { timeout: '30s', keepReady: 0 })
    expect(report.members).toHaveLength(300)
    expect(report.members.every(({ verifiedIdle, sealed }) => verifiedIdle && sealed)).toBe(true)
    expect(before).toBeGreaterThan(0)
  })

  it.concurrent('what can be refused is refused before anything is changed', async ({ expect }) => {
    await using lb = all.provider()
    const fails = (target: Parameters<typeof drain>[1], policy = {}): Promise<unknown> =>
      drain(lb, target, { timeout: '5s', ...policy }).catch((cause: unknown) => cause)
    expect(await fails({ pool: 'nope', member: 's1' })).toMatchObject({ code: 'NOT_FOUND' })
    expect(await fails({ pool: 'alone', member: 's9' })).toMatchObject({ code: 'NOT_FOUND' })
    expect(await fails({ pool: 'a b', member: 's1;' })).toMatchObject({ code: 'NOT_FOUND' })
    const minimum = await fails({ pool: 'alone', member: 's1' })
    expect(minimum).toMatchObject({ code: 'POOL_AT_MINIMUM' })
    expect(String(minimum)).toContain('keepReady')
    expect(await haproxy.mask('alone', 's1')).toBe(0)
  })
})
