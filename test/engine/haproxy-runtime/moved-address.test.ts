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
import { Backend, request } from '../../support/haproxy-traffic.js'
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

  it.concurrent('by DNS: what its slot of before holds is waited for', async ({ expect }) => {
    await using haproxy = await Haproxy.start({ engine, config: TEMPLATE })
    await using names = await NameServer.start(haproxy.port('dns'), [A])
    await using a = await Backend.start(haproxy.port('server'), 'a', A)
    const slots = async (): Promise<Record<string, string>> =>
      Object.fromEntries(
        (await haproxy.cli('show servers state web'))
          .split('\n')
          .map((line) => line.split(' '))
          .filter(({ length }) => length > 10)
          .map((cells) => [cells[4], cells[3]]),
      ) as Record<string, string>
    const slotOf = (address: string): Promise<string> =>
      until(async () => (await slots())[address], `a slot has ${address}`)
    const before = await slotOf(A)
    const answer = request(haproxy.port('web'), '/hold')
    await until(() => a.active === 1, 'in flight')
    // It leaves, its slot gets another address, and it comes again.
    names.addresses = [B, C]
    for (const address of [B, C]) await slotOf(address)
    names.addresses = [before === (await slotOf(B)) ? B : C, A]
    const now = await slotOf(A)
    expect(now).not.toBe(before)
    const ref = { pool: 'web', member: now }

    await using lb = haproxyRuntime({ socket: haproxy.socket, master: haproxy.master })
    await using drained = startDrain(lb, ref, { timeout: '60s', keepReady: 0 })
    const busy = busyAtIdle(drained, a)
    await until(() => drained.why().some(({ count }) => count === 1), 'it is counted')
    a.release()
    expect((await answer).status).toBe(200)
    expect(member(await drained.done)).toMatchObject(verified)
    expect(busy()).toBe(0)
  })

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
    const has = (address: string): Promise<boolean> =>
      until(
        async () => (await haproxy.cli('show servers state web')).includes(` ${address} `),
        `a slot has ${address}`,
      )
    await has(A)
    using client = new Client(haproxy.port('web'))
    for (let count = 0; count < 3; count += 1) await client.ask('/')
    names.addresses = [B]
    await has(B)
    const asked = a.total
    for (let count = 0; count < 3; count += 1) await client.ask('/')
    expect(a.total > asked).toBe(engine.series === '2.6')
    expect(a.total + b.total).toBe(asked + 3)
  })
})
