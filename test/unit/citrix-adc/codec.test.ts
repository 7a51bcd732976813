import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import {
  argsOf,
  disable,
  enable,
  formatMember,
  isName,
  parseMember,
  parseReply,
  pathOf,
  rowsOf,
  toCount,
} from '../../../src/adapters/citrix-adc/codec/nitro.js'
import { JsonValue, parseJson } from '../../../src/kit/json.js'
import { classify, toError } from '../../../src/adapters/citrix-adc/codec/errors.js'
import {
  StatIndex,
  toCounts,
  toMember,
  toMembers,
  toPhase,
  toTraits,
} from '../../../src/adapters/citrix-adc/codec/rows.js'

const FIXTURES = new URL('../../fixtures/citrix-adc/', import.meta.url)

function fixture(name: string): string {
  return readFileSync(new URL(name, FIXTURES), 'utf8')
}

const source = { provider: 'citrix-adc', what: 'GET' }

function json(value: unknown): JsonValue {
  return new JsonValue(value, source)
}

function rowsIn(name: string, type: string) {
  return rowsOf(parseReply(200, fixture(name)), type)
}

describe('paths and bodies', () => {
  test.each([
    ['sg web', '/nitro/v1/config/servicegroup/sg%2520web'],
    ['a#b', '/nitro/v1/config/servicegroup/a%2523b'],
    ['2001:db8::1', '/nitro/v1/config/servicegroup/2001%253Adb8%253A%253A1'],
  ])('a name in a path is encoded twice: %s', (name, path) => {
    expect(pathOf('config', 'servicegroup', name)).toBe(path)
  })

  test('values of args are encoded once, separators stay', () => {
    expect(argsOf('args', { servicegroupname: 'sg web', ip: '2001:db8::1', port: '80' })).toBe(
      'args=servicegroupname:sg%20web,ip:2001%3Adb8%3A%3A1,port:80',
    )
  })

  test('a disable of a member has five keys, an enable three', () => {
    const member = { kind: 'member', group: 'sg web', server: 'web1', port: 80 } as const
    expect(disable(member, true).body).toEqual({
      servicegroup: {
        servicegroupname: 'sg web',
        servername: 'web1',
        port: 80,
        delay: 0,
        graceful: 'YES',
      },
    })
    expect(disable(member, false).body).toEqual({
      servicegroup: {
        servicegroupname: 'sg web',
        servername: 'web1',
        port: 80,
        delay: 0,
        graceful: 'NO',
      },
    })
    expect(enable(member).body).toEqual({
      servicegroup: { servicegroupname: 'sg web', servername: 'web1', port: 80 },
    })
    expect(enable({ kind: 'service', name: 'svc1' })).toEqual({
      path: '/nitro/v1/config/service?action=enable&warning=yes',
      body: { service: { name: 'svc1' } },
    })
  })

  test.each([
    ['no server', { server: '', port: 80 }],
    ['no port', { server: 'web1', port: Number.NaN }],
    ['port 0', { server: 'web1', port: 0 }],
    ['no group', { group: '', server: 'web1', port: 80 }],
  ])('a member without its full name is never sent: %s', (_, part) => {
    const subject = { kind: 'member', group: 'sg', ...part } as const
    expect(() => disable(subject, true)).toThrow(/nothing was sent/)
    expect(() => enable(subject)).toThrow(/nothing was sent/)
  })
})

