import { drain, plan, ready, restore, select, startDrain } from 'drainable'
import { describe, expect, test } from 'vitest'
import { ioClock, type IoClock } from '../../support/io-clock.js'
import { ctx, lines, present, rig, until, type Rig } from './rig.js'

/** So many pools with two members each: the same two machines are in all of them. */
function pools(count: number, partition = 'Common'): Record<string, string[]> {
  const names = Array.from({ length: count }, (_, i) => `/${partition}/pool${i}`)
  const members = ['/Common/10.0.0.1:80', '/Common/10.0.0.2:80']
  return Object.fromEntries(names.map((name) => [name, members]))
}

const ADDRESS = { address: '10.0.0.1' }
const NODE = { pool: '@nodes', member: '/Common/10.0.0.1' }
const FIRST = { pool: '/Common/pool0', member: '/Common/10.0.0.1:80' }
const FAST = { settle: '50ms', timeout: '50s' } as const
const PATCHES = /^PATCH /

describe('a machine in many pools', () => {
  // 10 s and the freshness of 4 s, by the clock on which a request takes 100 ms. The seal is the default.
  test.each([
    [', no seal', false, 1, 10_000],
    ['', true, 2, 14_000],
  ])(
    'with 300 pools at 100 ms a request%s takes under 60 requests',
    async (_how, seal, patches, ms) => {
      using clock = ioClock()
      const defaults = { freshness: undefined, minInterval: undefined, callTimeout: undefined }
      const slow = { pools: pools(300), latency: 100, clock: clock.latency }
      await using it = await rig(slow, defaults)
      const begun = clock.now()
      const report = await clock.run(drain(it.lb, ADDRESS, { clock, seal }))
      expect(report.members).toMatchObject([{ ref: NODE, verifiedIdle: true, sealed: seal }])
      expect(it.fake.requests.length).toBeLessThan(60)
      expect(clock.now() - begun).toBeLessThan(ms)
      const changes = lines(it.fake).filter((line) => PATCHES.test(line))
      expect(changes).toEqual(Array(patches).fill('PATCH /mgmt/tm/ltm/node/~Common~10.0.0.1'))
    },
    240_000,
  )

  test('has members that read as held, but not by themselves', async () => {
    await using it = await rig({ pools: pools(8) })
    await using run = startDrain(it.lb, ADDRESS, FAST)
    expect((await run.done).outcome).toBe('idle')
    const member = await present(it.lb, FIRST)
    expect(member).toMatchObject({ own: 'ready', inherited: 'maint', serves: false })
    expect(member.hints?.join()).toContain('/Common/10.0.0.1 is disabled')
    await run.close()
    await restore(it.lb, await run.ticket)
    expect(it.fake.nodeState('10.0.0.1')).toBe('ready')
    expect((await present(it.lb, FIRST)).serves).toBe(true)
  })

  test.concurrent('shows work of one pool among many, and work past all pools', async () => {
    await using it = await rig({ pools: pools(30) })
    const inPool = await it.fake.occupy({ ...FIRST, pool: '/Common/pool17' })
    const byRule = await it.fake.occupyNode('10.0.0.1')
    await using run = startDrain(it.lb, ADDRESS, FAST)
    await until('both are seen', () => run.why().some(({ count }) => count === 2))
    await inPool()
    await until('one is left', () => run.why().some(({ count }) => count === 1))
    await byRule()
    expect((await run.done).outcome).toBe('idle')
  })

  test.concurrent('without work on its node is believed only with its pools', async () => {
    await using it = await rig({ pools: pools(30) })
    await it.fake.occupy(FIRST)
    const path = '/mgmt/tm/ltm/node/~Common~10.0.0.1/stats'
    const zeros = {
      'serverside.curConns': { value: 0 },
      'serverside.totConns': { value: 0 },
      totRequests: { value: 0 },
    }
    const body = { entries: { [path]: { nestedStats: { entries: zeros } } } }
    it.fake.fail({ match: /ltm\/node\/.*\/stats/, how: 'status', status: 200, body })
    await using run = startDrain(it.lb, ADDRESS, { ...FAST, timeout: '10s' })
    const report = await run.done
    expect(report.outcome).toBe('timeout')
    expect(report.members[0]?.verifiedIdle).toBe(false)
    await run.close()
  })

  test.concurrent.each([
    ['without counters of nodes', { nodeStats: false }],
    ['without a list of all counters', { allStats: false }],
    ['without either', { nodeStats: false, allStats: false }],
  ])('on release %s has its pools counted', async (_what, options) => {
    await using it = await rig({ pools: pools(12), ...options })
    const end = await it.fake.occupy(FIRST, 2)
    await using run = startDrain(it.lb, ADDRESS, FAST)
    await until('its work is seen', () => run.why().some(({ count }) => count === 2))
    await end()
    expect((await run.done).outcome).toBe('idle')
  })

  test('has its queue seen, which no counter of a node shows', async () => {
    const queueing = { '/Common/pool5': { queueOnConnectionLimit: 'enabled' } }
    await using it = await rig({ pools: pools(30), poolProps: queueing })
    it.fake.setLoad({ ...FIRST, pool: '/Common/pool5' }, { depth: 3 })
    const { readings } = await it.lb.observe([NODE], ctx())
    expect(readings[0]?.scopes).toMatchObject([{ state: 'read', active: 0, queued: 3 }])
  })

  test('takes three requests for a look while held', async () => {
    await using it = await rig({ pools: pools(30) })
    await it.lb.apply([{ kind: 'hold', ref: NODE, to: 'drain' }], ctx())
    for (let i = 0; i < 4; i += 1) {
      await it.lb.observe([NODE], ctx())
      await until('statistics are older', () => Promise.resolve(true))
    }
    const before = it.fake.requests.length
    await it.lb.observe([NODE], ctx())
    expect(it.fake.requests.length - before).toBeLessThanOrEqual(4)
  })

  test('with a port is changed member by member, in few requests', async () => {
    await using it = await rig({ pools: pools(40) })
    await using run = startDrain(it.lb, { ...ADDRESS, port: 80 }, FAST)
    const report = await run.done
    expect(report.members).toHaveLength(40)
    expect(report.outcome).toBe('idle')
    // 40 changes to drain and 40 to maint; a look is a handful
    expect(it.fake.requests.length).toBeLessThan(2 * 45 + 60)
    expect(it.fake.nodeState('10.0.0.1')).toBe('ready')
    await run.close()
  })

  describe('a machine with a port, at 100 ms a request', () => {
    const defaults = { freshness: undefined, minInterval: undefined, callTimeout: undefined }
    const target = { ...ADDRESS, port: 80 }
    const slow = (clock: IoClock, latency = 100) =>
      rig({ pools: pools(40), latency, clock: clock.latency }, defaults)
    const states = ({ fake }: Rig) =>
      new Set(Object.keys(pools(40)).map((pool) => fake.state({ ...FIRST, pool })))

    test('is drained and opened in 40 pools, in 45 s and 270 requests', async () => {
      using clock = ioClock()
      await using it = await slow(clock)
      const run = startDrain(it.lb, target, { clock, timeout: '1m' })
      expect((await clock.run(run.done)).outcome).toBe('idle')
      expect(clock.now()).toBeLessThan(27_000)
      expect(states(it)).toEqual(new Set(['maint']))
      expect((await clock.run(run.restore())).outcome).toBe('restored')
      expect(clock.now()).toBeLessThan(45_000)
      expect(it.fake.requests.length).toBeLessThan(270)
      expect(states(it)).toEqual(new Set(['ready']))
    })

    test('is opened in all 40 pools if the time is too short', async () => {
      using clock = ioClock()
      await using it = await slow(clock)
      it.fake.setLoad({ ...FIRST, pool: '/Common/pool39' }, { curConns: 1 })
      const run = startDrain(it.lb, target, { clock, timeout: '20s' })
      expect((await clock.run(run.done)).outcome).toBe('timeout')
      expect((await clock.run(run.restore())).outcome).toBe('restored')
      expect(states(it)).toEqual(new Set(['ready']))
    })

    test('is refused a timeout for its looks but not its 80 changes', async () => {
      using clock = ioClock()
      await using it = await slow(clock)
      const refused = drain(it.lb, target, { clock, timeout: '12s' })
      await expect(clock.run(refused)).rejects.toThrow(/at least 1\d.* s: .*, its changes 8 s\)/)
      expect(lines(it.fake).some((line) => PATCHES.test(line))).toBe(false)
      const one = drain(it.lb, FIRST, { clock, timeout: '20s' })
      expect((await clock.run(one)).outcome).toBe('idle')
    })

    test('is not refused a timeout because its looks are slow', async () => {
      using clock = ioClock()
      await using it = await slow(clock, 500)
      const { refused, text } = await clock.run(plan(it.lb, FIRST, { clock, timeout: '13s' }))
      expect(refused).toEqual([])
      expect(text).toMatch(/this look took \d.* s: leave time for two more/)
    })
  })

  test('in pools of a partition is counted pool by pool', async () => {
    await using it = await rig({ pools: pools(12, 'Tenant') })
    const ref = { pool: '/Tenant/pool3', member: '/Common/10.0.0.1:80' }
    const end = await it.fake.occupy(ref)
    const readings = await select(it.lb, { ...ADDRESS, port: 80 })
    const busy = readings.filter(({ scopes }) => scopes[0]?.active === 1)
    expect(busy.map((reading) => reading.ref)).toEqual([ref])
    await end()
  })

  test('opens a member that was disabled by itself', async () => {
    await using it = await rig({ pools: pools(3) })
    await it.fake.setBehind(FIRST, 'drain')
    await ready(it.lb, ADDRESS)
    expect(it.fake.state(FIRST)).toBe('ready')
  })

  test('drains members of an FQDN template one by one', async () => {
    const made = { name: '_auto_192.0.2.7:80', fqdn: 'www.example.com', ephemeral: true }
    const site = { name: 'site:80', fqdn: 'www.example.com' }
    await using it = await rig({ pools: { web: ['10.0.0.1:80', site, made] } })
    const readings = await select(it.lb, { address: '192.0.2.7' })
    expect(readings.map(({ ref }) => ref.member)).toEqual(['/Common/_auto_192.0.2.7:80'])
  })

  test('has the floor of the pool that would be left with fewest', async () => {
    await using it = await rig({
      pools: { ...pools(4), lonely: ['/Common/10.0.0.1:80'] },
    })
    await using run = startDrain(it.lb, ADDRESS, { ...FAST, keepReady: 1 })
    const report = await run.done
    expect(report.outcome).toBe('refused')
    expect(lines(it.fake).some((line) => PATCHES.test(line))).toBe(false)
  })
})

