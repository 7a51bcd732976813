import { select } from 'drainable'
import { describe, expect, test } from 'vitest'
import { ctx, read, rig, WEB1 } from './rig.js'

const MEMBERS = /GET .*~Common~web\/members\?/
const KIND = 'tm:ltm:pool:members:memberscollectionstate'
const item = (address: string): object => ({
  name: `${address}:80`,
  fullPath: `/Common/${address}:80`,
  address,
  session: 'user-enabled',
  state: 'unchecked',
})
const status = (match: RegExp, body: object) =>
  ({ match, how: 'status', status: 200, body }) as const

describe('a list in pages', () => {
  test.each([
    ['says of more items than it has', { totalItems: 2, items: [item('10.0.0.2')] }],
    ['leads to a next page that no query names', { nextLink: 'https://localhost/x', items: [] }],
    [
      'ends in a page that lost its items',
      { totalItems: 2, nextLink: 'https://localhost/x?$skip=1', items: [item('10.0.0.2')] },
    ],
  ])('that %s removes no member', async (_what, body) => {
    await using it = await rig()
    it.fake.fail(status(MEMBERS, { kind: KIND, ...body }))
    await expect(read(it.lb, WEB1)).rejects.toMatchObject({ code: 'MALFORMED_REPLY' })
  })
})

describe('a list of pools', () => {
  const bare = (name: string, more: object = {}): object => ({
    fullPath: `/Common/${name}`,
    membersReference: { link: 'https://localhost/x', isSubcollection: true, ...more },
  })

  test('without the wished members does not mean empty pools', async () => {
    await using it = await rig({ pools: { web: ['10.0.0.1:80'], api: ['10.0.0.2:80'] } })
    it.fake.fail(status(/expandSubcollections/, { kind: 'x', items: [bare('api'), bare('web')] }))
    const { readings } = await it.lb.observe('all', ctx())
    expect(readings.map(({ ref }) => ref.pool)).toEqual(['/Common/api', '/Common/web'])
    const found = await select(it.lb, { address: '10.0.0.1', port: 80 })
    expect(found).toMatchObject([{ ref: WEB1, present: true }])
  })

  test('with more members on another page is followed to that page', async () => {
    await using it = await rig({ pools: { web: ['10.0.0.1:80', '10.0.0.2:80'] } })
    const more = { items: [item('10.0.0.2')], nextLink: 'https://localhost/x?$skip=1' }
    it.fake.fail(status(/expandSubcollections/, { kind: 'x', items: [bare('web', more)] }))
    const { readings } = await it.lb.observe('all', ctx())
    expect(readings).toHaveLength(2)
  })
})

test.each([
  ['a redirect', 302, ''],
  ['a login page', 200, '<html><head><title>Login</title></head></html>'],
  ['a page of a proxy', 400, '<html><head><title>Bad</title></head></html>'],
])('absence is not believed if %s says whether the device is ready', async (_what, code, body) => {
  await using it = await rig()
  it.fake.fail({ match: /sys\/ready/, how: 'status', status: code, body })
  await expect(read(it.lb, { ...WEB1, member: '/Common/10.0.0.9:80' })).rejects.toMatchObject({
    code: expect.stringMatching(/MALFORMED_REPLY|REJECTED/) as string,
  })
})

test.each([
  ['a pool', WEB1, /GET .*ltm\/pool\/~Common~web\?/, { fullPath: '/Common/api' }],
  [
    'a node',
    { pool: '@nodes', member: '/Common/10.0.0.1' },
    /ltm\/node\/~Common~10.0.0.1$/,
    { fullPath: '/Common/10.0.0.2', address: '10.0.0.2', session: 'user-disabled', state: 'up' },
  ],
])('an answer about another object than %s is not used', async (_what, ref, match, body) => {
  await using it = await rig()
  it.fake.fail(status(match, body))
  await expect(read(it.lb, ref)).rejects.toMatchObject({ code: 'MALFORMED_REPLY' })
})