describe('names', () => {
  test.each(['.', '..', ''])('%j never becomes a part of a path', (name) => {
    expect(isName(name)).toBe(false)
    expect(() => pathOf('config', 'server', name)).toThrow(/can't be the name of a server/)
  })

  test.each(['sg_web', 'sg web', '_x', '10.0.0.1', 'a#b.c:d@e=f-g'])('%s can be one', (name) => {
    expect(isName(name)).toBe(true)
  })

  test.each([
    '',
    '#1',
    '-1',
    'a/b',
    'a%2f',
    'a+b',
    'a?b',
    'a&b',
    'a,b',
    'é',
    'a\nb',
    'x'.repeat(300),
  ])('%j is refused as a name', (name) => {
    expect(isName(name)).toBe(false)
  })

  test.each([
    ['web1:80', 'web1', 80],
    ['web1:*', 'web1', 65_535],
    ['10.0.0.1:80', '10.0.0.1', 80],
    ['[2001:db8::1]:80', '2001:db8::1', 80],
    ['2001:db8::1', '2001:db8::1', undefined],
    ['a:b:80', 'a:b', 80],
    ['web1', 'web1', undefined],
  ])('%s', (member, server, port) => {
    expect(parseMember(member)).toEqual({ server, port })
    if (port !== undefined) expect(formatMember(server, port)).toBe(member)
  })
})

describe('replies', () => {
  const cases = JSON.parse(fixture('errors.json')) as {
    status: number
    text: string
    class: string
  }[]

  test.each(cases)('$status $text is $class', ({ status, text, class: wanted }) => {
    expect(classify(parseReply(status, text))).toBe(wanted)
  })

  test('an error says the words, the number and what to do', () => {
    const reply = parseReply(401, cases[2]!.text)
    const error = toError('https://adc: login', reply)
    expect(error).toMatchObject({ code: 'UNAUTHENTICATED', retryable: false })
    expect(error.message).toBe(
      "https://adc: login: 'Invalid username or password' (errorcode 354), check username and password",
    )
  })

  test('control characters of an answer reach no terminal', () => {
    const text = '{"errorcode":257,"message":"no\\u001b[31m\\nway","severity":"ERROR"}'
    expect(parseReply(599, text).message).toBe('no [31m way')
  })

  test('no rows, one object, a list', () => {
    expect(rowsOf(parseReply(200, '{"errorcode":0}'), 'x')).toEqual([])
    for (const x of ['{"a":1}', '[{"a":1}]']) {
      const [row] = rowsOf(parseReply(200, `{"errorcode":0,"x":${x}}`), 'x')
      expect(row?.at('a').count()).toBe(1)
    }
  })

  test.each(['"none"', '[{"a":1},null]', '[3]', '7', 'true'])(
    'rows that are %s are malformed',
    (x) => {
      const reply = parseReply(200, `{"errorcode":0,"x":${x}}`)
      expect(() => rowsOf(reply, 'x')).toThrow(expect.objectContaining({ code: 'MALFORMED_REPLY' }))
    },
  )

  test.each(['"none"', 'true', '[]', '{}', '0.5'])('an errorcode that is %s is ignored', (code) => {
    const reply = parseReply(200, `{"errorcode":${code},"x":[]}`)
    expect([classify(reply), reply.readable]).toEqual(['unreadable', false])
  })

  test('a truncated answer is told from one that is not JSON', () => {
    expect(parseReply(200, '{"errorcode":0,"servicegr').cut).toBe(true)
    expect(parseReply(200, '<html>').cut).toBe(false)
  })

  test.each([
    ['12', 12],
    [12, 12],
    ['12.0', 12],
    ['', undefined],
    [null, undefined],
  ])('the count %j is %j', (value, count) => {
    expect(toCount(json(value))).toBe(count)
  })

  test.each([12.9, '12.9', 'NaN', 'n/a', -1, '-1', true, [], '99999999999999999999'])(
    'the count %j is malformed',
    (value) => {
      expect(() => toCount(json(value))).toThrow(
        expect.objectContaining({ code: 'MALFORMED_REPLY' }),
      )
    },
  )

  test('a counter too large for a number still shows that it moved', () => {
    const before = json('18446744073709551614').counter()
    expect(before).toBe(744_073_709_551_614)
    expect(json('18446744073709551615').counter()).not.toBe(before)
    const number = (text: string): number | undefined => parseJson(text, source).counter()
    expect(number('9007199254740993')! - number('9007199254740992')!).toBe(1)
  })
})

describe('states', () => {
  test.each([
    ['UP', 'in', 'up'],
    [7, 'in', 'up'],
    ['DOWN', 'in', 'down'],
    ['UNKNOWN', 'in', 'unknown'],
    ['BUSY', 'in', 'unknown'],
    ['GOING OUT OF SERVICE', 'trofs', 'up'],
    ['Trofs', 'trofs', 'up'],
    ['5', 'trofs', 'up'],
    ['DOWN WHEN GOING OUT OF SERVICE', 'trofs', 'down'],
    ['TROFS_DOWN', 'trofs', 'down'],
    ['out of service', 'out', 'unknown'],
    ['OFS', 'out', 'unknown'],
    ['DISABLED', 'out', 'unknown'],
    ['Unknown', 'unknown', 'unknown'],
    ['NS_EMPTY_STR', 'unknown', 'unknown'],
    ['', 'unknown', 'unknown'],
  ])('%s is %s, %s', (state, phase, health) => {
    expect(toPhase(String(state))).toEqual([phase, health])
  })

  test('members of 13.x', () => {
    const members = rowsIn('members-13.json', 'servicegroup_servicegroupmember_binding').map(
      (row) => toMember('sg web', row),
    )
    expect(members).toMatchObject([
      { member: '10.1.0.1:80', phase: 'in', enabled: true, graceful: false, address: '10.1.0.1' },
      { member: '10.1.0.1:81', phase: 'trofs', enabled: false, graceful: true },
      { member: 'app.example.net:*', port: 65_535, address: undefined, health: 'down', weight: 10 },
      { member: '[2001:db8::5]:80', phase: 'out', graceful: false },
    ])
    expect(new Set(members.map((one) => one.identity)).size).toBe(4)
  })

  const row = { servername: 'web1', ip: '10.0.0.1', port: 80, svrstate: 'UP' }

  test.each<[string, object]>([
    ['no name', { servername: undefined, ip: undefined }],
    ['no port', { port: null }],
    ['any text for an address', { ip: 'web1' }],
    ['a port that is none', { port: 70_000 }],
    ['a state that is a list', { svrstate: ['UP'] }],
  ])('a member with %s is malformed', (_, change) => {
    expect(() => toMember('sg', json({ ...row, ...change }))).toThrow(
      expect.objectContaining({ code: 'MALFORMED_REPLY' }),
    )
  })

  test('a repeated row is one member, two rows that differ are malformed', () => {
    const out = { ...row, svrstate: 'OUT OF SERVICE' }
    expect(toMembers('sg', [json(row), json(row)]).entries).toHaveLength(1)
    const differ = toMembers('sg', [json(row), json(out)])
    expect([differ.entries, differ.odd.length]).toEqual([[], 1])
  })

  test('one member of 12.1 comes as an object with fewer fields', () => {
    const [row] = rowsIn('members-12.json', 'servicegroup_servicegroupmember_binding')
    expect(toMember('sg web', row!)).toMatchObject({
      phase: 'out',
      enabled: undefined,
      graceful: undefined,
      fingerprint: '-/-/-',
    })
  })

  test('traits are read, and missing ones are left out', () => {
    expect(
      toTraits(json({ downstateflush: 'DISABLED', servicetype: 'TCP', autoscale: 'API' })),
    ).toMatchObject({
      flush: false,
      servicetype: 'TCP',
      autoscale: 'API',
    })
    expect(toTraits(json({}))).toMatchObject({
      flush: undefined,
      autoscale: 'DISABLED',
      monitored: true,
    })
  })
})

describe('counts', () => {
  /** Those of a row that has nobody in its surge queue. */
  const counts = (row: object, type: string) => toCounts(json({ surgecount: '0', ...row }), type)

  test('of a member: its connections less the reuse pool, and the surge queue', () => {
    const [group] = rowsIn('stat-group.json', 'servicegroup')
    const [web, app] = rowsOf({ body: group! }, 'servicegroupmember')
    expect(toCounts(web!, 'HTTP')).toMatchObject({
      active: 3, // one of them is not established yet
      queued: 1,
      pooled: 4,
      arrivals: undefined,
    })
    expect(toCounts(app!, 'HTTP')).toMatchObject({ active: 0, queued: 0, up: false })
  })

  test('nested members are found by address and port, or by name', () => {
    const [group] = rowsIn('stat-group.json', 'servicegroup')
    const stats = rowsOf({ body: group! }, 'servicegroupmember')
    const members = rowsIn('members-13.json', 'servicegroup_servicegroupmember_binding').flatMap(
      (row) => toMember('sg web', row),
    )
    const index = new StatIndex(stats)
    const places = members.map((one) => {
      const row = index.of(one)
      return row === undefined ? -1 : stats.indexOf(row)
    })
    expect(places).toEqual([0, -1, 1, -1])
  })

  test('an idle HTTP service with full pools has nothing in flight', () => {
    const [row] = rowsIn('stat-service.json', 'service')
    expect(toCounts(row!, 'SSL')).toMatchObject({ active: 0, queued: 0, pooled: 3, surplus: 0 })
    expect(toCounts(row!, 'SSL')?.arrivals).toBeGreaterThan(0)
  })

  test('a request that left the surge queue is in a connection being made', () => {
    const row = { svrestablishedconn: '4', cursrvrconnections: '5', curreusepool: '4' }
    expect(counts(row, 'HTTP')).toMatchObject({ active: 1, queued: 0 })
  })

  test('requests of a member are counted for HTTP and SSL alone', () => {
    const row = { cursrvrconnections: '0', totalrequests: '7' }
    const arrivals = (type: string) => counts(row, type)?.arrivals
    expect(['HTTP', 'SSL', 'TCP', 'SSL_BRIDGE', 'UDP'].map(arrivals)).toEqual([
      7,
      7,
      undefined,
      undefined,
      undefined,
    ])
  })

  test('each TCP client is work, and its requests prove nothing', () => {
    const row = {
      svrestablishedconn: '0',
      curreusepool: '0',
      curclntconnections: '2',
      totalrequests: '0',
      activetransactions: '0',
    }
    expect(counts(row, 'TCP')).toMatchObject({ active: 2, arrivals: undefined })
  })

  test('connections that transactions leave over are told', () => {
    const row = { svrestablishedconn: '5', curreusepool: '2', activetransactions: '1' }
    expect(counts(row, 'HTTP')).toMatchObject({ active: 1, surplus: 2 })
  })

  test('missing numbers are not zeros', () => {
    expect(toCounts(json({ state: 'UP' }), 'HTTP')).toBeUndefined()
    expect(() => toCounts(json({ svrestablishedconn: 'n/a' }), 'HTTP')).toThrow("found 'n/a'")
  })
})
