import type { HaproxyDataplaneOptions } from 'drainable/haproxy-dataplane'
import { describe, expect, test } from 'vitest'
import { change, context, present, rig } from '../../support/dataplane.js'

const WEB1 = { pool: 'web', member: 'web1' }
const hold = { kind: 'hold', ref: WEB1, to: 'drain' } as const
const web = [{ name: 'web1', check: true }, 'web2']
const api1 = { name: 'api1', track: 'web/web1' }

describe.concurrent('a server that others track', () => {
  test.each(['2.9', '3.2', '3.4'])(
    'is not drained if it takes the last of theirs on %s',
    async (version) => {
      await using r = await rig({ version, pools: { web, api: [api1] } })
      const result = await change(r.lb, hold)
      expect(result).toMatchObject({ status: 'rejected', error: { code: 'POOL_AT_MINIMUM' } })
      expect(result).toHaveProperty('error.message', expect.stringContaining('api/api1 tracks it'))
      expect((await present(r.lb, WEB1)).own).toBe('ready')
    },
  )

  const ROWS: readonly [string, readonly (string | object)[], Partial<HaproxyDataplaneOptions>][] =
    [
      ['others stay', [api1, 'api2'], {}],
      ['it is told not to look', [api1], { keepFollowers: 0 }],
    ]
  test.each(ROWS)('is drained if %s: the trackers are no reason', async (_why, api, options) => {
    await using r = await rig({ pools: { web, api: api as [] } }, options)
    expect((await change(r.lb, hold)).status).toBe('applied')
    const reading = await present(r.lb, WEB1)
    expect(reading.own).toBe('drain')
    expect(reading.native).toMatchObject({ followers: [{ pool: 'api', member: 'api1' }] })
    expect(reading.hints ?? []).toEqual([])
  })

  test("is not drained if it takes the last of a tracker's tracker", async () => {
    const far = [{ name: 'far1', track: 'api/api1' }]
    await using r = await rig({ pools: { web, api: [api1, 'api2'], far } })
    const result = await change(r.lb, hold)
    expect(result).toHaveProperty('error.message', expect.stringContaining('far/far1'))
  })

  test('is put back after a reload, even if few trackers are left then', async () => {
    await using r = await rig({ pools: { web, api: [api1, 'api2'] } })
    expect((await change(r.lb, hold)).status).toBe('applied')
    await r.fake.reload()
    await r.fake.setBehind({ pool: 'api', member: 'api2' }, 'maint')
    expect((await change(r.lb, hold)).status).toBe('applied')
  })

  test('is put back after a reload, if another process began its drain', async () => {
    await using r = await rig({ pools: { web, api: [api1, 'api2'] } })
    await r.fake.setBehind(WEB1, 'drain')
    expect((await change(r.lb, hold)).status).toBe('unchanged')
    await r.fake.reload()
    await r.fake.setBehind({ pool: 'api', member: 'api2' }, 'maint')
    expect((await change(r.lb, hold)).status).toBe('applied')
  })

  test('is drained after its tracker, which waits for it to be opened', async () => {
    await using r = await rig({ pools: { web, api: [api1, 'api2'] } })
    const api = { pool: 'api', member: 'api1' }
    await present(r.lb, WEB1)
    const sent = () =>
      r.fake.requests.flatMap(({ line }) => /^PUT .*servers\/(\w+)/.exec(line)?.[1] ?? [])
    const holds = [WEB1, api].map((ref) => ({ kind: 'hold', ref, to: 'drain' }) as const)
    const done = await r.lb.apply(holds, context())
    expect(done.map(({ ref, status }) => [ref.member, status])).toEqual([
      ['web1', 'applied'],
      ['api1', 'applied'],
    ])
    expect(sent()).toEqual(['api1', 'web1'])
    const opens = [api, WEB1].map(
      (ref) => ({ kind: 'restore', ref, expect: 'drain', to: 'ready' }) as const,
    )
    const [behind, leader] = await r.lb.apply(opens, context())
    expect(behind).toMatchObject({ status: 'rejected', error: { retryable: true } })
    expect(leader!.status).toBe('applied')
    expect((await change(r.lb, opens[0]!)).status).toBe('applied')
  })

  test('is read with one request of all rows for each process', async () => {
    await using r = await rig({ pools: { web, api: [api1, 'api2'] } })
    for (let i = 0; i < 3; i++) await present(r.lb, WEB1)
    await r.fake.reload()
    await present(r.lb, WEB1)
    const all = r.fake.requests.filter(({ path }) => /stats\/native\?type=server$/.test(path))
    expect(all).toHaveLength(2)
  })
})
