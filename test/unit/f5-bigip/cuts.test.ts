import { drain, startDrain } from 'drainable'
import { describe, expect, test } from 'vitest'
import { recordsPath } from '../../../src/adapters/f5-bigip/change/persistence.js'
import { ioClock } from '../../support/io-clock.js'
import { ctx, lines, present, rig, until, WEB1, WEB2 } from './rig.js'

const FAST = { settle: '50ms', timeout: '6s' } as const
const CUT = 'DELETE /mgmt/tm/sys/connection'
const RECORDS = '/mgmt/tm/ltm/persistence/persist-records'
const terminate = { kind: 'terminate', ref: WEB1 } as const

describe('a cut', () => {
  test('without effect is sent twice, counts none, and is reported', async () => {
    using clock = ioClock()
    await using it = await rig({ connectionDelete: 'nothing' })
    await it.fake.occupy(WEB1, 3)
    const run = startDrain(it.lb, WEB1, { ...FAST, onTimeout: 'terminate', clock })
    const { outcome, members } = await clock.run(run.done)
    expect(outcome).toBe('timeout')
    expect(members[0]?.terminated).toBe(0)
    expect(members[0]?.error?.message).toMatch(/said yes .* cut nothing: 3 are still open/)
    expect(members[0]?.why[0]?.text).toContain('cut nothing')
    expect(lines(it.fake).filter((line) => line === CUT)).toHaveLength(2)
    await run.close()
  })

  test('does not take missing statistics for cut connections', async () => {
    await using it = await rig({ connectionDelete: 'nothing' })
    await it.fake.occupy(WEB1, 3)
    const run = startDrain(it.lb, WEB1, { ...FAST, onTimeout: 'terminate' })
    await until('the cut', () => lines(it.fake).includes(CUT))
    // Its control plane restarts: for a while even existing objects are missing.
    it.fake.setStage('loading')
    const asked = it.fake.requests.length
    await until('a look', () =>
      lines(it.fake)
        .slice(asked)
        .some((line) => /stats/.test(line)),
    )
    it.fake.setStage('up')
    const { members } = await run.done
    expect(members[0]?.terminated).toBe(0)
    expect(members[0]?.error?.message).toMatch(/cut nothing: 3 are still open/)
    await run.close()
  })

  test('counts what the next readings show as gone', async () => {
    await using it = await rig({ statsLag: 200 }, { freshness: '200ms' })
    await it.fake.occupy(WEB1, 3)
    await present(it.lb, WEB1)
    const results = await it.lb.apply([{ kind: 'hold', ref: WEB1, to: 'maint' }, terminate], ctx())
    expect(results[1]?.status).toBe('applied')
    expect(it.fake.load(WEB1).curConns).toBe(0)
  })

  test('refused for the role says which role it takes, even at the end', async () => {
    using clock = ioClock()
    await using it = await rig({ role: 'operator' })
    await it.fake.occupy(WEB1, 2)
    const run = startDrain(it.lb, WEB1, { ...FAST, onTimeout: 'terminate', clock })
    const { outcome, members } = await clock.run(run.done)
    expect(outcome).toBe('timeout')
    expect(members[0]?.error).toMatchObject({ code: 'FORBIDDEN' })
    expect(members[0]?.why[0]?.text).toContain('Resource Administrator')
    await run.close()
  })

  test('of a node hits each port once', async () => {
    await using it = await rig({ pools: { a: ['10.0.0.1:80'], b: ['10.0.0.1:80', '10.0.0.1:81'] } })
    await it.fake.occupy({ pool: 'a', member: '10.0.0.1:80' }, 2)
    await it.fake.occupy({ pool: 'b', member: '10.0.0.1:81' }, 1)
    const ref = { pool: '@nodes', member: '10.0.0.1' }
    const [result] = await it.lb.apply([{ kind: 'terminate', ref }], ctx())
    expect(result).toMatchObject({ status: 'applied', terminated: 3 })
    expect(lines(it.fake).filter((line) => line === CUT)).toHaveLength(2)
  })
})

