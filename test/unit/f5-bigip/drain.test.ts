import { createServer, connect as connectTcp, type AddressInfo } from 'node:net'
import { once } from 'node:events'
import { drain, isDrainableError, ready, restore, startDrain, type DrainEvent } from 'drainable'
import { expect, test } from 'vitest'
import { ioClock } from '../../support/io-clock.js'
import { ctx, lines, present, rig, until, WEB1, WEB2 } from './rig.js'

const FAST = { settle: '50ms', timeout: '50s' } as const

test('a busy member is idle when its connections have ended, and sealed', async () => {
  await using it = await rig()
  const end = await it.fake.occupy(WEB1, 3)
  const run = startDrain(it.lb, WEB1, FAST)
  await until('it is disabled', () => it.fake.state(WEB1) === 'drain')
  expect(run.report().members[0]?.outcome).not.toBe('idle')
  await end()
  const report = await run.done
  expect(report.outcome).toBe('idle')
  expect(report.members[0]).toMatchObject({ verifiedIdle: true, sealed: true, wasAdmin: 'ready' })
  expect(it.fake.state(WEB1)).toBe('maint')
  expect(it.fake.state(WEB2)).toBe('ready')
  await run.close()
  await ready(it.lb, WEB1, { waitHealthy: '5s' })
  expect(it.fake.state(WEB1)).toBe('ready')
  const writes = it.fake.requests.filter(({ method }) => method === 'PATCH')
  expect(writes.length).toBeGreaterThanOrEqual(3)
  for (const { body } of writes) expect(Object.keys(body as object)).toEqual(['session', 'state'])
})

test('samples are dated back by the possible lag of statistics', async () => {
  await using it = await rig({}, { freshness: '3s' })
  const asked = performance.now()
  const [scope] = (await present(it.lb, WEB1)).scopes
  expect(scope?.sampledAt).toBeGreaterThanOrEqual(asked - 3_000)
  expect(scope?.sampledAt).toBeLessThan(performance.now() - 2_999)
})

test('after a failover in mid-drain idle is proved on the other unit', async () => {
  await using it = await rig({ pair: true })
  await it.fake.occupy(WEB1)
  const events: DrainEvent[] = []
  const run = startDrain(it.lb, WEB1, { ...FAST, onEvent: (e) => events.push(e) })
  await until('it is disabled', () => it.fake.state(WEB1, 'bigip1.example.com') === 'drain')
  await it.fake.failover()
  const end = await it.fake.occupy(WEB1)
  await until('the other one too', () => it.fake.state(WEB1, 'bigip2.example.com') === 'drain')
  await end()
  const report = await run.done
  expect(report.outcome).toBe('idle')
  expect(it.fake.state(WEB1, 'bigip2.example.com')).toBe('maint')
  await run.close()
})

test('a restart of the control plane in mid-drain is not a disappearance', async () => {
  await using it = await rig()
  const end = await it.fake.occupy(WEB1)
  const run = startDrain(it.lb, WEB1, FAST)
  await until('it is disabled', () => it.fake.state(WEB1) === 'drain')
  await it.fake.restart({ ms: 900, keep: true })
  await end()
  const report = await run.done
  expect(report.outcome).toBe('idle')
  await run.close()
})

test('no member is called absent while the configuration loads', async () => {
  await using it = await rig()
  await present(it.lb, WEB1)
  it.fake.setStage('loading')
  await expect(it.lb.observe([WEB1], ctx())).rejects.toMatchObject({
    code: 'CONFLICT',
    retryable: true,
  })
  await expect(it.lb.observe('all', ctx())).rejects.toMatchObject({ code: 'CONFLICT' })
  it.fake.setStage('up')
  expect(await present(it.lb, WEB1)).toMatchObject({ own: 'ready' })
})

test('a client that enables the member again overrules the drain', async () => {
  await using it = await rig()
  await it.fake.occupy(WEB1)
  const run = startDrain(it.lb, WEB1, FAST)
  await until('the drain is seen', () => run.report().members[0]?.phase === 'draining')
  await it.fake.setBehind(WEB1, 'ready')
  expect((await run.done).outcome).toBe('overruled')
  expect(it.fake.state(WEB1)).toBe('ready')
})

