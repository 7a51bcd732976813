import { describe, expect, test } from 'vitest'
import { ctx, lines, present, read, rig, until, WEB1 } from './rig.js'

const MEMBER = 'PATCH /mgmt/tm/ltm/pool/~Common~web/members/~Common~10.0.0.1:80'
const hold = (ref: { pool: string; member: string }, to: 'drain' | 'maint' = 'drain') =>
  ({ kind: 'hold', ref, to }) as const
const MISSING = {
  code: 404,
  message: '01020036:3: The requested Pool Member (/Common/web /Common/10.0.0.1 80) was not found.',
  errorStack: [],
  apiError: 3,
}

/** A context in which the call on its way ends at once where a test says so, and any other one by its own limit. */
function impatient() {
  const limits = new Set<() => void>()
  const { clock, signal } = ctx()
  const setTimeout: typeof clock.setTimeout = (fn, ms) => {
    limits.add(fn)
    const cancel = clock.setTimeout(fn, ms)
    return () => {
      limits.delete(fn)
      cancel()
    }
  }
  const end = (): void => {
    for (const limit of [...limits]) limit()
  }
  return { ctx: { clock: { ...clock, setTimeout }, signal }, end }
}

const SITE = { name: 'site:80', fqdn: 'www.example.com' }
const MADE = { name: '_auto_192.0.2.7:80', fqdn: 'www.example.com', ephemeral: true }

test.each([
  ['items that are no objects', ['x']],
  ['an item that is nothing', [null]],
  ['items that are a text', 'none'],
  ['an item without a name', [{ address: '10.0.0.1', session: 'user-enabled', state: 'up' }]],
])('a list with %s is not believed at all', async (_what, items) => {
  await using it = await rig()
  const body = { kind: 'tm:ltm:pool:members:memberscollectionstate', items }
  it.fake.fail({ match: /members\?/, how: 'status', status: 200, body })
  await expect(read(it.lb, WEB1)).rejects.toMatchObject({ code: 'MALFORMED_REPLY' })
})

test('a member listed twice in two states is in neither', async () => {
  await using it = await rig()
  const row = {
    ...{ name: '10.0.0.1:80', partition: 'Common', fullPath: '/Common/10.0.0.1:80' },
    ...{ address: '10.0.0.1', session: 'monitor-enabled', state: 'up' },
  }
  const items = [row, { ...row, session: 'user-disabled' }]
  it.fake.fail({ match: /members\?/, how: 'status', status: 200, body: { kind: 'x', items } })
  await expect(read(it.lb, WEB1)).rejects.toMatchObject({ code: 'MALFORMED_REPLY' })
})

test('the node of an FQDN template holds the work of its members', async () => {
  await using it = await rig({ pools: { web: ['10.0.0.1:80', SITE, MADE] } })
  const end = await it.fake.occupy({ pool: 'web', member: MADE.name })
  const { scopes } = await present(it.lb, { pool: '@nodes', member: 'site' })
  expect(scopes.reduce((sum, { active }) => sum + active, 0)).toBe(1)
  await end()
})

test.each(['', '{}', 'null', '[]'])(
  'an invalid list (%j) says nothing about missing members',
  async (text) => {
    await using it = await rig()
    it.fake.fail({ match: /members\?/, how: 'status', status: 200, body: text })
    await expect(read(it.lb, WEB1)).rejects.toMatchObject({ code: 'MALFORMED_REPLY' })
  },
)

