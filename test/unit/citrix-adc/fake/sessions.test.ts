import { startFake } from 'drainable/testing/citrix-adc'
import { describe, expect, test } from 'vitest'
import { rows, send } from '../nitro-client.js'
import { WEB1, MEMBERS, DISABLE, start } from './set-up.js'

describe('logins', () => {
  test('a login answers 201 with the token in the cookie and in the body', async () => {
    await using fake = await start()
    const reply = await send(fake, 'POST /config/login', {
      login: { username: 'admin', password: 'secret', timeout: 900 },
    })
    expect(reply.status).toBe(201)
    expect(reply.headers['set-cookie']?.[0]).toMatch(/^NITRO_AUTH_TOKEN=%23%23[0-9A-F]+; path=/)
    expect(reply.json['sessionid']).toMatch(/^##/)
  })

  test.each([
    [
      'Cookie: NITRO_AUTH_TOKEN',
      (token: string) => ({ cookie: `NITRO_AUTH_TOKEN=${encodeURIComponent(token)}` }),
    ],
    ['Cookie: sessionid', (token: string) => ({ cookie: `sessionid=${token}` })],
    [
      'a request header named Set-Cookie',
      (token: string) => ({ 'set-cookie': `NITRO_AUTH_TOKEN=${token}` }),
    ],
  ])('takes the token back as %s', async (_, headers) => {
    await using fake = await start()
    const login = await send(
      fake,
      'POST /config/login',
      { login: { username: 'admin', password: 'secret' } },
      {},
    )
    const reply = await send(fake, MEMBERS, undefined, headers(String(login.json['sessionid'])))
    expect(reply.status).toBe(200)
  })

  test('takes the oldest form: object= with params and sessionid inside', async () => {
    await using fake = await start()
    const form = { 'content-type': 'application/x-www-form-urlencoded' }
    const body = (object: unknown): string =>
      new URLSearchParams({ object: JSON.stringify(object) }).toString()
    const login = await send(
      fake,
      'POST /config/',
      body({ login: { username: 'admin', password: 'secret' } }),
      form,
    )
    const { sessionid } = login.json
    const disable = {
      params: { action: 'disable' },
      sessionid,
      servicegroup: { servicegroupname: 'web', servername: 'web1', port: 80, graceful: 'YES' },
    }
    const reply = await send(fake, 'POST /config/', body(disable), form)
    expect(reply.status).toBe(200)
    expect(fake.look(WEB1).enabled).toBe(false)
  })

  test.each([
    ['a wrong password', { login: { username: 'admin', password: 'nope' } }, 401, 354],
    [
      'a timeout out of range',
      { login: { username: 'admin', password: 'secret', timeout: 5 } },
      599,
      1219,
    ],
  ])('refuses %s', async (_, body, status, errorcode) => {
    await using fake = await start()
    const reply = await send(fake, 'POST /config/login', body, {})
    expect([reply.status, reply.json['errorcode']]).toEqual([status, errorcode])
  })

  test('refuses a wrong user, an ended session, and one session too many', async () => {
    await using fake = await start({ maxSessions: 1, expiry: { status: 200, errorcode: 1027 } })
    expect((await send(fake, MEMBERS, undefined, {})).json['errorcode']).toBe(352)
    const login = { login: { username: 'admin', password: 'secret' } }
    const first = await send(fake, 'POST /config/login', login, {})
    expect((await send(fake, 'POST /config/login', login, {})).json['errorcode']).toBe(445)
    fake.expireSessions()
    const late = await send(fake, MEMBERS, undefined, {
      cookie: `sessionid=${String(first.json['sessionid'])}`,
    })
    expect([late.status, late.json['errorcode']]).toEqual([200, 1027])
    expect(fake.sessions).toBe(0)
  })

  test('refuses headers when they are off, and writes of a reader', async () => {
    await using off = await start({ headerAuth: false })
    expect((await send(off, MEMBERS)).json['errorcode']).toBe(1244)
    await using fake = await start({ users: { eve: { password: 'pw', rights: 'read-only' } } })
    const eve = { 'X-NITRO-USER': 'eve', 'X-NITRO-PASS': 'pw' }
    expect((await send(fake, MEMBERS, undefined, eve)).status).toBe(200)
    const reply = await send(fake, DISABLE, { servicegroup: { servicegroupname: 'web' } }, eve)
    expect([reply.status, reply.json['errorcode']]).toEqual([403, 2138])
  })
})

describe('names', () => {
  test.each(['sg%2520web', 'sg%2Bweb', 'sg%20web'])('%s in a path is "sg web"', async (name) => {
    await using fake = await start({ pools: { 'sg web': ['10.0.0.1:80'] } })
    const reply = await send(fake, `GET /config/servicegroup/${name}`)
    expect(rows(reply, 'servicegroup')[0]).toMatchObject({ servicegroupname: 'sg web' })
  })

  test('values of args are decoded once; ip and servername exclude each other', async () => {
    await using fake = await start({
      pools: { 'sg web': [{ name: 'six', address: '2001:db8::1', port: 80 }] },
    })
    const one = await send(
      fake,
      'GET /stat/servicegroupmember?args=servicegroupname:sg%20web,ip:2001%3Adb8%3A%3A1,port:80',
    )
    expect(rows(one, 'servicegroupmember')[0]).toMatchObject({ primaryipaddress: '2001:db8::1' })
    const both = await send(
      fake,
      'GET /stat/servicegroupmember?args=servicegroupname:sg%20web,ip:10.0.0.1,servername:six,port:80',
    )
    expect(both.json['errorcode']).toBe(1092)
  })

  test('the key is absent when there are no rows', async () => {
    await using fake = await start({ pools: { empty: [] } })
    const reply = await send(fake, 'GET /config/servicegroup_servicegroupmember_binding/empty')
    expect(reply.json).toEqual({ errorcode: 0, message: 'Done', severity: 'NONE' })
  })
})

test('HTTPS has a certificate that clients can trust', async () => {
  await using fake = await startFake()
  expect(fake.url).toMatch(/^https:/)
  expect((await send(fake, MEMBERS)).status).toBe(200)
})
