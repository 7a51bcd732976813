import { plan, startDrain } from 'drainable'
import { citrixAdc, type CitrixAdcOptions } from 'drainable/citrix-adc'
import type { Change, MemberRef } from 'drainable/provider'
import { type CitrixFake, type FakeOptions, startFake } from 'drainable/testing/citrix-adc'
import { describe, expect, test } from 'vitest'
import { context } from './rig.js'
import { eventually } from '../../support/eventually.js'
import { ioClock } from '../../support/io-clock.js'

const MACHINE = '10.0.0.1'

function refs(count: number): MemberRef[] {
  return Array.from({ length: count }, (_, i) => ({ pool: `sg${i}`, member: `${MACHINE}:80` }))
}

/** So many groups, each with this machine and another one. */
function groups(count: number): Record<string, string[]> {
  return Object.fromEntries(refs(count).map(({ pool, member }) => [pool, [member, '10.0.0.2:80']]))
}

interface Setup extends AsyncDisposable {
  readonly fake: CitrixFake
  readonly adc: ReturnType<typeof citrixAdc>
}

async function setup(
  count: number,
  fakeOptions: FakeOptions = {},
  options: Partial<CitrixAdcOptions> = {},
): Promise<Setup> {
  const fake = await startFake({ tls: false, pools: groups(count), ...fakeOptions })
  const adc = citrixAdc({ url: fake.url, username: 'admin', password: 'secret', ...options })
  return {
    fake,
    adc,
    async [Symbol.asyncDispose]() {
      await adc.close()
      await fake.close()
    },
  }
}

const disabled = (fake: CitrixFake, count: number): number =>
  refs(count).filter((ref) => !fake.look(ref).enabled).length

const actions = (fake: CitrixFake): readonly { readonly line: string }[] =>
  fake.requests.filter(({ line }) => line.includes('action='))

const toDrain = (ref: MemberRef): Change => ({ kind: 'hold', ref, to: 'drain' })

describe('one machine in many groups', () => {
  test.each([
    [40, 80, 13_000],
    [300, 150, 18_000],
  ])(
    'of %i at 50 ms is drained, and opened again, in few requests',
    async (n, requests, ms) => {
      using clock = ioClock()
      await using at = await setup(n, { latency: 50, clock: clock.latency })
      const { fake, adc } = at
      const began = clock.now()
      const run = startDrain(adc, { address: MACHINE }, { timeout: '1m', clock })
      const { outcome, members } = await clock.run(run.done)
      // 5 s and the freshness of 8 s for 40, by the clock on which a request takes 50 ms.
      expect(clock.now() - began).toBeLessThan(ms)
      expect([outcome, members.length]).toEqual(['idle', n])
      expect(members.every(({ verifiedIdle }) => verifiedIdle)).toBe(true)
      await clock.run(run.restore())
      expect(disabled(fake, n)).toBe(0)
      expect(fake.requests.length).toBeLessThan(requests)
    },
    120_000,
  )

  test('is drained by a build that answers for one group at a time', async () => {
    const bulk = { bindings: false, stats: false, actions: false }
    await using at = await setup(12, { bulk, tick: 20 }, { freshness: '200ms' })
    const { fake, adc } = at
    const run = startDrain(adc, { address: MACHINE }, { timeout: '30s' })
    expect((await run.done).outcome).toBe('idle')
    await run.restore()
    expect(disabled(fake, 12)).toBe(0)
    const bulky = fake.requests.filter(({ line }) => /bulkbindings|stat.servicegroup\?/.test(line))
    expect(bulky.length).toBeLessThan(6)
  }, 60_000)

  test('names every group and virtual server before it begins', async () => {
    const vservers = { vs: { members: ['svc1'], groups: ['sg0', 'sg2'] } }
    await using at = await setup(6, { vservers })
    const { readings } = await at.adc.observe('all', context())
    const bound = readings.flatMap((one) =>
      one.present && one.address === MACHINE ? [[one.ref.pool, one.native]] : [],
    )
    expect(bound.slice(0, 3)).toMatchObject([
      ['sg0', { vservers: ['vs'] }],
      ['sg1', { vservers: [] }],
      ['sg2', { vservers: ['vs'] }],
    ])
  })

  test('is not refused a timeout because its looks are slow', async () => {
    using clock = ioClock()
    const fakeOptions = { latency: 50, bulk: { stats: false }, clock: clock.latency }
    await using at = await setup(40, fakeOptions)
    const { adc } = at
    const { refused, text } = await clock.run(
      plan(adc, { address: MACHINE }, { timeout: '9s', clock }),
    )
    expect(refused).toEqual([])
    expect(text).toMatch(/this look took \d.* s: leave time for two more/)
  }, 30_000)
})