describe('persistence records', () => {
  const many = { pools: { web: ['10.0.0.1:80', '10.0.0.2:80'], api: ['10.0.0.1:80'] } }
  const API1 = { pool: '/Common/api', member: '/Common/10.0.0.1:80' }
  const forget = { persistence: 'forget' } as const

  test("stay without the caller's word", async () => {
    await using it = await rig(many)
    it.fake.persist(WEB1, 4)
    await drain(it.lb, WEB1, { settle: '50ms', timeout: '50s' })
    expect(it.fake.records(WEB1)).toBe(4)
    expect(lines(it.fake).some((line) => line.includes('persist'))).toBe(false)
  })

  test('are forgotten before maint for this member only, with their number', async () => {
    await using it = await rig(many, forget)
    for (const ref of [WEB1, WEB2, API1]) it.fake.persist(ref, 4)
    await it.lb.apply([{ kind: 'hold', ref: WEB1, to: 'drain' }], ctx())
    expect(it.fake.records(WEB1)).toBe(4)
    await it.lb.apply([{ kind: 'hold', ref: WEB1, to: 'maint' }], ctx())
    expect([WEB1, WEB2, API1].map((ref) => it.fake.records(ref))).toEqual([0, 4, 4])
    expect((await present(it.lb, WEB1)).hints?.join()).toContain('forgot 4 of 4')
    const order = lines(it.fake).filter((line) => /^(PATCH|DELETE)/.test(line))
    expect(order.slice(-2)).toEqual([
      `DELETE ${RECORDS}`,
      'PATCH /mgmt/tm/ltm/pool/~Common~web/members/~Common~10.0.0.1:80',
    ])
  })

  test('of a node are those of its address in every pool', async () => {
    await using it = await rig(many, forget)
    for (const ref of [WEB1, WEB2, API1]) it.fake.persist(ref, 2)
    const ref = { pool: '@nodes', member: '10.0.0.1' }
    await it.lb.apply([{ kind: 'hold', ref, to: 'maint' }], ctx())
    expect([WEB1, WEB2, API1].map((of) => it.fake.records(of))).toEqual([0, 2, 0])
  })

  test('are forgotten before a cut', async () => {
    await using it = await rig(many, forget)
    it.fake.persist(WEB1, 2)
    await it.fake.occupy(WEB1)
    await it.lb.apply([terminate], ctx())
    expect(it.fake.records(WEB1)).toBe(0)
    const order = lines(it.fake).filter((line) => line.startsWith('DELETE'))
    expect(order).toEqual([`DELETE ${RECORDS}`, CUT])
  })

  test('that the device keeps in spite of its yes are reported', async () => {
    await using it = await rig({ ...many, persistDelete: 'nothing' }, forget)
    it.fake.persist(WEB1, 2)
    const [result] = await it.lb.apply([{ kind: 'hold', ref: WEB1, to: 'maint' }], ctx())
    expect(result).toMatchObject({ status: 'applied' })
    expect((await present(it.lb, WEB1)).hints?.join()).toContain('forgot none of 2')
  })

  test('do not fail the hold without the right to delete them', async () => {
    await using it = await rig({ ...many, role: 'operator' }, forget)
    it.fake.persist(WEB1, 2)
    const [result] = await it.lb.apply([{ kind: 'hold', ref: WEB1, to: 'maint' }], ctx())
    expect(result).toMatchObject({ status: 'applied' })
    expect((await present(it.lb, WEB1)).hints?.join()).toContain('were not forgotten')
  })

  test.each([
    [undefined, 80],
    ['any6', 80],
    ['::', 80],
    ['0.0.0.0', 80],
    ['web1', 80],
    ['10.0.0.1+x', 80],
    ['10.0.0.1', 0],
  ])('are never deleted without their filter: %s port %s', (address, port) => {
    expect(recordsPath({ pool: '/Common/web', address, port })).toBeUndefined()
  })

  test('are found by escaped words of tmsh', () => {
    const place = { pool: '/Common/a b+c', address: '10.0.0.8%1', port: 80 }
    expect(recordsPath(place)).toBe(
      `${RECORDS}?options=node-addr+10.0.0.8%251+node-port+80+pool+/Common/a%20b%2Bc`,
    )
  })
})
