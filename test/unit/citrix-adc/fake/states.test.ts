import { describe, expect, test } from 'vitest'
import { send } from '../nitro-client.js'
import { eventually } from '../../../support/eventually.js'
import { WEB1, DISABLE, start } from './set-up.js'

describe('disable and enable', () => {
  const member = { servicegroupname: 'web', servername: 'web1', port: 80 }

  test('a graceful disable is TROFS with clients, then OUT OF SERVICE', async () => {
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

  test('without grace it cuts at once, unless downStateFlush is off', async () => {
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

  test('a delay is a hard end that cuts what is left', async () => {
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

  test('without server name and port the whole group is disabled', async () => {
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

  test('disabling a server disables its members, enabling opens them again', async () => {
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

  test('a bulk operation answers for each row', async () => {
    await using fake = await start()
    const reply = await send(fake, DISABLE, { servicegroup: [{ ...member, port: 81 }, member] })
    expect(reply.status).toBe(207)
    expect(reply.json['response']).toHaveLength(1)
    expect(fake.look(WEB1).enabled).toBe(true)
  })
})
