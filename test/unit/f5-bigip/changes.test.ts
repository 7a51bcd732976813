import { drain } from 'drainable'
import type { DrainableError, DrainReport } from 'drainable'
import { expect, test } from 'vitest'
import { connectionPath } from '../../../src/adapters/f5-bigip/change/connections.js'
import { ioClock } from '../../support/io-clock.js'
import { connect, ctx, lines, present, read, rig, until, WEB1, WEB2 } from './rig.js'

const hold = (ref: { pool: string; member: string }, to: 'drain' | 'maint' = 'drain') =>
  ({ kind: 'hold', ref, to }) as const

test('the drain of several members is one request for each', async () => {
  const names = Array.from({ length: 5 }, (_, i) => `10.0.0.${i + 1}:80`)
  await using it = await rig({ pools: { web: names } })
  const refs = names.map((member) => ({ pool: 'web', member }))
  const results = await it.lb.apply(
    refs.map((ref) => hold(ref)),
    ctx(),
  )
  expect(results.map(({ status }) => status)).toEqual(Array(5).fill('applied'))
  for (const ref of refs) expect(it.fake.state(ref)).toBe('drain')
  // role, list, login; five changes; whether it is in sync
  expect(it.fake.requests).toHaveLength(3 + 5 + 1)
  expect(it.fake.peak).toBe(1)
})

test('a look comes in between the changes of many members', async () => {
  const names = Array.from({ length: 20 }, (_, i) => `10.0.0.${i + 1}:80`)
  await using it = await rig({ pools: { web: names }, latency: 10 }, { callTimeout: '1m' })
  const sent = () => lines(it.fake).filter((line) => line.startsWith('PATCH')).length
  const ended = it.lb.apply(
    names.map((member) => hold({ pool: 'web', member })),
    ctx(),
  )
  await until('the first is sent', () => sent() > 0)
  await it.lb.observe([WEB1], ctx())
  expect(sent()).toBeLessThan(names.length)
  await ended
})

test('a refusal stops only the member it is about', async () => {
  const strict = { name: '10.0.0.3:80', strict: true }
  await using it = await rig({ pools: { web: ['10.0.0.1:80', '10.0.0.2:80', strict] } })
  const third = { pool: '/Common/web', member: '/Common/10.0.0.3:80' }
  const results = await it.lb.apply([hold(WEB1), hold(third), hold(WEB2)], ctx())
  expect(results.map(({ status }) => status)).toEqual(['applied', 'rejected', 'applied'])
  expect(results[1]).toMatchObject({ error: { code: 'REJECTED' } })
  expect(it.fake.state(WEB1)).toBe('drain')
  expect(it.fake.state(third)).toBe('ready')
})

test('a write that something else answered is read back, and refused', async () => {
  await using it = await rig({ pools: { web: ['10.0.0.1:80', '10.0.0.2:80', '10.0.0.3:80'] } })
  const third = { pool: '/Common/web', member: '/Common/10.0.0.3:80' }
  // Something in front of the device answers in its place.
  it.fake.fail({ match: /^PATCH .*10\.0\.0\.3/, how: 'status', status: 200, body: {}, times: 1 })
  const results = await it.lb.apply([hold(WEB1), hold(third), hold(WEB2)], ctx())
  expect(results.map(({ status }) => status)).toEqual(['applied', 'rejected', 'applied'])
  expect([WEB1, third, WEB2].map((ref) => it.fake.state(ref))).toEqual(['drain', 'ready', 'drain'])
})

test('a write whose answer was lost is read back, and not repeated', async () => {
  await using it = await rig()
  it.fake.fail({ match: /^PATCH/, how: 'reset', execute: true, times: 1 })
  const [result] = await it.lb.apply([hold(WEB1)], ctx())
  expect(result).toMatchObject({ status: 'applied' })
  expect(lines(it.fake).filter((line) => line.startsWith('PATCH'))).toHaveLength(1)
})

test('a write refused by a busy device is sent again after a look', async () => {
  await using it = await rig()
  const body = { code: 500, message: 'The connection to mcpd has been lost, try again.' }
  it.fake.fail({ match: /^PATCH/, how: 'status', status: 500, body, times: 1 })
  const [result] = await it.lb.apply([hold(WEB1)], ctx())
  expect(result).toMatchObject({ status: 'applied' })
  it.fake.fail({ match: /^PATCH/, how: 'status', status: 503, times: 2 })
  const [second] = await it.lb.apply([hold(WEB2)], ctx())
  expect(second).toMatchObject({ status: 'unknown', error: { code: 'CONFLICT' } })
})