test('persistence that never ends is ended by escalation', async () => {
  const server = createServer((socket) => socket.pipe(socket)).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const to = `127.0.0.1:${(server.address() as AddressInfo).port}`
  await using it = await rig({
    pools: { web: ['1', '2'].map((n) => ({ name: `10.0.0.${n}:80`, to })) },
  })
  const virtual = await it.fake.virtual('web', { persist: true })
  const visit = async (): Promise<boolean> => {
    const socket = connectTcp(virtual)
    socket.on('error', () => undefined)
    socket.end('hello')
    const [data] = (await Promise.race([once(socket, 'data'), once(socket, 'close')])) as [unknown]
    socket.destroy()
    return Buffer.isBuffer(data)
  }
  expect(await visit()).toBe(true)
  const member = it.fake.load(WEB1).totConns > 0 ? WEB1 : WEB2
  let failed = 0
  const over = new AbortController()
  const clients = (async () => {
    while (!over.signal.aborted) if (!(await visit())) failed += 1
  })()
  const report = await drain(it.lb, member, { ...FAST, settle: '300ms', escalateAfter: '700ms' })
  over.abort()
  await clients
  expect(report.outcome).toBe('idle')
  expect(it.fake.state(member)).toBe('maint')
  expect(failed).toBe(0)
  server.close()
})

test('terminate cuts by address and port, never without its filter', async () => {
  using clock = ioClock()
  await using it = await rig({
    pools: { web: ['10.0.0.1:80', '10.0.0.2:80'], api: ['10.0.0.1:80'] },
  })
  await it.fake.occupy(WEB1, 2)
  await it.fake.occupy(WEB2)
  const policy = { ...FAST, timeout: '5s', onTimeout: 'terminate', clock } as const
  const report = await clock.run(drain(it.lb, WEB1, policy))
  expect(report.outcome).toBe('terminated')
  expect(report.members[0]?.terminated).toBeGreaterThanOrEqual(2)
  expect(it.fake.load(WEB1).curConns).toBe(0)
  expect(it.fake.load(WEB2).curConns).toBe(1)
  const deletes = it.fake.requests.filter((r) => r.method === 'DELETE' && r.path.includes('/sys/'))
  expect(deletes.length).toBeGreaterThan(0)
  for (const { path } of deletes) {
    expect(path).toBe('/mgmt/tm/sys/connection?options=ss-server-addr+10.0.0.1+ss-server-port+80')
  }
  const { hints } = await present(it.lb, WEB1)
  expect(hints?.join()).toContain('other pools too')
})

test('a device that can not cut refuses, and the drain reports left work', async () => {
  await using it = await rig({ connectionDelete: false })
  await it.fake.occupy(WEB1)
  const [result] = await it.lb.apply([{ kind: 'terminate', ref: WEB1 }], ctx())
  expect(result).toMatchObject({ status: 'rejected', error: { code: 'REJECTED' } })
})

test("under until: 'removed' the member leaves the pool once it is idle", async () => {
  await using it = await rig()
  const end = await it.fake.occupy(WEB1)
  const run = startDrain(it.lb, WEB1, { ...FAST, until: 'removed' })
  await until('it is disabled', () => it.fake.state(WEB1) === 'drain')
  expect(lines(it.fake).some((line) => line.startsWith('DELETE /mgmt/tm/ltm'))).toBe(false)
  await end()
  expect((await run.done).outcome).toBe('removed')
  expect(() => it.fake.state(WEB1)).toThrow('no member')
})

test('a busy member leaves the pool at its deadline, and may be cut', async () => {
  await using it = await rig()
  await it.fake.occupy(WEB1)
  const policy = { settle: '50ms', timeout: '3s', until: 'removed', onTimeout: 'remove' } as const
  const { members } = await drain(it.lb, WEB1, policy)
  expect(members[0]).toMatchObject({
    outcome: 'terminated',
    verifiedIdle: false,
    terminated: 1,
    terminatedAtMost: true,
  })
  expect(() => it.fake.state(WEB1)).toThrow('no member')
  expect(lines(it.fake).some((line) => line.includes('/sys/connection'))).toBe(false)
})

