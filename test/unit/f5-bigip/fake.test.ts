import { existsSync, readFileSync } from 'node:fs'
import { startFake, type BigipFake, type FakeOptions } from 'drainable/testing/f5-bigip'
import { Agent, request } from 'undici'
import { describe, expect, test } from 'vitest'
import { parseItems, toMembers } from '../../../src/adapters/f5-bigip/codec/members.js'
import { parseStats } from '../../../src/adapters/f5-bigip/codec/stats.js'
import { JsonValue } from '../../../src/kit/json.js'

const source = { provider: 'f5-bigip', what: 'GET' }
const MEMBER = '/mgmt/tm/ltm/pool/~Common~web/members/~Common~10.0.0.1:80'

interface Answer {
  readonly status: number
  readonly text: string
  readonly json: Record<string, unknown>
}

/** A client without any library: raw requests, with Basic credentials unless told otherwise. */
async function raw(
  fake: BigipFake,
  method: string,
  path: string,
  body?: unknown,
  headers: Record<string, string> = { authorization: basic(fake.username, fake.password) },
): Promise<Answer> {
  const dispatcher = new Agent({ connect: { ca: fake.ca } })
  const reply = await request(`${fake.url}${path}`, {
    method: method as 'GET',
    dispatcher,
    headers: { 'content-type': 'application/json', ...headers },
    body: body === undefined ? null : typeof body === 'string' ? body : JSON.stringify(body),
  })
  const text = await reply.body.text()
  await dispatcher.close()
  const json = text.startsWith('{') ? (JSON.parse(text) as Record<string, unknown>) : {}
  return { status: reply.statusCode, text, json }
}

function basic(user: string, password: string): string {
  return `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`
}

const start = (options: FakeOptions = {}): Promise<BigipFake> => startFake(options)

