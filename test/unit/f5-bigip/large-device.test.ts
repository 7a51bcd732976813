import type { MemberRef } from 'drainable/provider'
import { describe, expect, test } from 'vitest'
import { Meter, type Traffic } from '../../../bench/support/traffic.js'
import { ctx, lines, rig, type Rig } from './rig.js'

const POOLS = 1_000

const refs = (count: number): MemberRef[] =>
  Array.from({ length: count }, (_, i) => ({
    pool: `/Common/pool${i}`,
    member: '/Common/10.0.0.1:80',
  }))

function large(): Promise<Rig> {
  const pools = refs(POOLS).map(({ pool }) => [pool, ['10.0.0.1:80', '10.0.0.2:80']])
  return rig({ pools: Object.fromEntries(pools) as Record<string, string[]> })
}

/** What the third look at so many pools costs. */
async function look(it: Rig, meter: Meter, count: number): Promise<Traffic> {
  const once = (): Promise<unknown> => it.lb.observe(refs(count), ctx())
  await once()
  await once()
  return meter.of(once)
}

describe('a look at a device with a thousand pools', () => {
  test('costs for seven of them little more than for six', async () => {
    using meter = new Meter()
    await using six = await large()
    await using seven = await large()
    const few = await look(six, meter, 6)
    const more = await look(seven, meter, 7)
    expect(more.bytes).toBeLessThan(few.bytes * 1.3)
    expect(more.requests).toBeLessThan(few.requests * 1.3)
  })

  test('reads each pool of forty, once the list is known to be dear', async () => {
    using meter = new Meter()
    await using it = await large()
    const { bytes } = await look(it, meter, 40)
    expect(bytes).toBeLessThan(200_000)
  })

  test('does not begin with the list of all pools for forty of them', async () => {
    using meter = new Meter()
    await using it = await large()
    const { bytes } = await meter.of(() => it.lb.observe(refs(40), ctx()))
    expect(bytes).toBeLessThan(200_000)
  })

  test('reads one list for all of them', async () => {
    using meter = new Meter()
    await using it = await large()
    expect((await look(it, meter, POOLS)).requests).toBeLessThan(6)
  })

  test('asks a list for what is used of it', async () => {
    await using it = await large()
    await it.lb.observe(refs(POOLS), ctx())
    const list = it.fake.requests.filter(({ path }) => path.includes('expandSubcollections'))
    expect(list.map(({ path }) => path)).toEqual([
      expect.stringMatching(/\$select=[^&]*membersReference/),
    ])
  })

  test('and a change of seven members read no whole list', async () => {
    await using it = await large()
    await it.lb.observe(refs(7), ctx())
    const before = it.fake.requests.length
    await it.lb.apply(
      refs(7).map((ref) => ({ kind: 'hold', ref, to: 'drain' }) as const),
      ctx(),
    )
    expect(lines(it.fake, before)).not.toContain('GET /mgmt/tm/ltm/pool')
  })
})

test('a list that can not be had is not waited for: each pool is asked for', async () => {
  const pools = Object.fromEntries(refs(20).map(({ pool }) => [pool, ['10.0.0.1:80']]))
  await using it = await rig({ pools })
  const lists = /GET \/mgmt\/tm\/ltm\/pool(\?|\/members\/stats)/
  it.fake.fail({ match: lists, how: 'garbage' })
  const { readings } = await it.lb.observe(refs(20), ctx())
  expect(readings.every(({ scopes }) => scopes[0]?.state === 'read')).toBe(true)
})
