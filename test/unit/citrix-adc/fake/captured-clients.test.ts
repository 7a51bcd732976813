import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { send } from '../nitro-client.js'
import { start } from './set-up.js'

const CAPTURED = new URL('../../../fixtures/citrix-adc/client-requests.jsonl', import.meta.url)

describe('requests captured from other clients', () => {
  interface Captured {
    readonly method: string
    readonly target: string
    readonly headers: readonly (readonly [string, string])[]
    readonly body: string
    readonly client: string
  }

  const lines = readFileSync(CAPTURED, 'utf8').trim().split('\n')
  const captured = lines.map((line) => JSON.parse(line) as Captured)
  const clients = [...new Set(captured.map(({ client }) => client))]

  test.each(clients)('of %s are understood', async (client) => {
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