describe('the fake refuses what a device refuses', () => {
  test.each([
    [
      'a word that is only read',
      'PATCH',
      MEMBER,
      { state: 'up' },
      400,
      'invalid property value "state":"up"',
    ],
    [
      'a session that is only read',
      'PATCH',
      MEMBER,
      { session: 'monitor-enabled' },
      400,
      '"session"',
    ],
    [
      'an object put back as it was read',
      'PUT',
      MEMBER,
      { session: 'user-disabled', state: 'up' },
      400,
      '"state":"up"',
    ],
    ['a strange property', 'PATCH', MEMBER, { sesion: 'x' }, 400, 'unknown property'],
    ['a body that is no JSON', 'PATCH', MEMBER, '{', 400, 'JSON'],
    ['a member without a port', 'GET', MEMBER.slice(0, -3), undefined, 400, 'HTML Tag-like'],
    [
      'an unknown member',
      'GET',
      MEMBER.replace('0.1:', '0.9:'),
      undefined,
      404,
      '(/Common/web /Common/10.0.0.9 80) was not found',
    ],
    [
      'an unknown pool',
      'GET',
      '/mgmt/tm/ltm/pool/~Common~no/members',
      undefined,
      404,
      'Pool (/Common/no)',
    ],
    ['names in another case', 'GET', MEMBER.replace('web', 'Web'), undefined, 404, 'was not found'],
    ['an unknown path', 'GET', '/mgmt/tm/nothing', undefined, 404, 'not registered'],
    [
      'a member that is there',
      'POST',
      '/mgmt/tm/ltm/pool/~Common~web/members',
      { name: '10.0.0.1:80' },
      409,
      'already exists',
    ],
    ['a node in use', 'DELETE', '/mgmt/tm/ltm/node/~Common~10.0.0.1', undefined, 400, 'referenced'],
    [
      'an unknown word of a filter',
      'GET',
      '/mgmt/tm/sys/connection?options=server+x',
      undefined,
      400,
      'unknown property',
    ],
  ])('%s', async (_what, method, path, body, status, words) => {
    await using fake = await start()
    const answer = await raw(fake, method, path, body)
    expect(answer.status).toBe(status)
    expect(answer.json['code']).toBe(status)
    expect(answer.json['message']).toContain(words)
  })

  test('missing and wrong credentials, and expired tokens', async () => {
    await using fake = await start({ maxTokens: 1, lockAfter: 2 })
    const none = await raw(fake, 'GET', MEMBER, undefined, {})
    expect(none).toMatchObject({ status: 401, json: { kind: ':resterrorresponse' } })
    const wrong = await raw(fake, 'GET', MEMBER, undefined, { authorization: basic('admin', 'x') })
    expect(wrong.status).toBe(401)
    expect(wrong.text).toContain('<title>401 F5 Authorization Required')

    const path = '/mgmt/shared/authn/login'
    const body = { username: 'admin', password: 'secret', loginProviderName: 'tmos' }
    const login = await raw(fake, 'POST', path, body, {})
    const token = login.json['token'] as { token: string; timeout: number }
    expect(token.token).toMatch(/^[A-Z2-7]{26}$/)
    expect(token.timeout).toBe(1_200)
    const second = await raw(fake, 'POST', path, body, {})
    expect(second).toMatchObject({ status: 400 })
    expect(second.text).toContain('maximum active login tokens')
    const headers = { 'x-f5-auth-token': token.token }
    expect((await raw(fake, 'GET', MEMBER, undefined, headers)).status).toBe(200)
    const own = `/mgmt/shared/authz/tokens/${token.token}`
    expect((await raw(fake, 'PATCH', own, { timeout: 36_000 }, headers)).json['timeout']).toBe(
      36_000,
    )
    expect((await raw(fake, 'PATCH', own, { timeout: 36_001 }, headers)).status).toBe(400)
    fake.expireTokens()
    const old = await raw(fake, 'GET', MEMBER, undefined, headers)
    expect(old.json['message']).toBe('X-F5-Auth-Token has expired.')
    const strange = await raw(fake, 'GET', MEMBER, undefined, { 'x-f5-auth-token': 'NOSUCH' })
    expect(strange.json['message']).toBe('X-F5-Auth-Token does not exist.')

    for (let i = 0; i < 2; i += 1) {
      expect((await raw(fake, 'POST', path, { ...body, password: 'x' }, {})).status).toBe(401)
    }
    expect((await raw(fake, 'POST', path, body, {})).status).toBe(401) // locked
  })

  test('no password is kept in the requests that it remembers', async () => {
    await using fake = await start()
    const body = { username: 'admin', password: 'secret', loginProviderName: 'tmos' }
    await raw(fake, 'POST', '/mgmt/shared/authn/login', body)
    expect(JSON.stringify(fake.requests)).not.toMatch(/secret|Basic/)
    expect(fake.requests[0]).toMatchObject({ auth: 'basic', status: 200 })
  })
})