test('a removal that may have happened is not repeated', async () => {
  await using it = await rig()
  it.fake.fail({ match: /^DELETE/, how: 'status', status: 503, times: 1 })
  const [result] = await it.lb.apply([{ kind: 'remove', ref: WEB1 }], ctx())
  expect(result).toMatchObject({ status: 'unknown' })
  expect(lines(it.fake).filter((line) => line.startsWith('DELETE'))).toHaveLength(1)
})

test('a restore puts odd words back as they were', async () => {
  await using it = await rig()
  // Forced offline by state alone: a session that still says enabled
  const path = '/mgmt/tm/ltm/pool/~Common~web/members/~Common~10.0.0.1:80'
  const { native } = await present(it.lb, WEB1)
  expect(native).toEqual({ session: 'monitor-enabled', state: 'up' })
  await it.lb.apply([hold(WEB1, 'maint')], ctx())
  const odd = { session: 'user-enabled', state: 'user-down' }
  const [kept] = await it.lb.apply(
    [{ kind: 'restore', ref: WEB1, expect: 'maint', to: 'maint', native: odd }],
    ctx(),
  )
  expect(kept).toMatchObject({ status: 'unchanged' })
  const [back] = await it.lb.apply(
    [{ kind: 'restore', ref: WEB1, expect: 'maint', to: 'ready', native: odd }],
    ctx(),
  )
  expect(back).toMatchObject({ status: 'applied' })
  const last = it.fake.requests.findLast((r) => r.method === 'PATCH')
  expect(last).toMatchObject({ path, body: { session: 'user-enabled', state: 'user-up' } })
})

test('names of route domains, IPv6 and partitions are right on the wire', async () => {
  await using it = await rig({
    pools: {
      web: ['10.0.0.8%1:80', '2001:db8::1.80', { name: 'app1:80', address: '10.9.9.9' }],
      '/Tenant/App/pool': [{ name: '/Common/10.0.0.1:443' }],
    },
  })
  const names = [
    ['web', '10.0.0.8%1:80'],
    ['web', '[2001:0db8::1]:80'],
    ['web', '2001:db8::1.80'],
    ['web', 'app1:80'],
    ['web', 'app1'],
    ['web', '10.9.9.9:80'],
    ['/Tenant/App/pool', '/Common/10.0.0.1:443'],
    ['/Tenant/App/pool', '10.0.0.1:443'],
  ] as const
  const refs = names.map(([pool, member]) => ({ pool, member }))
  const { readings } = await it.lb.observe(refs, ctx())
  expect(readings.map((reading) => reading.present)).toEqual(names.map(() => true))
  expect(readings[0]).toMatchObject({ address: '10.0.0.8%1', port: 80 })
  for (const ref of refs) await it.lb.apply([hold(ref)], ctx())
  const paths = new Set(
    it.fake.requests.filter((r) => r.method === 'PATCH').map((r) => r.path.split('/members/')[1]),
  )
  expect([...paths]).toEqual([
    '~Common~10.0.0.8%251:80',
    '~Common~2001:db8::1.80',
    '~Common~app1:80',
    '~Common~10.0.0.1:443',
  ])
  expect(await read(it.lb, { pool: 'Web', member: 'app1:80' })).toMatchObject({ present: false })
})

test('a name of several members is refused, never guessed', async () => {
  await using it = await rig({ pools: { web: ['10.0.0.1:80', '10.0.0.1:443'] } })
  await expect(it.lb.observe([{ pool: 'web', member: '10.0.0.1' }], ctx())).rejects.toMatchObject({
    code: 'INVALID_OPTIONS',
  })
})

test('a short name keeps its meaning', async () => {
  await using it = await rig({ pools: { web: ['10.0.0.1:80', '10.0.0.2:80'] } })
  const ref = { pool: 'web', member: '10.0.0.1' }
  expect(await present(it.lb, ref)).toMatchObject({ port: 80 })
  it.fake.addMember('web', '10.0.0.1:443')
  expect(await present(it.lb, ref)).toMatchObject({ port: 80 })
  await it.fake.setBehind(WEB1, 'gone')
  expect(await read(it.lb, ref)).toMatchObject({ present: false })
})

