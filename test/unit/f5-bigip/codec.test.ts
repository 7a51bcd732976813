import { readFileSync } from 'node:fs'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  parseFailoverStatus,
  parseFailoverText,
  parseLogin,
  parseReady,
  parseSyncStatus,
  readVersion,
} from '../../../src/adapters/f5-bigip/codec/device.js'
import { classify } from '../../../src/adapters/f5-bigip/codec/errors.js'
import {
  parseItems,
  parseMember,
  toAdmin,
  toMembers,
  toWords,
  type MemberRow,
} from '../../../src/adapters/f5-bigip/codec/members.js'
import {
  findMembers,
  isPossible,
  memberPath,
  splitMember,
  toFullPath,
} from '../../../src/adapters/f5-bigip/codec/names.js'
import { JsonValue, parseJson } from '../../../src/kit/json.js'
import { parseStats, statsKey } from '../../../src/adapters/f5-bigip/codec/stats.js'

const source = { provider: 'f5-bigip', what: 'GET' }

function json(value: unknown): JsonValue {
  return new JsonValue(value, source)
}

function fixture(name: string): JsonValue {
  const url = new URL(`../../fixtures/f5-bigip/${name}`, import.meta.url)
  return parseJson(readFileSync(url, 'utf8'), source)
}

function parseMembers(list: JsonValue): readonly MemberRow[] {
  const { rows, odd } = toMembers(parseItems(list))
  if (odd[0] !== undefined) throw odd[0]
  return rows
}

describe('members', () => {
  const members = parseMembers(fixture('members.json'))
  const byName = new Map(members.map((member) => [member.fullPath.slice(8), member]))

  test.each([
    ['192.0.2.1:80', 'ready', 'up'],
    ['192.0.2.2:80', 'ready', 'down'],
    ['192.0.2.3:80', 'ready', 'unknown'],
    ['192.0.2.4:80', 'ready', 'unchecked'],
    ['192.0.2.5:80', 'drain', 'up'],
    ['192.0.2.6:80', 'drain', 'unchecked'],
    ['192.0.2.7:80', 'maint', 'unknown'],
    ['192.0.2.8:80', 'maint', 'unknown'],
    ['192.0.2.9:80', 'unknown', 'up'],
    ['2001:db8::a.443', 'drain', 'down'],
    ['shop:80', 'ready', 'up'],
  ])('%s reads %s, %s', (name, own, health) => {
    expect(byName.get(name)).toMatchObject({ own, health })
  })

  test('node, port and address are read from where they stand', () => {
    expect(byName.get('192.0.2.10%3:80')).toMatchObject({
      node: '/Common/192.0.2.10%3',
      port: 80,
      address: '192.0.2.10%3',
    })
    expect(byName.get('2001:db8::a.443')).toMatchObject({ node: '/Common/2001:db8::a', port: 443 })
    expect(byName.get('192.0.2.30:http')).toMatchObject({ port: 80, declared: true })
    expect(byName.get('shop:80')).toMatchObject({ template: true, ephemeral: false })
    expect(byName.get('shop:80')?.address).toBeUndefined()
    expect(byName.get('_auto_192.0.2.20:80')).toMatchObject({ template: false, ephemeral: true })
  })

  test('a row without an address, as from 11.x, is not a member', () => {
    expect(parseMember(json({ name: '192.0.2.1:80', partition: 'Common' }))).toBeUndefined()
    expect(parseMembers(json({ kind: 'an empty list' }))).toEqual([])
  })

  const row = { fullPath: '/Common/192.0.2.1:80', address: '192.0.2.1', session: 'user-enabled' }

  test.each<[string, unknown, string]>([
    ['neither items nor a kind', {}, 'a list with items'],
    ['items that are a text', { kind: 'list', items: 'none' }, 'items to be a list'],
    ['null for a row', { items: [row, null] }, 'items[1] to be an object, found null'],
    ['a row without a name', { items: [{ ...row, fullPath: undefined }] }, 'items[0].name'],
    ['a row without its port', { items: [{ ...row, fullPath: '/Common/x' }] }, 'with its port'],
    ['a row without an address', { items: [{ ...row, address: null }] }, 'with its address'],
    ['any text for an address', { items: [{ ...row, address: 'web1' }] }, "found 'web1'"],
    ['a name that leaves its folder', { items: [{ ...row, fullPath: '/Common/../x:80' }] }, 'name'],
    ['a session that is no text', { items: [{ ...row, session: true }] }, 'session to be a text'],
  ])('a list with %s is malformed', (_, list, words) => {
    expect(() => parseMembers(json(list))).toThrow(words)
    expect(() => parseMembers(json(list))).toThrow(
      expect.objectContaining({ code: 'MALFORMED_REPLY' }),
    )
  })

  test('both words are written, native ones only if they mean the same', () => {
    expect(toWords('drain')).toEqual({ session: 'user-disabled', state: 'user-up' })
    expect(toWords('maint')).toEqual({ session: 'user-disabled', state: 'user-down' })
    expect(toWords('ready')).toEqual({ session: 'user-enabled', state: 'user-up' })
    const odd = { session: 'user-enabled', state: 'user-down' }
    expect(toWords('maint', odd)).toEqual(odd)
    expect(toWords('ready', odd)).toEqual({ session: 'user-enabled', state: 'user-up' })
  })

  test('a written state reads back the same, whatever the two words', () => {
    fc.assert(
      fc.property(fc.string(), fc.string(), (session, state) => {
        expect(['ready', 'drain', 'maint', 'unknown']).toContain(toAdmin(session, state))
      }),
    )
    for (const to of ['ready', 'drain', 'maint'] as const) {
      const { session, state } = toWords(to)
      expect(toAdmin(session, state)).toBe(to)
    }
    expect(toAdmin(undefined, 'up')).toBe('unknown')
  })
})

