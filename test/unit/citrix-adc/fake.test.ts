import { startFake, type CitrixFake, type FakeOptions } from 'drainable/testing/citrix-adc'
import { existsSync, readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { rows, send } from './nitro-client.js'
import { eventually } from '../../support/eventually.js'

const WEB1 = { pool: 'web', member: 'web1:80' }
const MEMBERS = 'GET /config/servicegroup_servicegroupmember_binding/web'
const DISABLE = 'POST /config/servicegroup?action=disable'

function start(options: FakeOptions = {}): Promise<CitrixFake> {
  return startFake({ tls: false, tick: 20, ...options })
}

describe('the ways in', () => {
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

  test('refuses a stranger, an ended session, and one session too many', async () => {
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

  test('refuses headers where they are off, and writes of a reader', async () => {
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

  test('no rows: the key is absent', async () => {
    await using fake = await start({ pools: { empty: [] } })
    const reply = await send(fake, 'GET /config/servicegroup_servicegroupmember_binding/empty')
    expect(reply.json).toEqual({ errorcode: 0, message: 'Done', severity: 'NONE' })
  })
})

describe('disable and enable', () => {
  const member = { servicegroupname: 'web', servername: 'web1', port: 80 }

  test('gracefully: TROFS while a client is there, then OUT OF SERVICE', async () => {
    await using fake = await start()
    const end = await fake.occupy(WEB1)
    const reply = await send(fake, DISABLE, {
      servicegroup: { ...member, graceful: 'YES', delay: 0 },
    })
    expect(reply.text).toBe('{ "errorcode": 0, "message": "Done", "severity": "NONE" }')
    expect(fake.look(WEB1).svrstate).toBe('GOING OUT OF SERVICE')
    expect(fake.arrive(WEB1)).toBe(false)
    await end()
    await eventually(() => {
      expect(fake.look(WEB1).svrstate).toBe('OUT OF SERVICE')
    })
    expect(fake.look(WEB1).cut).toBe(0)
  })

  test('without grace: cuts at once, unless downStateFlush is off', async () => {
    await using fake = await start({
      pools: { web: ['web1:80'], keep: { members: ['web2:80'], downstateflush: 'DISABLED' } },
    })
    await fake.occupy(WEB1)
    await send(fake, DISABLE, { servicegroup: member })
    expect(fake.look(WEB1)).toMatchObject({ svrstate: 'OUT OF SERVICE', active: 0, cut: 1 })
    const web2 = { pool: 'keep', member: 'web2:80' }
    await fake.occupy(web2)
    await send(fake, DISABLE, {
      servicegroup: { servicegroupname: 'keep', servername: 'web2', port: 80 },
    })
    expect(fake.look(web2)).toMatchObject({ svrstate: 'OUT OF SERVICE', active: 1, cut: 0 })
  })

  test('a delay is a hard end: what is left is cut', async () => {
    await using fake = await start()
    await fake.occupy(WEB1)
    await send(fake, DISABLE, { servicegroup: { ...member, graceful: 'YES', delay: 1 } })
    expect(fake.look(WEB1).active).toBe(1)
    await eventually(() => {
      expect(fake.look(WEB1)).toMatchObject({ svrstate: 'OUT OF SERVICE', cut: 1 })
    })
  })

  test('TROFS lasts as long as persistence lets clients in', async () => {
    await using fake = await start({ vservers: { vs: ['svc1'] }, pools: {} })
    const svc1 = { pool: 'vs', member: 'svc1' }
    const forget = await fake.occupy(svc1, { persistent: 1 })
    await send(fake, 'POST /config/service?action=disable', {
      service: { name: 'svc1', graceful: 'YES' },
    })
    expect(fake.arrive(svc1, { persistent: true })).toBe(true)
    expect(fake.arrive(svc1)).toBe(false)
    await new Promise((resolve) => setTimeout(resolve, 60))
    expect(fake.look(svc1).svrstate).toBe('GOING OUT OF SERVICE')
    await forget()
    await eventually(() => {
      expect(fake.look(svc1).svrstate).toBe('OUT OF SERVICE')
    })
  })

  test('a graceful disable resets idle keep-alive clients of HTTP', async () => {
    await using fake = await start()
    await fake.occupy(WEB1, { idleClients: 3 })
    await send(fake, DISABLE, { servicegroup: { ...member, graceful: 'YES' } })
    expect(fake.look(WEB1).cut).toBe(3)
  })

  test('no server name and no port: the whole group goes', async () => {
    await using fake = await start()
    await send(fake, DISABLE, { servicegroup: { servicegroupname: 'web', graceful: 'NO' } })
    expect(fake.look({ pool: 'web', member: 'web2:80' }).svrstate).toBe('OUT OF SERVICE')
  })

  test.each([
    ['a superfluous key', { ...member, weight: 1 }, 599, 278],
    ['a server without its port', { servicegroupname: 'web', servername: 'web1' }, 599, 1093],
    ['an unknown group', { ...member, servicegroupname: 'nope' }, 404, 258],
    ['an unknown member', { ...member, port: 81 }, 404, 258],
    ['a delay below zero', { ...member, delay: -1 }, 599, 1109],
    ['another word for graceful', { ...member, graceful: 'MAYBE' }, 599, 1097],
  ])('refuses %s', async (_, payload, status, errorcode) => {
    await using fake = await start()
    const reply = await send(fake, DISABLE, { servicegroup: payload })
    expect([reply.status, reply.json['errorcode']]).toEqual([status, errorcode])
    expect(fake.look(WEB1).enabled).toBe(true)
  })

  test('enable takes neither delay nor graceful', async () => {
    await using fake = await start()
    const reply = await send(fake, 'POST /config/servicegroup?action=enable', {
      servicegroup: { ...member, graceful: 'NO' },
    })
    expect(reply.json['errorcode']).toBe(278)
  })

  test('a server takes everything along, and its enable brings all back', async () => {
    await using fake = await start({
      pools: {
        web: [{ name: 'web1', address: '10.0.0.1', port: 80 }],
        api: [{ name: 'web1', port: 81 }],
      },
    })
    const api = { pool: 'api', member: 'web1:81' }
    await fake.setBehind(api, 'maint')
    await send(fake, 'POST /config/server?action=disable', { server: { name: 'web1' } })
    expect(fake.look(WEB1).svrstate).toBe('OUT OF SERVICE')
    await send(fake, 'POST /config/server?action=enable', { server: { name: 'web1' } })
    expect([fake.look(WEB1).svrstate, fake.look(api).svrstate]).toEqual(['UP', 'UP'])
  })

  test('a desired-state group refuses actions on one member', async () => {
    await using fake = await start({ pools: { web: { members: ['web1:80'], autoscale: 'API' } } })
    expect((await send(fake, DISABLE, { servicegroup: member })).json['errorcode']).toBe(257)
  })

  test('a bulk operation tells each row', async () => {
    await using fake = await start()
    const reply = await send(fake, DISABLE, { servicegroup: [{ ...member, port: 81 }, member] })
    expect(reply.status).toBe(207)
    expect(reply.json['response']).toHaveLength(1)
    expect(fake.look(WEB1).enabled).toBe(true)
  })
})

describe('numbers', () => {
  test('pools pollute the counts; transactions are known of services only', async () => {
    await using fake = await start({ vservers: { vs: ['svc1'] }, pools: { web: ['web1:80'] } })
    await fake.occupy(WEB1, { active: 2, queued: 1, pooled: 5, idleClients: 4 })
    const [group] = rows(
      await send(fake, 'GET /stat/servicegroup/web?statbindings=yes'),
      'servicegroup',
    )
    const [nested] = group!['servicegroupmember'] as Record<string, unknown>[]
    expect(nested).toMatchObject({
      servicegroupname: 'web?web1?80',
      svrestablishedconn: '7',
      curreusepool: '5',
      surgecount: '1',
      curclntconnections: '7',
      primaryport: 80,
    })
    expect(nested).not.toHaveProperty('activetransactions')
    const [service] = rows(await send(fake, 'GET /stat/service/svc1'), 'service')
    expect(service).toHaveProperty('activetransactions', '0')
  })

  test('stat repeats itself for a while where the test says so', async () => {
    await using fake = await start({ statInterval: 60_000 })
    await send(fake, 'GET /stat/servicegroup/web?statbindings=yes')
    await fake.occupy(WEB1)
    const [group] = rows(
      await send(fake, 'GET /stat/servicegroup/web?statbindings=yes'),
      'servicegroup',
    )
    expect((group!['servicegroupmember'] as Record<string, unknown>[])[0]).toMatchObject({
      svrestablishedconn: '0',
    })
  })
})

describe('a pair, partitions, saving', () => {
  test('the secondary takes a disable silently and does not pass it on', async () => {
    await using fake = await start({ ha: true })
    const secondary = { url: fake.urls[1]!, ca: fake.ca }
    const payload = { servicegroup: { servicegroupname: 'web', servername: 'web1', port: 80 } }
    expect((await send(secondary, DISABLE, payload)).status).toBe(200)
    expect(fake.look(WEB1).enabled).toBe(true)
    const warned = await send(secondary, `${DISABLE}&warning=yes`, payload)
    expect([warned.status, warned.headers['x-nitro-warning']]).toEqual([
      209,
      expect.stringMatching(/^1028 - /),
    ])
  })

  test('after a failover the other node knows the disabled state', async () => {
    await using fake = await start({ ha: true })
    await send(fake, DISABLE, {
      servicegroup: { servicegroupname: 'web', servername: 'web1', port: 80 },
    })
    await fake.failover()
    expect(fake.look(WEB1).enabled).toBe(false)
    const [self] = rows(await send({ url: fake.snip, ca: '' }, 'GET /config/hanode/0'), 'hanode')
    expect(self).toMatchObject({ ipaddress: '192.0.2.241', state: 'Primary' })
    expect(rows(await send(fake, 'GET /stat/hanode'), 'hanode')[0]).toMatchObject({
      hacurmasterstate: 'Secondary',
    })
  })

  test('a reboot forgets what was not saved', async () => {
    await using fake = await start()
    await fake.setBehind(WEB1, 'maint')
    await fake.restart()
    expect(fake.look(WEB1).enabled).toBe(true)
    await fake.setBehind(WEB1, 'maint')
    await send(fake, 'POST /config/nsconfig?action=save', { nsconfig: {} })
    await fake.restart()
    expect(fake.look(WEB1).enabled).toBe(false)
  })

  test('a session sees its partition alone', async () => {
    await using fake = await start({ partitions: { p1: { pools: { inner: ['10.0.0.9:80'] } } } })
    const login = await send(
      fake,
      'POST /config/login',
      { login: { username: 'admin', password: 'secret' } },
      {},
    )
    const cookie = { cookie: `sessionid=${String(login.json['sessionid'])}` }
    expect((await send(fake, 'GET /config/servicegroup/inner', undefined, cookie)).status).toBe(404)
    await send(
      fake,
      'POST /config/nspartition?action=Switch',
      { nspartition: { partitionname: 'p1' } },
      cookie,
    )
    expect((await send(fake, 'GET /config/servicegroup/inner', undefined, cookie)).status).toBe(200)
  })
})

describe('what tools of the configuration send', () => {
  test('objects are made, read and taken away', async () => {
    await using fake = await start({ pools: {} })
    const done = async (line: string, body?: unknown): Promise<void> => {
      const reply = await send(fake, line, body)
      expect(reply.json['errorcode'], `${line}: ${reply.text}`).toBe(0)
    }
    const binding = 'servicegroup_servicegroupmember_binding'
    const member = { servicegroupname: 'sg 1', servername: 'web1', port: 80, weight: 5 }
    await done('POST /config/server', { server: { name: 'web1', ipaddress: '10.0.0.1' } })
    await done('POST /config/servicegroup', {
      servicegroup: { servicegroupname: 'sg 1', servicetype: 'TCP' },
    })
    await done(`PUT /config/${binding}`, { [binding]: member })
    await done('POST /config/lbvserver', {
      lbvserver: { name: 'vs1', servicetype: 'TCP', persistencetype: 'SOURCEIP' },
    })
    await done('PUT /config/lbvserver_servicegroup_binding', {
      lbvserver_servicegroup_binding: { name: 'vs1', servicegroupname: 'sg 1' },
    })
    await done('PUT /config', {
      params: { warning: 'YES' },
      lbvserver: { name: 'vs1', trofspersistence: 'DISABLED' },
    })
    const vserver = rows(await send(fake, 'GET /config/lbvserver/vs1'), 'lbvserver')[0]
    expect(vserver).toMatchObject({
      curstate: 'UP',
      persistencetype: 'SOURCEIP',
      trofspersistence: 'DISABLED',
    })
    const carried = await send(fake, 'GET /config/server_servicegroup_binding/web1')
    expect(rows(carried, 'server_servicegroup_binding')).toMatchObject([
      { servicegroupname: 'sg 1', port: 80 },
    ])
    const again = await send(fake, `PUT /config/${binding}`, { [binding]: member })
    expect([again.status, again.json['errorcode']]).toEqual([409, 273])
    const list = 'servicegroup_servicegroupmemberlist_binding'
    await done(`PUT /config/${list}`, {
      [list]: { servicegroupname: 'sg 1', members: [{ ip: '10.0.0.2', port: 80 }] },
    })
    const bound = await send(fake, `GET /config/${binding}/sg%25201?count=yes`)
    expect(rows(bound, binding)).toEqual([{ __count: 1 }])
    await done(`DELETE /config/${binding}/sg%25201?args=servername:10.0.0.2,port:80`)
    await done('DELETE /config/lbvserver/vs1')
    await done('DELETE /config/servicegroup/sg%25201')
    await done('DELETE /config/server/web1')
    expect((await send(fake, 'GET /config/servicegroup')).json).not.toHaveProperty('servicegroup')
  })

  test('rows are filtered, cut into pages and reduced to what is asked for', async () => {
    await using fake = await start({ pools: { web: ['web1:80', 'web1:81', 'web2:80'] } })
    const one = await send(
      fake,
      `${MEMBERS}?filter=servername:/web./,port:80&attrs=servername,port`,
    )
    expect(rows(one, 'servicegroup_servicegroupmember_binding')).toEqual([
      { port: 80, servername: 'web1' },
      { port: 80, servername: 'web2' },
    ])
    const page = await send(fake, `${MEMBERS}?pageno=2&pagesize=2`)
    expect(rows(page, 'servicegroup_servicegroupmember_binding')).toHaveLength(1)
  })

  test.each(['csvserver', 'protocolhttp', 'Interface', 'ssl'])(
    'exporters may ask for %s',
    async (type) => {
      await using fake = await start()
      expect((await send(fake, `GET /stat/${type}`)).json['errorcode']).toBe(0)
    },
  )
})

describe('failures', () => {
  test('a reset that executes: carried out, and no answer', async () => {
    await using fake = await start()
    fake.fail({ match: /action=disable/, how: 'reset', execute: true, times: 1 })
    const payload = { servicegroup: { servicegroupname: 'web', servername: 'web1', port: 80 } }
    await expect(send(fake, DISABLE, payload)).rejects.toThrow()
    expect(fake.look(WEB1).enabled).toBe(false)
  })

  test('refuse: no connection until it is ended', async () => {
    await using fake = await start()
    const end = fake.fail({ how: 'refuse' })
    await expect(send(fake, MEMBERS)).rejects.toThrow(/ECONNREFUSED|ECONNRESET/)
    await end()
    expect((await send(fake, MEMBERS)).status).toBe(200)
  })
})

test('HTTPS with a certificate that clients can trust', async () => {
  await using fake = await startFake()
  expect(fake.url).toMatch(/^https:/)
  expect((await send(fake, MEMBERS)).status).toBe(200)
})

test.each([
  ['14.1-17.38', ['state', 'graceful'], 'NONE'],
  ['12.1', [], 'NONE'],
  ['10.5', [], undefined],
])('speaks as %s', async (version, fields, severity) => {
  await using fake = await start({ version })
  const reply = await send(fake, MEMBERS)
  const [row] = rows(reply, 'servicegroup_servicegroupmember_binding')
  expect(Object.keys(row!).filter((key) => ['state', 'graceful'].includes(key))).toEqual(fields)
  expect(reply.json['severity']).toBe(severity)
})

const CAPTURED = new URL(
  '../../../../shared/fixtures/citrix/client-requests.captured.jsonl',
  import.meta.url,
)

describe.skipIf(!existsSync(CAPTURED))('what clients of others sent', () => {
  interface Captured {
    readonly method: string
    readonly target: string
    readonly headers: readonly (readonly [string, string])[]
    readonly body: string
    readonly client: string
  }

  const lines = existsSync(CAPTURED) ? readFileSync(CAPTURED, 'utf8').trim().split('\n') : []
  const captured = lines.map((line) => JSON.parse(line) as Captured)
  const clients = [...new Set(captured.map(({ client }) => client))]

  test.each(clients)('%s is understood', async (client) => {
    await using fake = await start({
      username: 'nsroot',
      password: 'pw',
      pools: {
        'sg web': ['10.0.0.1:80'],
        sg1: [{ name: 'web1', address: '10.0.0.9', port: 80 }],
        sgweb: ['10.0.0.8:80'],
      },
      vservers: { vs: ['svc1', 'svc 1'] },
    })
    let token = ''
    for (const { method, target, headers, body } of captured.filter(
      (one) => one.client === client,
    )) {
      const kept = headers.filter(
        ([name]) => !/^(host|content-length|accept-encoding|connection)$/i.test(name),
      )
      const own = kept.map(
        ([name, value]) => [name, value.replace(/(NITRO_AUTH_TOKEN=).*/, `$1${token}`)] as const,
      )
      const path = target.replace('/nitro/v1', '')
      const reply = await send(fake, `${method} ${path}`, body, Object.fromEntries(own))
      if (path === '/config/logout') {
        // The capture is of several runs, and not every run's login is in it.
        const again = await send(
          fake,
          'POST /config/login',
          { login: { username: 'nsroot', password: 'pw' } },
          {},
        )
        token = encodeURIComponent(String(again.json['sessionid']))
      }
      if (path === '/config/login') token = encodeURIComponent(String(reply.json['sessionid']))
      // One client asks for a server whose name no appliance would take.
      const wanted = body.includes('web/1') ? [404] : [200, 201]
      expect(wanted, `${method} ${target}: ${reply.text}`).toContain(reply.status)
    }
  })
})
