import { describe, expect, test } from 'vitest'
import { rows, send } from '../nitro-client.js'
import { WEB1, DISABLE, start } from './set-up.js'

describe('a pair, partitions, saving', () => {
  test('the secondary takes a disable without a word and does not pass it on', async () => {
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

  test('a session sees its partition only', async () => {
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
