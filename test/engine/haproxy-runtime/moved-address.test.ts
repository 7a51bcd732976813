/** A server's address moves to another server of its backend, and its work stays where it was. */
import { startDrain } from 'drainable'
import { describe, it } from 'vitest'
import { engines } from '../../support/engines.js'
import { Haproxy, until } from '../../support/haproxy.js'
import {
  busyAtIdle,
  Client,
  lab,
  member,
  moveServer,
  site,
  SEALED_IDLE,
  type Config,
} from '../../support/haproxy-lab.js'
import { Backend, request, Tunnel } from '../../support/haproxy-traffic.js'
import { haproxyRuntime } from 'drainable/haproxy-runtime'
import { NameServer } from '../../support/name-server.js'

const [A, B, C] = ['127.0.0.2', '127.0.0.3', '127.0.0.4'] as const

const TEMPLATE: Config = (port) => `
resolvers here
  nameserver one 127.0.0.1:${port('dns')}
  timeout resolve 100ms
  timeout retry 100ms
  hold valid 100ms
  hold obsolete 0s
frontend f_web
  bind 127.0.0.1:${port('web')}
  default_backend web
backend web
  server-template w 2 web.test:${port('server')} resolvers here init-addr none`

describe.each(engines('haproxy'))('an address that moves, HAProxy $version', (engine) => {
  // It goes on using connections to the address of before.
  const verified = { ...SEALED_IDLE, verifiedIdle: engine.series !== '2.6' }

  it.concurrent.for([0, 1])(
    'by DNS: what its slot of before holds is waited for (%i reloads)',
    async (reloads, { expect }) => {
      await using haproxy = await Haproxy.start({ engine, config: TEMPLATE })
      await using names = await NameServer.start(haproxy.port('dns'), [A])
      await using a = await Backend.start(haproxy.port('server'), 'a', A)
      const before = await slotOf(haproxy, A)
      await using tunnel = await Tunnel.websocket(haproxy.port('web'))
      expect(a.active).toBe(1)
      // It leaves, its slot gets another address, and it comes again.
      names.addresses = [B, C]
      for (const address of [B, C]) await slotOf(haproxy, address)
      names.addresses = [before === (await slotOf(haproxy, B)) ? B : C, A]
      expect(await slotOf(haproxy, A)).not.toBe(before)
      for (let count = 0; count < reloads; count += 1) await haproxy.reload()
      const ref = { pool: 'web', member: await slotOf(haproxy, A) }

      await using lb = haproxyRuntime({ socket: haproxy.socket, master: haproxy.master })
      await using drained = startDrain(lb, ref, { timeout: '60s', keepReady: 0 })
      const busy = busyAtIdle(drained, a)
      const counted = (): boolean =>
        drained.why().some(({ text }) => /1 (still )?in flight/.test(text))
      await until(counted, 'it is counted')
      await tunnel[Symbol.asyncDispose]()
      const seen = member(await drained.done)
      // An old worker ends with its last connection, which can be before the next look.
      if (reloads === 0) expect(seen).toMatchObject(verified)
      else expect(seen).toMatchObject({ outcome: 'idle', sealed: true })
      expect(busy()).toBe(0)
    },
  )

  it.concurrent('by a client: it is waited for, or cut', async ({ expect }) => {
    await using it = await lab({
      engine,
      config: (port) => `${site(port, 'web')}${site(port, 'cut')}`,
    })
    const { haproxy, s1 } = it
    await using lb = it.provider()
    for (const pool of ['web', 'cut']) {
      const ref = { pool, member: 's2' }
      // The addresses of before are known by this.
      const first = startDrain(lb, ref, { timeout: '20s' })
      await first.done
      await first.restore()
      const answer = request(haproxy.port(pool), '/stream', { cookie: 's1' })
      await until(() => s1.active === 1, 'in flight')
      await moveServer(haproxy, pool, haproxy.port('s2'))
      await moveServer(haproxy, pool, haproxy.port('s1'), 's2')
      const ends = pool === 'web' ? {} : ({ timeout: '3s', onTimeout: 'terminate' } as const)
      await using drained = startDrain(lb, ref, { timeout: '60s', ...ends })
      const busy = busyAtIdle(drained, s1)
      await until(() => drained.why().some(({ count }) => count === 1), 'it is counted')
      if (pool === 'web') s1.release()
      const seen = member(await drained.done)
      expect((await answer).cut).toBe(pool === 'cut')
      if (pool === 'web') expect(seen).toMatchObject(verified)
      else expect(seen).toMatchObject({ outcome: 'terminated', terminated: 1 })
      if (pool === 'web') expect(busy()).toBe(0)
      await until(() => s1.active === 0, 'nothing is left')
    }
  })

  it.concurrent('its old connections get requests on 2.6 alone', async ({ expect }) => {
    await using haproxy = await Haproxy.start({ engine, config: TEMPLATE })
    await using names = await NameServer.start(haproxy.port('dns'), [A])
    await using a = await Backend.start(haproxy.port('server'), 'a', A)
    await using b = await Backend.start(haproxy.port('server'), 'b', B)
    await slotOf(haproxy, A)
    using client = new Client(haproxy.port('web'))
    for (let count = 0; count < 3; count += 1) await client.ask('/')
    names.addresses = [B]
    await slotOf(haproxy, B)
    const asked = a.total
    for (let count = 0; count < 3; count += 1) await client.ask('/')
    expect(a.total > asked).toBe(engine.series === '2.6')
    expect(a.total + b.total).toBe(asked + 3)
  })
})

/** Waits until a slot has that address; its name. */
function slotOf(haproxy: Haproxy, address: string): Promise<string> {
  return until(async () => {
    const lines = (await haproxy.cli('show servers state web')).split('\n')
    return lines.map((line) => line.split(' ')).find((cells) => cells[4] === address)?.[3]
  }, `a slot has ${address}`)
}