describe('the fake holds what it was asked to hold', () => {
  test('states read back as a device reads them', async () => {
    await using fake = await start({
      pools: { web: ['10.0.0.1:80', { name: '10.0.0.2:80', monitor: 'unchecked' }] },
      checkDelay: 60_000,
    })
    const second = MEMBER.replace('0.1:', '0.2:')
    const words = async (path: string, body?: object): Promise<unknown[]> => {
      const { json } = await raw(fake, body === undefined ? 'GET' : 'PATCH', path, body)
      return [json['session'], json['state']]
    }
    expect(await words(MEMBER)).toEqual(['monitor-enabled', 'up'])
    expect(await words(second)).toEqual(['user-enabled', 'unchecked'])
    expect(await words(MEMBER, { session: 'user-disabled' })).toEqual(['user-disabled', 'up'])
    expect(await words(MEMBER, { state: 'user-down' })).toEqual(['user-disabled', 'user-down'])
    expect(await words(MEMBER, { session: 'user-disabled' })).toEqual([
      'user-disabled',
      'user-down',
    ])
    expect(await words(MEMBER, { session: 'user-enabled' })).toEqual(['user-enabled', 'user-down'])
    expect(await words(MEMBER, { state: 'user-up' })).toEqual(['monitor-enabled', 'checking'])
    expect(fake.state({ pool: 'web', member: '10.0.0.1:80' })).toBe('ready')
  })

  test('bare and escaped names, with and without a path, mean one member', async () => {
    await using fake = await start({ pools: { web: ['10.0.0.2%1:80'] } })
    for (const path of [
      '/mgmt/tm/ltm/pool/~Common~web/members/~Common~10.0.0.2%251:80',
      '/mgmt/tm/ltm/pool/web/members/10.0.0.2%251:80',
      '/mgmt/tm/ltm/pool/~Common~web/members/~Common~10.0.0.2%251%3A80/',
    ]) {
      expect((await raw(fake, 'GET', path)).json['fullPath']).toBe('/Common/10.0.0.2%1:80')
    }
    const { json } = await raw(fake, 'GET', '/mgmt/tm/ltm/pool/web/members/10.0.0.2%251:80')
    expect(json['selfLink']).toContain('~Common~10.0.0.2%251:80?ver=15.1.10')
  })

  test('lists: $select, $top, $skip, $filter, expanded members', async () => {
    await using fake = await start({
      pools: { web: ['10.0.0.1:80', '10.0.0.2:80', '10.0.0.3:80'], '/T/api': ['10.0.0.1:81'] },
    })
    const page = await raw(fake, 'GET', '/mgmt/tm/ltm/pool/web/members?$select=name&$top=2')
    expect(page.json['items']).toEqual([{ name: '10.0.0.1:80' }, { name: '10.0.0.2:80' }])
    expect(page.json['nextLink']).toContain(
      'https://localhost/mgmt/tm/ltm/pool/~Common~web/members?',
    )
    const pools = await raw(
      fake,
      'GET',
      '/mgmt/tm/ltm/pool?$filter=partition eq T'.replaceAll(' ', '+'),
    )
    expect(pools.json['items']).toMatchObject([{ fullPath: '/T/api' }])
    const all = await raw(fake, 'GET', '/mgmt/tm/ltm/pool?expandSubcollections=true')
    expect(all.json['items']).toMatchObject([{ membersReference: { items: [{}, {}, {}] } }, {}])
  })

  test('statistics follow the occupied work, late if told to', async () => {
    await using fake = await start({ statsLag: 150 })
    const ref = { pool: 'web', member: '10.0.0.1:80' }
    const read = async (): Promise<number | undefined> => {
      const { json } = await raw(fake, 'GET', '/mgmt/tm/ltm/pool/~Common~web/members/stats')
      return parseStats(new JsonValue(json, source), '/Common/web').get('/Common/10.0.0.1\u000080')
        ?.active
    }
    const end = await fake.occupy(ref, 2)
    expect(fake.load(ref).curConns).toBe(2)
    const seen = new Set<number | undefined>()
    while (!seen.has(2)) seen.add(await read())
    await end()
    while ((await read()) !== 0);
    expect(fake.load(ref)).toMatchObject({ curConns: 0, totConns: 2 })
  })

  test('13.1 answers an unqualified pool with the pool itself', async () => {
    await using old = await start({ version: '13.1' })
    const { json } = await raw(old, 'GET', '/mgmt/tm/ltm/pool/web/members/stats')
    expect(JSON.stringify(json)).toContain('memberCnt')
    await using recent = await start({ version: '17.1' })
    const one = await raw(recent, 'GET', `${MEMBER}/stats`)
    expect(Object.keys(one.json['entries'] as object)[0]).toMatch(
      /~10\.0\.0\.1:80\/~Common~10\.0\.0\.1:80\/stats$/,
    )
  })

  test('a DELETE of connections without a filter empties the table', async () => {
    await using fake = await start()
    await fake.occupy({ pool: 'web', member: '10.0.0.1:80' })
    await fake.occupy({ pool: 'web', member: '10.0.0.2:80' })
    const all = await raw(fake, 'GET', '/mgmt/tm/sys/connection')
    expect(Object.keys(all.json['entries'] as object)).toHaveLength(2)
    await raw(fake, 'DELETE', '/mgmt/tm/sys/connection')
    expect(fake.load({ pool: 'web', member: '10.0.0.2:80' }).curConns).toBe(0)
  })

  test('a transaction is all or nothing', async () => {
    await using fake = await start()
    const opened = await raw(fake, 'POST', '/mgmt/tm/transaction', {})
    const id = String(opened.json['transId'])
    const headers = {
      authorization: basic(fake.username, fake.password),
      'x-f5-rest-coordination-id': id,
    }
    await raw(fake, 'PATCH', MEMBER, { session: 'user-disabled' }, headers)
    await raw(fake, 'PATCH', MEMBER.replace('0.1:', '0.9:'), { session: 'user-disabled' }, headers)
    const done = await raw(fake, 'PATCH', `/mgmt/tm/transaction/${id}`, { state: 'VALIDATING' })
    expect(done.status).toBe(404)
    expect(done.json['message']).toContain('transaction failed:01020036:3')
    expect(fake.state({ pool: 'web', member: '10.0.0.1:80' })).toBe('ready')
  })

  test('a given port is kept, and HTTP is served if TLS is off', async () => {
    const first = await start({ tls: false })
    const port = Number(new URL(first.url).port)
    await first.close()
    await using fake = await start({ tls: false, port })
    expect(fake.url).toBe(`http://127.0.0.1:${port}`)
    expect(fake.ca).toBe('')
    expect((await raw(fake, 'GET', MEMBER)).status).toBe(200)
    const end = fake.fail({ how: 'refuse' })
    await expect(raw(fake, 'GET', MEMBER)).rejects.toThrow(/ECONNREFUSED/)
    await end()
    expect((await raw(fake, 'GET', MEMBER)).status).toBe(200)
  })
})