describe('names', () => {
  test.each([
    ['/Common/10.0.0.1:80', '/Common/10.0.0.1', 80],
    ['/Common/10.0.0.2%1:80', '/Common/10.0.0.2%1', 80],
    ['/Common/2001:db8::1.80', '/Common/2001:db8::1', 80],
    ['/T/App/web.1:0', '/T/App/web.1', 0],
    ['/Common/web:any', '/Common/web', 0],
  ])('%s is node %s, port %d', (name, node, port) => {
    expect(splitMember(name)).toEqual({ node, port })
  })

  test.each(['/Common/web1', '/Common/web:99999', '/Common/:80', '/Common/2001:db8::1'])(
    '%s has no port',
    (name) => expect(splitMember(name)).toBeUndefined(),
  )

  test('an object is one path segment, escaped once', () => {
    expect(memberPath('/Common/web', '/Common/10.0.0.2%1:80')).toBe(
      '/mgmt/tm/ltm/pool/~Common~web/members/~Common~10.0.0.2%251:80',
    )
    expect(memberPath('/T/a b/p?x', '/Common/2001:db8::1.80')).toBe(
      '/mgmt/tm/ltm/pool/~T~a%20b~p%3Fx/members/~Common~2001:db8::1.80',
    )
  })

  test('no name leaves its place in the path', () => {
    fc.assert(
      fc.property(fc.string(), fc.string(), (pool, member) => {
        const full = toFullPath(pool, 'Common')
        if (!isPossible(full) || !isPossible(toFullPath(member, 'Common'))) return
        const url = new URL(memberPath(full, toFullPath(member, 'Common')), 'https://bigip')
        expect(url.origin).toBe('https://bigip')
        expect(url.search + url.hash).toBe('')
        expect(url.pathname.split('/')).toHaveLength(8)
      }),
    )
    for (const bad of [
      '/Common/../x',
      '/Common/a~b',
      '/Common/',
      '/Common//x',
      '/Common/a\nb',
      'x',
    ]) {
      expect(isPossible(bad)).toBe(false)
    }
  })

  test('a name is looked for by path, name, address and port, and node', () => {
    const members = parseMembers(fixture('members.json'))
    const find = (name: string): string[] =>
      findMembers(members, name, ['Common']).map((member) => member.fullPath)
    expect(find('/Common/192.0.2.1:80')).toEqual(['/Common/192.0.2.1:80'])
    expect(find('192.0.2.1:80')).toEqual(['/Common/192.0.2.1:80'])
    expect(find('[2001:0db8:0::a]:443')).toEqual(['/Common/2001:db8::a.443'])
    expect(find('192.0.2.20:80')).toEqual(['/Common/_auto_192.0.2.20:80'])
    expect(find('192.0.2.10:80')).toEqual([]) // another route domain is another place
    expect(find('shop')).toEqual(['/Common/shop:80'])
    expect(find('/Common/192.0.2.1:443')).toEqual([])
  })
})