describe('a list of changes', { concurrent: true }, () => {
  test('of which one is refused is done for the others', async () => {
    const pools = { ...groups(6), sg3: { members: [`${MACHINE}:80`], autoscale: 'API' as const } }
    await using at = await setup(6, { pools }, { desiredState: 'try' })
    const { fake, adc } = at
    const results = await adc.apply(refs(6).map(toDrain), context())
    const refused = { status: 'rejected', error: { code: 'REJECTED' } }
    expect(results.map(({ status }) => status)).toEqual(
      [0, 1, 2, 3, 4, 5].map((i) => (i === 3 ? 'rejected' : 'applied')),
    )
    expect(results[3]).toMatchObject(refused)
    expect(String((results[3] as { error: Error }).error)).toContain('autoscale API')
    expect(actions(fake)).toHaveLength(1)
  })

  test('that is refused as a whole is sent one by one', async () => {
    await using at = await setup(6, { bulk: { actions: false } })
    const { fake, adc } = at
    const results = await adc.apply(refs(6).map(toDrain), context())
    expect(results.every(({ status }) => status === 'applied')).toBe(true)
    expect(actions(fake)).toHaveLength(7)
  })

  test('of which only the first was carried out is completed one by one', async () => {
    await using at = await setup(6, { bulk: { actions: 'first' } })
    const { fake, adc } = at
    const results = await adc.apply(refs(6).map(toDrain), context())
    expect(results.every(({ status }) => status === 'applied')).toBe(true)
    expect(disabled(fake, 6)).toBe(6)
    expect(actions(fake)).toHaveLength(6)
  })

  test('whose answer is lost is looked at, and not sent again', async () => {
    await using at = await setup(6)
    const { fake, adc } = at
    fake.fail({ match: /action=disable/, how: 'reset', execute: true, times: 1 })
    const results = await adc.apply(refs(6).map(toDrain), context())
    expect(results.every(({ status }) => status === 'applied')).toBe(true)
    expect(actions(fake)).toHaveLength(1)
  })

  test('that can not be looked at afterwards is of unknown outcome', async () => {
    await using at = await setup(6, { latency: 60 })
    const { fake, adc } = at
    const ctx = context()
    const ended = adc.apply(refs(6).map(toDrain), ctx)
    await eventually(() => expect(fake.requests.some(isAction)).toBe(true))
    fake.fail({ match: /^GET .*servicegroup/, how: 'status', status: 403, errorcode: 2138 })
    expect((await ended).map(({ status }) => status)).toEqual(Array(6).fill('unknown'))
  })

  test('that a node took as the new secondary is taken back there', async () => {
    await using at = await setup(6, { ha: true, latency: 100 })
    const { fake, adc } = at
    await adc.observe(refs(6), context())
    const from = fake.requests.length
    const ended = adc.apply(refs(6).map(toDrain), context())
    await eventually(() => expect(fake.requests.slice(from).some(isAction)).toBe(true))
    await fake.failover()
    expect((await ended).map(({ status }) => status)).toEqual(Array(6).fill('rejected'))
    expect(actions(fake).map(({ line }) => /action=(\w+)/.exec(line)?.[1])).toEqual([
      'disable',
      'enable',
    ])
  })
})

const isAction = ({ line }: { readonly line: string }): boolean => line.includes('action=')

describe('a list of bindings', { concurrent: true }, () => {
  test('that leaves a group out makes no member absent', async () => {
    await using at = await setup(20)
    const { fake, adc } = at
    const row = {
      servicegroupname: 'sg0',
      ip: MACHINE,
      port: 80,
      svrstate: 'UP',
      servername: MACHINE,
    }
    const body = { errorcode: 0, servicegroup_servicegroupmember_binding: [row] }
    fake.fail({ match: /bulkbindings/, how: 'status', status: 200, body })
    const { readings } = await adc.observe(refs(20), context())
    expect(readings.map(({ present }) => present)).toEqual(Array(20).fill(true))
  })

  test('that has none of the groups is not asked for again', async () => {
    await using at = await setup(20, {}, { freshness: 0 })
    const { fake, adc } = at
    fake.fail({ match: /bulkbindings/, how: 'status', status: 200, body: { errorcode: 0 } })
    for (let i = 0; i < 3; i++) await adc.observe(refs(20), context())
    expect(fake.requests.filter(({ line }) => line.includes('bulkbindings'))).toHaveLength(1)
  })
})

describe('a large machine is asked', { concurrent: true }, () => {
  test('for states at each look, for the rest as often as counts change', async () => {
    await using at = await setup(1)
    const { fake, adc } = at
    const ctx = context()
    const look = async (): Promise<string[]> => {
      const from = fake.requests.length
      await adc.observe(refs(1), ctx)
      return fake.requests.slice(from).map(({ line }) => line.split('/').slice(3).join('/'))
    }
    expect(await look()).toHaveLength(10)
    const glance = ['config/servicegroup_servicegroupmember_binding/sg0', 'stat/hanode']
    expect(await look()).toEqual(glance)
    expect(await look()).toEqual(glance)
    await fake.setBehind(refs(1)[0]!, 'drain')
    expect(await look()).toContain('stat/servicegroup/sg0?statbindings=yes')
    const { capabilities } = await adc.describe(context())
    expect(capabilities).toMatchObject({ minInterval: 1_000, freshness: 8_000 })
  })
})
