import { describe, expect, test } from 'vitest'
import { rows, send } from '../nitro-client.js'
import { WEB1, MEMBERS, DISABLE, start } from './set-up.js'

describe('requests of configuration tools', () => {
  test('objects are created, read and deleted', async () => {
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

  test('rows are filtered, paged and reduced to the fields asked for', async () => {
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
  test('a reset that executes carries out the change and gives no answer', async () => {
    await using fake = await start()
    fake.fail({ match: /action=disable/, how: 'reset', execute: true, times: 1 })
    const payload = { servicegroup: { servicegroupname: 'web', servername: 'web1', port: 80 } }
    await expect(send(fake, DISABLE, payload)).rejects.toThrow()
    expect(fake.look(WEB1).enabled).toBe(false)
  })

  test('refuse accepts no connection until it is ended', async () => {
    await using fake = await start()
    const end = fake.fail({ how: 'refuse' })
    await expect(send(fake, MEMBERS)).rejects.toThrow(/ECONNREFUSED|ECONNRESET/)
    await end()
    expect((await send(fake, MEMBERS)).status).toBe(200)
  })
})

test.each([
  ['14.1-17.38', ['state', 'graceful'], 'NONE'],
  ['12.1', [], 'NONE'],
  ['10.5', [], undefined],
])('the fake speaks as %s', async (version, fields, severity) => {
  await using fake = await start({ version })
  const reply = await send(fake, MEMBERS)
  const [row] = rows(reply, 'servicegroup_servicegroupmember_binding')
  expect(Object.keys(row!).filter((key) => ['state', 'graceful'].includes(key))).toEqual(fields)
  expect(reply.json['severity']).toBe(severity)
})