describe('statistics', () => {
  test('rows are matched by node and port, whatever their key', () => {
    const table = parseStats(fixture('stats-nested.json'), '/Common/shop')
    expect(table.get(statsKey('/Common/192.0.2.1', 80))).toEqual({
      active: 4,
      queued: 2,
      arrivals: 1_000,
      sessions: 3,
      byParent: false,
      enabled: true,
    })
    expect(table.get(statsKey('/Common/192.0.2.10%3', 80))?.active).toBe(4)
    expect(table.get(statsKey('/Common/2001:db8::a', 443))?.byParent).toBe(true)
  })

  test('a missing figure is unknown, never 0', () => {
    const table = parseStats(fixture('stats-nested.json'), '/Common/shop')
    expect(table.get(statsKey('/Common/192.0.2.2', 80))?.active).toBeUndefined()
    expect(table.get(statsKey('/Common/192.0.2.4', 80))).toMatchObject({ active: 4 })
    expect(table.get(statsKey('/Common/192.0.2.4', 80))?.queued).toBeUndefined()
    expect(table.get(statsKey('/Common/192.0.2.4', 80))?.arrivals).toBeUndefined()
    expect(table.get(statsKey('/Common/192.0.2.5', 80))).toBeUndefined() // of another pool
    expect(table.get(statsKey('/Common/192.0.2.3', 80))).toBeUndefined()
    expect(table.size).toBe(5) // the pool's own row is none of a member
  })

  test('fields right under entries (before 12) and texts are read', () => {
    const flat = parseStats(fixture('stats-flat.json'), '/Common/shop')
    expect(flat.get(statsKey('/Common/192.0.2.1', 80))?.active).toBe(4)
    expect(parseStats(fixture('stats-text.json'), '/Common/shop').size).toBe(0)
    for (const nothing of [undefined, null, {}, { entries: {} }]) {
      expect(parseStats(json(nothing), '/Common/shop').size).toBe(0)
    }
    const wrong = [[], { entries: [] }, { entries: { a: 1 } }, { entries: { a: {} } }]
    for (const value of wrong) {
      expect(() => parseStats(json(value), '/Common/shop')).toThrow(/^GET: expected /)
    }
  })

  test.each<[string, object, number]>([
    ['a count below 0', { 'serverside.curConns': { value: -1 } }, 1],
    ['a count that is a text', { 'connq.depth': { value: '0' } }, 1],
    ['no node', { nodeName: undefined }, 0],
    ['no port', { port: undefined }, 0],
    ['a port that is none', { port: { value: 70_000 } }, 0],
    ['a port that is a strange word', { port: { description: 'ms-sql-s' } }, 0],
  ])('a row with %s has no counts, and hides no other row', (_, change, more) => {
    const entries = {
      nodeName: { description: '/Common/a' },
      port: { value: 80 },
      'serverside.curConns': { value: 0 },
      'connq.depth': { value: 0 },
    }
    const odd = { nestedStats: { entries: { ...entries, ...change } } }
    const good = { nestedStats: { entries: { ...entries, port: { value: 81 } } } }
    const table = parseStats(json({ entries: { odd, good } }), '/Common/shop')
    expect(table.get(statsKey('/Common/a', 81))?.active).toBe(0)
    expect(table.get(statsKey('/Common/a', 80))?.active).toBeUndefined()
    expect(table.size).toBe(1 + more)
  })

  test('counters beyond 2^53 are compared by their last digits', () => {
    const of = (requests: string): number | undefined => {
      const row = `{"nodeName":{"description":"/Common/a"},"port":{"value":80},"totRequests":{"value":${requests}},"serverside.totConns":{"value":9007199254740993}}`
      const text = `{"entries":{"a":{"nestedStats":{"entries":${row}}}}}`
      return parseStats(parseJson(text, source), '/').get(statsKey('/Common/a', 80))?.arrivals
    }
    expect(of('9007199254740994')! - of('9007199254740993')!).toBe(1)
    expect(of('18446744073709551615')).toBe(of('18446744073709551615'))
  })

  test('of two rows for one member that differ neither is believed', () => {
    const entries = (value: number): object => ({
      nodeName: { description: '/Common/a' },
      port: { value: 80 },
      'serverside.curConns': { value },
    })
    const both = (a: number, b: number): JsonValue =>
      json({
        entries: {
          a: { nestedStats: { entries: entries(a) } },
          b: { nestedStats: { entries: entries(b) } },
        },
      })
    expect(parseStats(both(2, 2), '/Common/shop').size).toBe(1)
    const differ = parseStats(both(2, 0), '/Common/shop')
    expect(differ.get(statsKey('/Common/a', 80))?.active).toBeUndefined()
  })
})