test('a node without a state in the answer is not absent', async () => {
  await using it = await rig()
  it.fake.fail({ match: /ltm\/node\//, how: 'status', status: 200, body: {} })
  await expect(read(it.lb, { pool: '@nodes', member: '10.0.0.1' })).rejects.toMatchObject({
    code: 'MALFORMED_REPLY',
  })
})

describe('a 404 of a device that is not ready', () => {
  const loading = {
    entries: { x: { nestedStats: { entries: { configReady: { description: 'no' } } } } },
  }

  test('does not mean that a removal is done', async () => {
    await using it = await rig()
    it.fake.fail({ match: /^DELETE .*members/, how: 'status', status: 404, body: MISSING })
    it.fake.fail({ match: /sys\/ready/, how: 'status', status: 200, body: loading })
    const [result] = await it.lb.apply([{ kind: 'remove', ref: WEB1 }], ctx())
    expect(result).toMatchObject({ status: 'unknown' })
  })

  test('does not mean that a changed member is absent', async () => {
    await using it = await rig()
    it.fake.fail({ match: /^PATCH/, how: 'status', status: 404, body: MISSING })
    it.fake.fail({ match: /sys\/ready/, how: 'status', status: 200, body: loading })
    const [result] = await it.lb.apply([hold(WEB1)], ctx())
    expect(result).toMatchObject({ status: 'unknown', error: { code: 'CONFLICT' } })
  })
})

describe('after a lost answer nothing more is sent', () => {
  test.each(['silent', 'reset'] as const)('a change (%s) that shows no effect', async (how) => {
    await using it = await rig()
    it.fake.fail({ match: /^PATCH/, how, times: 1 })
    const within = impatient()
    const applied = it.lb.apply([hold(WEB1)], within.ctx)
    await until('it is sent', () => lines(it.fake).includes(MEMBER))
    if (how === 'silent') within.end()
    const [result] = await applied
    expect(result).toMatchObject({ status: 'unknown' })
    expect(lines(it.fake).filter((line) => line === MEMBER)).toHaveLength(1)
  })
})

test('an unreadable success leaves a change of unknown outcome', async () => {
  await using it = await rig()
  it.fake.fail({ match: /^(PATCH|DELETE)/, how: 'garbage' })
  const [held] = await it.lb.apply([hold(WEB1)], ctx())
  expect(held).toMatchObject({ status: 'unknown' })
  for (const kind of ['remove', 'terminate'] as const) {
    const [result] = await it.lb.apply([{ kind, ref: WEB1 }], ctx())
    expect(result).toMatchObject({ status: 'unknown' })
  }
})

test('a half-made restore is finished', async () => {
  await using it = await rig({ pools: { web: [SITE, MADE] }, fqdnInherits: false })
  const seventh = { pool: '/Common/web', member: `/Common/${MADE.name}` }
  await it.fake.setBehind(seventh, 'drain')
  const ref = { pool: 'web', member: SITE.name }
  const [result] = await it.lb.apply(
    [{ kind: 'restore', ref, expect: 'drain', to: 'ready' }],
    ctx(),
  )
  expect(result).toMatchObject({ status: 'applied' })
  expect(it.fake.state(seventh)).toBe('ready')
})

test('tokens that are never accepted cost one more login, not two', async () => {
  await using it = await rig()
  const body = { code: 401, message: 'X-F5-Auth-Token has expired.' }
  it.fake.fail({ match: /failover-status/, how: 'status', status: 401, body })
  await expect(read(it.lb, WEB1)).rejects.toMatchObject({ code: 'UNAUTHENTICATED' })
  expect(lines(it.fake).filter((line) => line.includes('login'))).toHaveLength(2)
})

test('Basic credentials that are refused now and then are sent again', async () => {
  await using it = await rig({}, { auth: 'basic' })
  const message =
    'Authorization failed: no user authentication header or token detected. Uri:http://localhost:8100/mgmt/tm/'
  const body = { code: 401, message }
  it.fake.fail({ match: /members\/stats/, how: 'status', status: 401, body, times: 1 })
  await present(it.lb, WEB1)
})

test('a change that may have been made is not left on one unit silently', async () => {
  await using it = await rig({ pair: true }, { configSync: { group: 'dg1' } })
  it.fake.fail({ match: /^PATCH/, how: 'reset', execute: true, times: 1 })
  it.fake.fail({ match: /^GET .*members\/~Common~10.0.0.1:80$/, how: 'reset', times: 1 })
  const [result] = await it.lb.apply([hold(WEB1)], ctx())
  expect(result).toMatchObject({ status: 'unknown' })
  const { own, unverified } = await present(it.lb, WEB1)
  expect(own).toBe('drain')
  expect(unverified).toContain('not known')
  const [back] = await it.lb.apply(
    [{ kind: 'restore', ref: WEB1, expect: 'drain', to: 'ready' }],
    ctx(),
  )
  expect(back).toMatchObject({ status: 'applied' })
  expect((await present(it.lb, WEB1)).unverified).toBeUndefined()
})

test('all pages of a list are requested with the same words', async () => {
  await using it = await rig({ pools: { a: ['10.0.0.1:80'], web: ['10.0.0.2:80'] } })
  const page = (name: string, member: string, next: object) => ({
    items: [
      {
        name,
        partition: 'Common',
        fullPath: `/Common/${name}`,
        serviceDownAction: 'none',
        membersReference: { link: `https://localhost/${member}`, isSubcollection: true },
      },
    ],
    ...next,
  })
  const nextLink = 'https://localhost/mgmt/tm/ltm/pool?$top=1&$skip=1&ver=15.1.10'
  const body = page('a', '10.0.0.1:80', { nextLink })
  it.fake.fail({ match: /ltm\/pool\?expand/, how: 'status', status: 200, body, times: 1 })
  await read(it.lb, { pool: '@nodes', member: '10.0.0.2' })
  const pages = it.fake.requests.filter(({ path }) => path.startsWith('/mgmt/tm/ltm/pool?'))
  expect(pages).toHaveLength(2)
  for (const { path } of pages) expect(path).toContain('expandSubcollections=true')
})
