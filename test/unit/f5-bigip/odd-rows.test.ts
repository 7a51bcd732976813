import { drain, select } from 'drainable'
import { describe, expect, test } from 'vitest'
import { ctx, present, read, rig, WEB1, type Rig } from './rig.js'

const item = (name: string, more: object = {}): object => ({
  name,
  fullPath: `/Common/${name}`,
  address: '10.0.0.3',
  session: 'user-enabled',
  state: 'unchecked',
  ...more,
})

const PLAIN = [item('10.0.0.1:80', { address: '10.0.0.1' }), item('10.0.0.2:80')]

/** A pool with an odd row beside two plain ones. */
async function withRow(row: object): Promise<Rig> {
  const it = await rig()
  it.fake.fail({
    match: /GET .*~Common~web\/members\?/,
    how: 'status',
    status: 200,
    body: { kind: 'tm:ltm:pool:members:memberscollectionstate', items: [...PLAIN, row] },
  })
  return it
}

const ODD: readonly (readonly [what: string, row: object])[] = [
  ['an address any6%1', item('site:80', { address: 'any6%1' })],
  ['an address any%2', item('site:80', { address: 'any%2' })],
  ['a service word for its port', item('db1:ms-sql-s')],
  ['no address', item('site:80', { address: undefined })],
]

describe.each(ODD)('a neighbour with %s', (_what, row) => {
  test('does not hide the other members', async () => {
    await using it = await withRow(row)
    const reading = await present(it.lb, WEB1)
    expect(reading.own).toBe('ready')
    expect(reading.scopes).toMatchObject([{ state: 'read' }])
    expect(reading.hints?.join()).toMatch(/not read, and not reported.*(site:80|db1:ms-sql-s)/)
  })

  test('lets keepReady refuse, and is named', async () => {
    await using it = await withRow(row)
    await expect(drain(it.lb, WEB1, { timeout: '10s' })).rejects.toMatchObject({
      code: 'POOL_AT_MINIMUM',
      message: expect.stringMatching(/site:80|db1:ms-sql-s/) as string,
    })
    expect(it.fake.state(WEB1)).toBe('ready')
  })

  test('does not keep a drain without a floor from its end', async () => {
    await using it = await withRow(row)
    const [change] = await it.lb.apply([{ kind: 'hold', ref: WEB1, to: 'drain' }], ctx())
    expect(change?.status).toBe('applied')
  })

  test('is not absent where it is asked for', async () => {
    await using it = await withRow(row)
    await expect(read(it.lb, { pool: '/Common/web', member: 'site:80' })).rejects.toMatchObject({
      code: 'MALFORMED_REPLY',
    })
  })
})

test('a template in a partition with a route domain is one by its DNS name', async () => {
  const fqdn = { tmName: 'site.example', autopopulate: 'enabled' }
  await using it = await withRow(item('site:80', { address: 'any6%1', ephemeral: 'false', fqdn }))
  const { pools } = await it.lb.observe([WEB1], ctx())
  expect(pools).toMatchObject([{ serving: 2, total: 2 }])
  expect(pools[0]).not.toHaveProperty('unknown')
})

test('an unreadable node hides no other, nor makes it absent', async () => {
  await using it = await rig()
  const nodes = [item('10.0.0.1', { address: '10.0.0.1' }), item('site', { address: 'any6%1' })]
  it.fake.fail({
    match: /GET \/mgmt\/tm\/ltm\/node\?/,
    how: 'status',
    status: 200,
    body: { kind: 'tm:ltm:node:nodecollectionstate', items: nodes },
  })
  const found = await select(it.lb, { address: '10.0.0.1' })
  expect(found.map(({ ref }) => ref.pool)).toContain('@nodes')
  await expect(select(it.lb, { address: '10.0.0.9' })).rejects.toMatchObject({
    code: 'MALFORMED_REPLY',
  })
})