describe('a unit', () => {
  const status = (text: string, ...details: string[]): JsonValue =>
    json({
      entries: {
        'https://localhost/mgmt/tm/cm/failover-status/0': {
          nestedStats: {
            entries: {
              status: { description: text },
              'https://localhost/mgmt/tm/cm/failoverStatus/0/details': {
                nestedStats: {
                  entries: Object.fromEntries(
                    details.map((line, i) => [
                      `https://localhost/mgmt/tm/cm/failoverStatus/0/details/${i}`,
                      { nestedStats: { entries: { details: { description: line } } } },
                    ]),
                  ),
                },
              },
            },
          },
        },
      },
    })

  test('has a role, and the traffic groups it is active for', () => {
    expect(parseFailoverStatus(status('ACTIVE', 'active for /Common/traffic-group-1'))).toEqual({
      role: 'active',
      groups: ['/Common/traffic-group-1'],
      text: 'ACTIVE',
    })
    expect(parseFailoverStatus(status('STANDBY', 'standby'))).toMatchObject({ role: 'standby' })
    expect(parseFailoverStatus(status('FORCED OFFLINE'))).toMatchObject({
      role: 'forced-offline',
    })
    expect(parseFailoverStatus(json({}))).toMatchObject({ role: 'unknown' })
  })

  test('tells how long its role has lasted', () => {
    const text = (words: string): JsonValue => json({ apiRawValues: { apiAnonymous: words } })
    expect(parseFailoverText(text('Failover active for 2d 03:04:05\n'))).toEqual({
      role: 'active',
      seconds: 2 * 86_400 + 3 * 3_600 + 4 * 60 + 5,
    })
    expect(parseFailoverText(text('Failover standby for 0d 00:00:12'))).toMatchObject({
      role: 'standby',
    })
    expect(parseFailoverText(text('something else'))).toBeUndefined()
    expect(parseFailoverText(json({}))).toBeUndefined()
  })

  test('tells readiness, release and sync', () => {
    const row = (fields: Record<string, string>): JsonValue =>
      json({
        selfLink: 'https://localhost/mgmt/tm/sys/x?ver=16.1.2',
        entries: {
          'https://localhost/mgmt/tm/sys/x/0': {
            nestedStats: {
              entries: Object.fromEntries(
                Object.entries(fields).map(([key, description]) => [key, { description }]),
              ),
            },
          },
        },
      })
    const ready = { configReady: 'yes', licenseReady: 'yes', provisionReady: 'yes' }
    expect(parseReady(row(ready))).toBe(true)
    expect(parseReady(row({ ...ready, configReady: 'no' }))).toBe(false)
    expect(parseReady(row({ configReady: 'yes' }))).toBe(false)
    expect(parseReady(json({}))).toBe(false)
    expect(readVersion(row({ Version: '15.1.10' }))).toBe('15.1.10')
    expect(readVersion(row({}))).toBe('16.1.2')
    expect(() => readVersion(json({}))).toThrow('a row with Version')
    expect(parseSyncStatus(row({ status: 'In Sync' }))).toBe('In Sync')
    expect(parseSyncStatus(json({}))).toBe('unknown')
  })

  test("has a token that lives as long as the device's two times are apart", () => {
    const token = {
      token: 'T',
      timeout: 9,
      lastUpdateMicros: 5_000_000,
      expirationMicros: 65_000_000,
    }
    expect(parseLogin(json({ token }))).toEqual({ token: 'T', lifetime: 60_000 })
    expect(parseLogin(json({ token: { token: 'T', timeout: 9 } }))).toEqual({
      token: 'T',
      lifetime: 9_000,
    })
    expect(parseLogin(json({ token: { token: 'T' } })).lifetime).toBe(1_200_000)
    expect(() => parseLogin(json({}))).toThrow('token.token to be a text')
  })
})