const SHARED = new URL('../../../../shared/fixtures/f5/', import.meta.url)

describe.skipIf(!existsSync(SHARED))('recordings by others', () => {
  const recorded = (name: string): JsonValue =>
    new JsonValue(JSON.parse(readFileSync(new URL(name, SHARED), 'utf8')), source)

  test('answers of devices are understood', () => {
    const { rows: members } = toMembers(parseItems(recorded('pool-members-states.authored.json')))
    expect(members).toHaveLength(11)
    expect(members.map(({ own }) => own)).not.toContain('unknown')
    const stats = parseStats(recorded('pool-members-stats.json'), '/Common/test_pool_0')
    expect([...stats.keys()].map((key) => key.replace('\0', ' '))).toEqual([
      '/Common/10.10.0.2 80',
      '/Common/10.10.0.2%10 80',
      '/Common/_auto_192.168.2.2 80',
      '/Common/bestwebsite 80',
    ])
    for (const row of stats.values())
      expect(row).toMatchObject({ active: 0, queued: 0, arrivals: 0 })
  })

  interface Wire {
    readonly requests: readonly {
      readonly method: string
      readonly path: string
      readonly body?: Record<string, unknown> | null
    }[]
  }

  test.each(['ansible', 'bigrest', 'f5sdk', 'go'])(
    'requests of %s are accepted',
    async (client) => {
      await using fake = await start({
        pair: true,
        pools: { web: ['10.0.0.1:80', '10.0.0.2%1:80', '2001:db8::1.80'] },
      })
      for (const { method, path, body } of (
        recorded(`wire-client-${client}.json`).value as unknown as Wire
      ).requests) {
        if (/authn|authz|transaction|util\/bash/.test(path)) continue
        const { status, text } = await raw(fake, method, path, body ?? undefined)
        const unknown = /9\.9\.9\.9|10\.0\.0\.9|nope/.test(path)
        const readWord = method === 'PUT' && body?.['state'] === 'up'
        const gone = status === 404 && method === 'GET'
        if (readWord) expect(text).toContain('invalid property value')
        else if (!gone) expect([method, path, status < 300]).toEqual([method, path, !unknown])
      }
    },
  )
})