describe('a plan', () => {
  const virtuals = { front: { pool: 'pool0' }, back: { pool: 'pool1' }, other: { pool: 'apart' } }
  const all = { ...pools(2), apart: ['10.0.0.9:80'] }

  test('names every pool and virtual server, the time, and changes nothing', async () => {
    await using it = await rig({ pools: all, virtuals })
    const [node] = await select(it.lb, ADDRESS)
    const hints = node?.present === true ? node.hints?.join('\n') : ''
    expect(hints).toContain('reaches 2 pools: /Common/pool0, /Common/pool1')
    expect(hints).toContain('virtual servers in front: /Common/front, /Common/back\n')
    expect(hints).toMatch(/about .* to be proved idle/)
    expect(lines(it.fake).filter((line) => !line.startsWith('GET'))).toEqual([
      'POST /mgmt/shared/authn/login',
    ])
  })

  test('names hundreds of pools in whole hints', async () => {
    await using it = await rig({ pools: pools(300) })
    const [node] = await select(it.lb, ADDRESS)
    const hints = node?.present === true ? (node.hints ?? []) : []
    const told = hints.join('\n')
    for (const name of Object.keys(pools(300))) expect(told).toMatch(new RegExp(`${name}\\b`))
    expect(Math.max(...hints.map(({ length }) => length))).toBeLessThan(1_000)
  })

  test('tells how many members with a port are changed', async () => {
    await using it = await rig({ pools: all, virtuals })
    const [member] = await select(it.lb, { ...ADDRESS, port: 80 })
    const hints = member?.present === true ? member.hints?.join('\n') : ''
    expect(hints).toContain('one of 2 members that are changed one by one')
    expect(hints).toContain('4 changes with the seal')
  })
})