describe('answers', () => {
  const body = (code: number, message: string): string => JSON.stringify({ code, message })

  test.each([
    [200, '{}', 'ok'],
    [200, '', 'ok'],
    [200, '<html><title>Login</title></html>', 'garbage'],
    [200, '{"items":[{"fullPa', 'cut'],
    [404, '{"code":404,"mess', 'later'],
    [200, body(404, '01020036:3: The requested Pool (/Common/x) was not found.'), 'absent'],
    [200, body(500, 'The connection to mcpd has been lost, try again.'), 'later'],
    [302, '', 'refused'],
    [404, body(404, '01020036:3: The requested Pool Member (...) was not found.'), 'absent'],
    [404, body(404, 'Public URI path not registered: /tm/ltm/pool'), 'unregistered'],
    [404, body(404, 'URI path /mgmt/tm not registered. Please verify'), 'unregistered'],
    [404, '<html><title>404 Not Found</title></html>', 'later'],
    [400, body(400, 'invalid property value "state":"up"'), 'refused'],
    [400, body(400, 'java.util.concurrent.TimeoutException: remoteSender timed out'), 'open'],
    [400, body(400, 'roleEval may not be null'), 'later'],
    [504, '<html><title>504 Gateway Timeout</title></html>', 'open'],
    [400, body(400, 'user 1 has reached maximum active login tokens'), 'too-many-tokens'],
    [400, body(400, 'There is an active asynchronous task executing.'), 'later'],
    [401, body(401, 'X-F5-Auth-Token has expired.'), 'unauthenticated'],
    [
      401,
      body(401, 'Authorization failed: user=https://localhost/x resource=/y verb=PATCH'),
      'forbidden',
    ],
    [401, '<html><title>401 F5 Authorization Required</title></html>', 'unauthenticated'],
    [403, body(403, 'no'), 'forbidden'],
    [409, body(409, 'already exists'), 'exists'],
    [500, '<html><title>500</title>AsyncContext timeout</html>', 'open'],
    [503, '<html><title>Configuration Utility restarting...</title></html>', 'later'],
    [418, 'teapot', 'refused'],
  ])('%d %s is %s', (status, text, kind) => {
    expect(classify(status, text).kind).toBe(kind)
  })
})
