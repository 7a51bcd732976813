/** A server whose name does not resolve any more is the server that was there before. */
import { restore, startDrain } from 'drainable'
import { describe, expect, test } from 'vitest'
import { connect, until } from '../../support/dataplane.js'
import { type CONFIG, front, pairs, WEB } from '../../support/dataplane-front.js'
import { Tunnel } from '../../support/haproxy-traffic.js'
import { Named, NAMED, NAMED_SERVER, UNRESOLVED } from '../../support/named-server.js'

const OPTIONS = { maintCuts: false, durable: false } as const
/** The servers that the front starts are in another backend. */
const BOTH: typeof CONFIG = (port) => `${NAMED(port, '')}
backend others
${WEB.map((name) => `  server ${name} 127.0.0.1:${port(name)}`).join('\n')}
`
const POLICY = { timeout: '60s', keepReady: 0, seal: false } as const

describe.concurrent.each(pairs('2.6', '3.0', '3.2'))(
  'a lost address, Data Plane API $api before HAProxy $engine.version',
  { timeout: 60_000 },
  ({ engine, api }) => {
    test('during a drain is waited for, and undone by a new process', async () => {
      await using rig = await front(engine, api, OPTIONS, BOTH)
      await using named = await Named.start(rig.haproxy)
      const tunnel = await Tunnel.websocket(rig.haproxy.port('web'))
      const run = startDrain(rig.lb, NAMED_SERVER, POLICY)
      await until('the drain', async () => (await named.mask()) === 0x08)
      await named.lose()
      const looks = rig.fake.requests.length
      await until('some looks', () => Promise.resolve(rig.fake.requests.length > looks + 20))
      expect(run.report().members).toMatchObject([{ phase: 'draining' }])
      await tunnel[Symbol.asyncDispose]()
      expect((await run.done).members).toMatchObject([{ outcome: 'idle' }])
      const ticket = await run.ticket
      await run.release()
      await using lb = connect(rig.fake, OPTIONS)
      expect((await restore(lb, ticket)).members).toMatchObject([{ outcome: 'restored' }])
      expect(await named.mask()).toBe(UNRESOLVED)
      await named.find()
      expect(await named.mask()).toBe(0)
    })
  },
)