test('a node is drained in every pool, and by its address too', async () => {
  await using it = await rig({
    pools: { web: ['10.0.0.1:80', '10.0.0.2:80'], api: ['10.0.0.1:8080', '10.0.0.3:8080'] },
  })
  const api = { pool: '/Common/api', member: '/Common/10.0.0.1:8080' }
  const node = { pool: '@nodes', member: '10.0.0.1' }
  const end = await it.fake.occupy(api)
  const run = startDrain(it.lb, node, FAST)
  await until('the members inherit it', async () => {
    return (await present(it.lb, WEB1)).inherited === 'drain'
  })
  expect(await present(it.lb, WEB1)).toMatchObject({ own: 'ready', serves: false })
  expect(run.report().outcome).not.toBe('idle')
  await end()
  const report = await run.done
  expect(report.outcome).toBe('idle')
  expect((await present(it.lb, WEB1)).inherited).toBe('maint')
  await run.close()
  await ready(it.lb, node)
  expect((await present(it.lb, WEB1)).inherited).toBeUndefined()

  const both = await drain(it.lb, { address: '10.0.0.1' }, FAST)
  expect(both.members.map((m) => m.ref)).toEqual([{ pool: '@nodes', member: '/Common/10.0.0.1' }])
})

test.each([true, false])(
  'an FQDN template is drained with its members (inherits: %s)',
  async (inherits) => {
    const site = { name: 'site:80', fqdn: 'www.example.com' }
    const made = ['7', '8'].map((n) => ({
      name: `_auto_192.0.2.${n}:80`,
      fqdn: 'www.example.com',
      ephemeral: true,
    }))
    await using it = await rig({
      pools: { web: ['10.0.0.1:80', site, ...made] },
      fqdnInherits: inherits,
    })
    const template = { pool: 'web', member: 'site:80' }
    const seventh = { pool: 'web', member: '_auto_192.0.2.7:80' }
    const end = await it.fake.occupy(seventh)
    const before = await present(it.lb, template)
    expect(before).toMatchObject({ own: 'ready', serves: true, port: 80 })
    expect(before.address).toBeUndefined()
    const run = startDrain(it.lb, template, FAST)
    await until('they are disabled', () => it.fake.state(seventh) === 'drain')
    expect(run.report().outcome).not.toBe('idle')
    // DNS brings another one, which is enabled: it is drained as well
    it.fake.addMember('web', {
      name: '_auto_192.0.2.9:80',
      fqdn: 'www.example.com',
      ephemeral: true,
    })
    const ninth = { pool: 'web', member: '_auto_192.0.2.9:80' }
    await until('the new one too', () => it.fake.state(ninth) !== 'ready')
    await end()
    const report = await run.done
    expect(report.outcome).toBe('idle')
    expect(it.fake.state(seventh)).toBe('maint')
    await run.close()
  },
)

test('an ephemeral member that vanishes with its work is reported as lost', async () => {
  const made = { name: '_auto_192.0.2.7:80', fqdn: 'www.example.com', ephemeral: true }
  await using it = await rig({
    pools: { web: ['10.0.0.1:80', { name: 'site:80', fqdn: 'www.example.com' }, made] },
  })
  const seventh = { pool: 'web', member: '_auto_192.0.2.7:80' }
  await it.fake.occupy(seventh)
  const run = startDrain(it.lb, { pool: 'web', member: 'site:80' }, FAST)
  await until('it is disabled and read', async () => {
    return it.fake.state(seventh) === 'drain' && run.report().members[0]?.phase === 'draining'
  })
  await until('its work was seen', () => run.why().some(({ count }) => count === 1))
  await it.fake.setBehind(seventh, 'gone')
  const report = await run.done
  expect(report.members[0]).toMatchObject({ verifiedIdle: false })
  expect(report.members[0]?.lost).toMatchObject([{ active: 1 }])
  await run.close()
})

test('a deadline with work left leaves it disabled, and restore undoes that', async () => {
  using clock = ioClock()
  await using it = await rig()
  await it.fake.occupy(WEB1)
  await using run = startDrain(it.lb, WEB1, { ...FAST, timeout: '5s', clock })
  expect((await clock.run(run.done)).outcome).toBe('timeout')
  expect(it.fake.state(WEB1)).toBe('drain')
  await clock.run(restore(it.lb, await run.ticket, { clock }))
  expect(it.fake.state(WEB1)).toBe('ready')
})

test('a missing member is NOT_FOUND', async () => {
  await using it = await rig()
  const nobody = { pool: 'web', member: '9.9.9.9:80' }
  const error: unknown = await drain(it.lb, nobody, FAST).catch((e: unknown) => e)
  expect(isDrainableError(error, 'NOT_FOUND')).toBe(true)
})
