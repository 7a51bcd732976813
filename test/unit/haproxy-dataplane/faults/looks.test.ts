import { drain } from 'drainable'
import { describe, expect, test } from 'vitest'
import { context, present, rig } from '../../../support/dataplane.js'
import { ioClock } from '../../../support/io-clock.js'
import { WEB1, WEB2, failing } from './set-up.js'

describe.concurrent('the cost of a look', () => {
  test('is one poll of the statistics for all members, never two at once', async () => {
    const pools = { a: ['s1', 's2', 's3'], b: ['s1', 's2'] }
    await using r = await rig({ pools }, { maintCuts: false })
    const refs = Object.entries(pools).flatMap(([pool, names]) =>
      names.map((member) => ({ pool, member })),
    )
    await r.lb.observe(refs, context())
    const before = r.fake.requests.length
    await r.lb.observe(refs, context())
    const paths = r.fake.requests
      .slice(before)
      .map(({ path }) => path.replace('/v3/services/haproxy', ''))
    expect(paths).toEqual(['/stats/native?type=server', '/runtime/info'])
    const from = r.fake.requests.length
    await Promise.all([1, 2, 3].map(() => r.lb.observe(refs, context())))
    const kinds = r.fake.requests
      .slice(from)
      .map(({ path }) => path.split('/').at(-1)!.split('?')[0])
    const one = ['native', 'info']
    expect(kinds).toEqual([...one, ...one, ...one])
  })

  test('is nearly all that the drain of an idle server costs', async () => {
    await using r = await rig()
    using clock = ioClock()
    await clock.run(drain(r.lb, WEB1, { timeout: '60s', clock }))
    const looks = r.fake.requests.filter(({ path }) => path.includes('/stats/')).length
    // Beside them: the version of both, the servers and the configuration once, the hold and its seal.
    expect(r.fake.requests.length - 2 * looks).toBeLessThanOrEqual(6)
    expect(looks).toBeLessThanOrEqual(12)
  })

  test('is a server list more where the statistics do not tell a state', async () => {
    await using r = await rig({ pools: { web: ['web1', 'web2'] } }, { maintCuts: false })
    await r.lb.observe([WEB1], context())
    r.fake.setMask(WEB2, 0x20)
    const lists = async (ref: typeof WEB1): Promise<number> => {
      const from = r.fake.requests.length
      await r.lb.observe([ref], context())
      const sent = r.fake.requests.slice(from)
      return sent.filter(({ path }) => /runtime\/backends\/web\/servers$/.test(path)).length
    }
    expect(await lists(WEB1)).toBe(0)
    expect(await lists(WEB2)).toBe(1)
    expect(await lists({ pool: 'web', member: 'none' })).toBe(1)
  })

  test('is a server list more where a backend has fewer rows than before', async () => {
    await using r = await rig({}, { maintCuts: false })
    await present(r.lb, WEB1)
    const before = await r.lb.observe([WEB1], context())
    expect(before.pools).toMatchObject([{ serving: 2, total: 2 }])
    // an answer of HAProxy that was cut: its last row is missing
    const row = { scur: 0, qcur: 0, stot: 0, wretr: 0, weight: 1, bck: 0 }
    const web1 = { ...row, status: 'no check', addr: '127.0.0.1:8001' }
    const stats = [{ type: 'server', backend_name: 'web', name: 'web1', stats: web1 }]
    const body = { runtimeAPI: '/run/lb/master.sock@1', stats }
    const lift = r.fake.fail({ match: /stats/, how: 'status', status: 200, body })
    const error = await failing(r.lb.observe([WEB1], context()))
    expect(error.message).toContain('web/web2 is among the servers, but not in the statistics')
    await lift()
    expect((await r.lb.observe([WEB1], context())).pools).toEqual(before.pools)
  })

  test('without a row of the whole backend says that it may be disabled', async () => {
    await using r = await rig()
    const body = { runtimeAPI: '/run/lb/master.sock@1', stats: [] }
    r.fake.fail({ match: /stats/, how: 'status', status: 200, body })
    const error = await failing(r.lb.observe([WEB1], context()))
    expect(error).toMatchObject({ code: 'CONFLICT' })
    expect(error.message).toContain('none of a backend that is disabled')
  })

  test('is read again by a reload since the look before', async () => {
    await using r = await rig({}, { maintCuts: false })
    const end = await r.fake.occupy(WEB1)
    expect((await present(r.lb, WEB1)).scopes[0]).toMatchObject({ active: 1 })
    await r.fake.reload()
    const { scopes } = await present(r.lb, WEB1)
    expect(scopes.map(({ state, active }) => [state, active])).toEqual([
      ['read', 0],
      ['unread', 0],
    ])
    await end()
  })

  test('includes the configuration once, and again after a new version', async () => {
    await using r = await rig({ pools: { web: ['web1', { name: 'web2', cutsWhenDown: true }] } })
    const reads = () =>
      r.fake.requests.filter(({ path }) => path.includes('/configuration/')).length
    expect((await present(r.lb, WEB2)).maint).toBe('cuts')
    const first = reads()
    await present(r.lb, WEB2)
    expect(reads()).toBe(first)
    await r.fake.reload()
    await present(r.lb, WEB2)
    expect(reads()).toBe(first * 2)
  })

  test('a configuration that can not be read leaves maint unknown', async () => {
    await using r = await rig()
    r.fake.fail({ match: /configuration/, how: 'status', status: 403 })
    expect((await present(r.lb, WEB1)).maint).toBe('unknown')
  })
})
