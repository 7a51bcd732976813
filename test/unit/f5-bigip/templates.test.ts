import { startDrain } from 'drainable'
import { describe, expect, test } from 'vitest'
import { ioClock } from '../../support/io-clock.js'
import { ctx, lines, rig } from './rig.js'

const SITE = { name: 'site:80', fqdn: 'www.example.com' }
const MADE = ['7', '8'].map((n) => ({
  ...{ name: `_auto_192.0.2.${n}:80`, fqdn: 'www.example.com', ephemeral: true },
}))
const site = { pool: 'web', member: 'site:80' }
const made = MADE.map(({ name }) => ({ pool: 'web', member: name }))
const hold = { kind: 'hold', ref: site, to: 'drain' } as const
const TEMPLATE = 'PATCH /mgmt/tm/ltm/pool/~Common~web/members/~Common~site:80'
const isPatch = (line: string): boolean => line.startsWith('PATCH')

describe('an FQDN template', () => {
  test('is written first, and its copies are left alone if they follow', async () => {
    await using it = await rig({ pools: { web: [SITE, ...MADE] }, ephemeralsRefuse: true })
    const [result] = await it.lb.apply([hold], ctx())
    expect(result).toMatchObject({ status: 'applied' })
    expect(lines(it.fake).filter(isPatch)).toEqual([TEMPLATE])
    expect(made.map((ref) => it.fake.state(ref))).toEqual(['drain', 'drain'])
  })

  test('whose copies do not follow is followed by a change of each', async () => {
    await using it = await rig({ pools: { web: [SITE, ...MADE] }, fqdnInherits: false })
    const [result] = await it.lb.apply([hold], ctx())
    expect(result).toMatchObject({ status: 'applied' })
    expect(lines(it.fake).filter(isPatch)).toHaveLength(3)
    expect(lines(it.fake).filter(isPatch)[0]).toBe(TEMPLATE)
  })

  test('whose copies refuse is put back, and refused', async () => {
    await using it = await rig({
      pools: { web: [SITE, ...MADE] },
      fqdnInherits: false,
      ephemeralsRefuse: true,
    })
    const [result] = await it.lb.apply([hold], ctx())
    expect(result).toMatchObject({ status: 'rejected', error: { code: 'REJECTED' } })
    expect([site, ...made].map((ref) => it.fake.state(ref))).toEqual(['ready', 'ready', 'ready'])
  })

  test('whose copies can not be read back is in doubt, not refused', async () => {
    await using it = await rig({ pools: { web: [SITE, ...MADE] }, fqdnInherits: false })
    it.fake.fail({ match: /^GET .*members\?/, how: 'status', status: 503, skip: 1, times: 2 })
    const [result] = await it.lb.apply([hold], ctx())
    expect(result).toMatchObject({ status: 'unknown' })
    expect(it.fake.state(site)).toBe('drain')
  })

  test('is put back with its copies', async () => {
    await using it = await rig({ pools: { web: [SITE, ...MADE] } })
    await it.lb.apply([hold], ctx())
    const back = { kind: 'restore', ref: site, expect: 'drain', to: 'ready' } as const
    expect(await it.lb.apply([back], ctx())).toMatchObject([{ status: 'applied' }])
    expect([site, ...made].map((ref) => it.fake.state(ref))).toEqual(['ready', 'ready', 'ready'])
  })
})

describe('a transaction', () => {
  const names = [1, 2, 3].map((n) => `10.0.0.${n}:80`)
  const holds = names.map((member) => ({ ...hold, ref: { pool: 'web', member } }))

  test.each([
    ['a change of it', /^PATCH .*10\.0\.0\.2/],
    ['its end', /^PATCH .*transaction/],
  ])('is deleted where %s is refused', async (_what, match) => {
    await using it = await rig({ pools: { web: names } })
    it.fake.fail({
      match,
      how: 'status',
      status: 400,
      body: { code: 400, message: 'no' },
      times: 1,
    })
    const results = await it.lb.apply(holds, ctx())
    expect(results.map(({ status }) => status)).toEqual(['applied', 'applied', 'applied'])
    expect(it.fake.transactions).toBe(0)
  })

  test('whose end was answered with busy is unknown, and sent once', async () => {
    await using it = await rig({ pools: { web: names } })
    it.fake.fail({ match: /^PATCH .*transaction/, how: 'status', status: 503, times: 1 })
    const results = await it.lb.apply(holds, ctx())
    expect(results.map(({ status }) => status)).toEqual(['unknown', 'unknown', 'unknown'])
    expect(lines(it.fake).filter(isPatch)).toHaveLength(names.length + 1)
  })

  test('whose end was answered with busy is made again by a drain', async () => {
    using clock = ioClock()
    const pools = { web: names }
    await using it = await rig({ pools, clock, tls: false }, { freshness: 100 })
    it.fake.fail({ match: /^PATCH .*transaction/, how: 'status', status: 503, times: 1 })
    const refs = holds.map(({ ref }) => ref)
    await using run = startDrain(it.lb, refs, { timeout: '1m', seal: false, keepReady: 0, clock })
    expect((await clock.run(run.done)).outcome).toBe('idle')
    expect(refs.map((ref) => it.fake.state(ref))).toEqual(['drain', 'drain', 'drain'])
  })

  test('that was answered but is incomplete is read back', async () => {
    await using it = await rig({ pools: { web: names } })
    const body = { transId: 1, state: 'VALIDATING' }
    const match = /^PATCH .*transaction/
    it.fake.fail({ match, how: 'status', status: 200, body, times: 1, execute: true })
    const results = await it.lb.apply(holds, ctx())
    expect(results.map(({ status }) => status)).toEqual(['applied', 'applied', 'applied'])
  })
})
