import { describe, expect, test } from 'vitest'
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
