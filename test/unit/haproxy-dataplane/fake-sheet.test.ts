import { startFake, type DataplaneFake } from 'drainable/testing/haproxy-dataplane'
import { request } from 'undici'
import { describe, expect, test } from 'vitest'

const BASE = '/v3/services/haproxy'
const headers = {
  authorization: `Basic ${Buffer.from('admin:secret').toString('base64')}`,
  'content-type': 'application/json',
}

async function ask(
  fake: DataplaneFake,
  method: 'GET' | 'PUT' | 'DELETE',
  path: string,
  body?: object,
) {
  const sent = body === undefined ? {} : { body: JSON.stringify(body) }
  const reply = await request(`${fake.url}${BASE}${path}`, { method, headers, ...sent })
  const text = await reply.body.text()
  return { status: reply.statusCode, reloadId: reply.headers['reload-id'], text }
}

/** Found with the real binaries. */
describe.concurrent('the fake behaves like the product', () => {
  test('with a reload for a line that is written without its weight', async () => {
    await using fake = await startFake({ pools: { web: [{ name: 'web1', weight: 5 }] } })
    const path = '/configuration/backends/web/servers/web1'
    const line = JSON.parse((await ask(fake, 'GET', path)).text) as object
    const same = await ask(fake, 'PUT', `${path}?version=1`, { ...line, weight: 0 })
    expect([same.status, same.reloadId]).toEqual([200, undefined])
    const without = await ask(fake, 'PUT', `${path}?version=2`, { ...line, weight: undefined })
    expect([without.status, typeof without.reloadId]).toEqual([202, 'string'])
  })

  test('with no removal of a tracked server at run time', async () => {
    const pools = {
      web: [
        { name: 'web1', check: true },
        { name: 'web2', track: 'web/web1' },
      ],
    }
    await using fake = await startFake({ pools })
    const reply = await ask(fake, 'DELETE', '/runtime/backends/web/servers/web1')
    expect(reply.status).toBe(500)
    expect(reply.text).toContain('due to other configuration elements')
  })

  test('with a listen section in the text, the statistics and at run time', async () => {
    const config = 'listen web\n  bind :80\n  server web1 127.0.0.1:8001\n'
    await using fake = await startFake({ config })
    expect((await ask(fake, 'GET', '/configuration/backends/web/servers')).text.trim()).toBe('[]')
    expect((await ask(fake, 'GET', '/configuration/raw')).text).toContain('listen web')
    expect((await ask(fake, 'GET', '/runtime/backends/web/servers')).text).toContain('web1')
    const stats = await ask(fake, 'GET', '/stats/native?type=server&parent=web')
    expect(stats.text).toContain('web1')
  })

  test('with maint and down for a name that does not resolve', async () => {
    await using fake = await startFake()
    fake.setMask({ pool: 'web', member: 'web1' }, 0x20)
    const { text } = await ask(fake, 'GET', '/runtime/backends/web/servers/web1')
    expect(JSON.parse(text)).toMatchObject({ admin_state: 'maint', operational_state: 'down' })
  })

  test('with states that trackers hand on to their own trackers', async () => {
    const pools = {
      web: [{ name: 'web1', check: true }],
      api: [{ name: 'api1', track: 'web/web1' }],
      far: [{ name: 'far1', track: 'api/api1' }],
    }
    await using fake = await startFake({ pools })
    await fake.setBehind({ pool: 'web', member: 'web1' }, 'drain')
    expect(await fake.run('show servers state far')).toContain(' far1 127.0.0.1 2 16 ')
    await fake.setBehind({ pool: 'web', member: 'web1' }, 'maint')
    expect(await fake.run('show servers state far')).toContain(' far1 127.0.0.1 0 2 ')
  })
})