test('connections are deleted by one address and one port, or not at all', () => {
  expect(connectionPath('10.0.0.8%1', 80)).toBe(
    '/mgmt/tm/sys/connection?options=ss-server-addr+10.0.0.8%251+ss-server-port+80',
  )
  expect(connectionPath('2001:db8::1', 443)).toContain('+2001:db8::1+ss-server-port+443')
  for (const [address, port] of [
    [undefined, 80],
    ['', 80],
    ['any6', 80],
    ['::', 80],
    ['0.0.0.0', 80],
    ['web1', 80],
    ['10.0.0.1+x', 80],
    ['10.0.0.1', 0],
    ['10.0.0.1', 70_000],
    ['10.0.0.1', Number.NaN],
  ] as const) {
    expect(() => connectionPath(address, port)).toThrow(/one address and one port/)
  }
})

test('in a pair without sync the change goes to the active unit only', async () => {
  await using it = await rig({ pair: true })
  await it.lb.apply([hold(WEB1)], ctx())
  expect(it.fake.state(WEB1, it.fake.units[0])).toBe('drain')
  expect(it.fake.state(WEB1, it.fake.units[1])).toBe('ready')
  expect(lines(it.fake).some((line) => line.startsWith('POST /mgmt/tm/cm'))).toBe(false)
  expect((await present(it.lb, WEB1)).hints?.join()).toMatch(/Changes Pending.*configSync/)
})

test.each(['both units', 'the active one'])(
  'a change that waits for a push is in why(), with %s in url',
  async (given) => {
    using clock = ioClock()
    await using it = await rig({ pair: true })
    await using lb = connect(it.fake, given === 'both units' ? {} : { url: it.fake.url })
    await it.fake.occupy(WEB1)
    const policy = { timeout: '8s', settle: '50ms', clock } as const
    const drained = drain(lb, WEB1, policy).catch((thrown: unknown) => thrown)
    const error = await clock.run(drained)
    expect(error).toMatchObject({ code: 'DRAIN_TIMEOUT' })
    const { message, report } = error as DrainableError & { report: DrainReport }
    expect(message).toMatch(/1 in flight.*Changes Pending.*configSync/)
    expect(report.members[0]!.why.map(({ text }) => text).join()).toContain('Changes Pending')
  },
)

test('a device without a group is asked for its sync once', async () => {
  await using it = await rig()
  for (const to of ['drain', 'maint'] as const)
    await it.lb.apply([{ kind: 'hold', ref: WEB1, to }], ctx())
  const asked = lines(it.fake).filter((line) => line.includes('sync-status'))
  expect(asked).toHaveLength(1)
})

test('configSync and save: change, push, wait and save, in that order', async () => {
  await using it = await rig({ pair: true }, { configSync: { group: 'dg1' }, save: true })
  const [result] = await it.lb.apply([hold(WEB1)], ctx())
  expect(result).toMatchObject({ status: 'applied' })
  expect(it.fake.state(WEB1, it.fake.units[1])).toBe('drain')
  const writes = lines(it.fake).filter(
    (line) => /^(PATCH|POST)/.test(line) && !line.includes('login'),
  )
  expect(writes).toEqual([
    'PATCH /mgmt/tm/ltm/pool/~Common~web/members/~Common~10.0.0.1:80',
    'POST /mgmt/tm/cm',
    'POST /mgmt/tm/sys/config',
  ])
})

test('pending changes of others are not pushed along', async () => {
  await using it = await rig({ pair: true }, { configSync: { group: 'dg1' } })
  await it.fake.setBehind(WEB2, 'drain')
  const [result] = await it.lb.apply([hold(WEB1)], ctx())
  expect(result).toMatchObject({
    status: 'rejected',
    error: { code: 'CONFLICT', retryable: false },
  })
  expect(it.fake.state(WEB1)).toBe('ready')
})

test('a failed push does not undo the drain, and every reading says so', async () => {
  await using it = await rig({ pair: true }, { configSync: { group: 'dg1' } })
  const recovers = it.fake.fail({
    match: /^POST \/mgmt\/tm\/cm$/,
    how: 'status',
    status: 400,
    body: { code: 400, message: 'no' },
  })
  const [result] = await it.lb.apply([hold(WEB1)], ctx())
  expect(result).toMatchObject({ status: 'applied' })
  expect((await present(it.lb, WEB1)).unverified).toContain('not carried further')
  await recovers()
  await it.lb.apply([hold(WEB1, 'maint')], ctx())
  expect((await present(it.lb, WEB1)).unverified).toBeUndefined()
})

test('without an active unit nothing is written and nothing is idle', async () => {
  await using it = await rig()
  await it.fake.failover()
  await expect(it.lb.observe([WEB1], ctx())).rejects.toThrow(/STANDBY.*all units/)
  const [result] = await it.lb.apply([hold(WEB1)], ctx())
  expect(result).toMatchObject({ status: 'rejected', error: { code: 'CONFLICT', retryable: true } })
})
