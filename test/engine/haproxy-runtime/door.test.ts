/** Clients that come through an old worker, which takes no more changes, to a server that is drained. */
import { startDrain } from 'drainable'
import { describe, it } from 'vitest'
import { engines } from '../../support/engines.js'
import { until } from '../../support/haproxy.js'
import {
  Client,
  Http2Client,
  lab,
  member,
  SEALED_IDLE,
  site,
  type Config,
  web1,
} from '../../support/haproxy-lab.js'
import { Tunnel } from '../../support/haproxy-traffic.js'
import { StubbornHttp2Client } from '../../support/http2-frames.js'

const BOTH: Config = (port) => site(port, 'web') + site(port, 'other', { bind: 'proto h2' })
const STICK: Config = (port) =>
  site(port, 'web', { persistence: 'stick-table type ip size 10\n  stick on src' })

describe.each(engines('haproxy'))('HAProxy $version', (engine) => {
  it.concurrent.for([
    ['cookie', 1, undefined],
    ['cookie', 2, undefined],
    ['stick table', 1, STICK],
    ['stick table', 2, STICK],
  ] as const)(
    'a client with an answer under way at a reload is waited for (%s, %i)',
    async ([by, reloads, config], { expect }) => {
      await using it = await lab({ engine, ...(config && { config }) })
      const { haproxy, s1 } = it
      await using lb = it.provider()
      using client = new Client(haproxy.port('web'), by === 'cookie' ? 's1' : undefined)
      if (by === 'stick table') await client.ask('/') // the table is learnt
      const answer = client.ask('/stream')
      await until(() => s1.active === 1 || it.s2.active === 1, 'in flight')
      const [busy, ref] = s1.active === 1 ? [s1, web1] : [it.s2, { pool: 'web', member: 's2' }]
      await using drained = startDrain(lb, ref, { timeout: '60s' })
      await drained.inForce
      for (let count = 0; count < reloads; count += 1) {
        await haproxy.reload()
        await until(
          async () => (await haproxy.stat('web', ref.member, 'status')) === 'DRAIN',
          'the drain is back in the new process',
        )
      }
      let wasIdle = false
      drained.on('idle', () => (wasIdle = true))
      busy.release()
      expect((await answer).cut).toBe(false)
      const left = await until(
        () => drained.why().find(({ code, text }) => code === 'old-scope' && /1 conn/.test(text)),
        'why() names the connection that is left',
      )
      expect(left.text).toContain('hard-stop-after')
      expect(left.text).toContain('takes no more changes')
      await until(
        async () => (await haproxy.stat('web', ref.member, 'status')) === 'MAINT',
        'the door of the new process is closed',
      )
      expect(wasIdle).toBe(false)
      // It still comes in through the old worker, and is the last one on its connection.
      const last = await client.ask('/')
      expect(last.status).toBe(200)
      if (by === 'cookie') expect(last.server).toBe(ref.member)
      const report = await drained.done
      expect(member(report)).toMatchObject({ outcome: 'idle', sealed: true, verifiedIdle: true })
      const total = busy.total
      expect((await client.ask('/')).server).not.toBe(ref.member)
      expect(busy.total).toBe(total)
    },
  )

  it.concurrent('a door that stays open ends the drain at its deadline', async ({ expect }) => {
    await using it = await lab({ engine })
    const { haproxy, s1 } = it
    await using lb = it.provider()
    using client = new Client(haproxy.port('web'), 's1')
    const answer = client.ask('/stream')
    await until(() => s1.active === 1, 'in flight')
    await using drained = startDrain(lb, web1, { timeout: '10s' })
    await drained.inForce
    await haproxy.reload()
    s1.release()
    expect((await answer).cut).toBe(false)
    const { outcome, verifiedIdle, sealed, why } = member(await drained.done)
    expect({ outcome, verifiedIdle, sealed }).toEqual({
      outcome: 'timeout',
      verifiedIdle: false,
      sealed: false,
    })
    expect(why.map(({ text }) => text).join()).toMatch(/1 connection is left .*hard-stop-after/)
    // It is what was waited for: nothing else keeps that client from the server.
    expect(await client.ask('/')).toMatchObject({ status: 200, server: 's1' })
    await drained.restore()
    expect(await haproxy.mask('web', 's1')).toBe(0)
  })

  it.concurrent.for([1, 2])(
    'with close-spread-time an idle client is waited for (%i reloads)',
    async (reloads, { expect }) => {
      // Long: HAProxy closes an idle connection with a chance that grows over this time.
      await using it = await lab({ engine, global: '  close-spread-time 10d' })
      const { haproxy, s1 } = it
      await using lb = it.provider()
      using busy = new Client(haproxy.port('web'), 's1')
      const client = new Client(haproxy.port('web'), 's1')
      await client.ask('/')
      const answer = busy.ask('/stream') // or the drain could be over before the reload
      await until(() => s1.active === 1, 'in flight')
      await using drained = startDrain(lb, web1, { timeout: '60s' })
      await drained.inForce
      for (let count = 0; count < reloads; count += 1) await haproxy.reload()
      s1.release()
      await answer
      busy[Symbol.dispose]()
      await until(() => drained.why().some(({ code }) => code === 'old-scope'), 'the door is named')
      expect(await client.ask('/')).toMatchObject({ status: 200, server: 's1' })
      expect(drained.report().members[0]?.phase).not.toBe('idle')
      client[Symbol.dispose]()
      expect(member(await drained.done)).toMatchObject({ outcome: 'idle', sealed: true })
      expect(s1.active).toBe(0)
    },
  )

  it.concurrent('a connection idle at the reload does not delay the drain', async ({ expect }) => {
    await using it = await lab({ engine })
    await using lb = it.provider()
    using client = new Client(it.haproxy.port('web'), 's1')
    await client.ask('/')
    await using drained = startDrain(lb, web1, { timeout: '60s' })
    // A first look in the middle of a reload may be refused where the machine is slow.
    await drained.inForce
    await it.haproxy.reload()
    expect(member(await drained.done)).toMatchObject(SEALED_IDLE)
  })

  it.concurrent('a WebSocket of another pool does not delay the drain', async ({ expect }) => {
    const config: Config = (port) => site(port, 'web') + site(port, 'other')
    await using it = await lab({ engine, config })
    const { haproxy, s1 } = it
    await using lb = it.provider()
    using client = new Client(haproxy.port('web'), 's1')
    await using tunnel = await Tunnel.websocket(haproxy.port('other'), 's2')
    const answer = client.ask('/stream')
    await until(() => s1.active === 1, 'in flight')
    await using drained = startDrain(lb, web1, { timeout: '30s' })
    await drained.inForce
    await haproxy.reload()
    s1.release()
    await answer
    await until(() => drained.why().some(({ text }) => /1 connection is left/.test(text)), 'left')
    await client.ask('/')
    const report = await drained.done
    expect(member(report)).toMatchObject({ outcome: 'idle', sealed: true, verifiedIdle: true })
    await tunnel.echo('still there')
  })

  it.concurrent.for([1, 2])(
    'an HTTP/2 client ends with its last request in flight (%i reloads)',
    async (reloads, { expect }) => {
      const config: Config = (port) => site(port, 'web', { bind: 'proto h2' })
      await using it = await lab({ engine, config })
      const { haproxy, s1 } = it
      await using lb = it.provider()
      using client = new Http2Client(haproxy.port('web'))
      const answer = client.ask('/stream', 's1')
      await until(() => s1.active === 1, 'in flight')
      await using drained = startDrain(lb, web1, { timeout: '30s' })
      await drained.inForce
      for (let count = 0; count < reloads; count += 1) await haproxy.reload()
      await until(() => drained.why().some(({ code }) => code === 'old-scope'), 'named')
      s1.release()
      expect(await answer).toBe('first;done')
      const report = await drained.done
      expect(member(report)).toMatchObject({ outcome: 'idle', sealed: true })
      const total = s1.total
      await client.ask('/', 's1')
      expect(s1.total).toBe(total)
    },
  )

  it.concurrent.for([{ oldWorkers: 'accept' }, { oldWorkers: { within: '10ms' } }] as const)(
    'with %j idle is said unsealed and unverified',
    async (options, { expect }) => {
      await using it = await lab({ engine })
      const { haproxy, s1 } = it
      await using lb = it.provider(options)
      using client = new Client(haproxy.port('web'), 's1')
      const answer = client.ask('/stream')
      await until(() => s1.active === 1, 'in flight')
      await using drained = startDrain(lb, web1, { timeout: '30s' })
      await drained.inForce
      await haproxy.reload()
      s1.release()
      await answer
      const report = await drained.done
      expect(member(report)).toMatchObject({
        outcome: 'idle',
        sealed: false,
        verifiedIdle: false,
      })
      expect(
        drained
          .why()
          .map(({ text }) => text)
          .join(),
      ).toContain("oldWorkers: 'wait'")
      expect(await haproxy.stat('web', 's1', 'status')).toBe('MAINT')
      expect((await client.ask('/')).server).toBe('s1')
    },
  )

  it.concurrent('a WebSocket of the pool in an old worker is waited for', async ({ expect }) => {
    await using it = await lab({ engine })
    const { haproxy, s1 } = it
    await using lb = it.provider()
    const tunnel = await Tunnel.websocket(haproxy.port('web'), 's1')
    await using drained = startDrain(lb, web1, { timeout: '60s' })
    let busyAtIdle = -1
    drained.on('idle', () => (busyAtIdle = s1.active))
    await drained.inForce
    await haproxy.reload()
    await until(() => drained.why().some(({ code }) => code === 'old-scope'), 'it is named')
    await tunnel.echo('still there')
    await tunnel[Symbol.asyncDispose]()
    expect(member(await drained.done)).toMatchObject(SEALED_IDLE)
    expect(busyAtIdle).toBe(0)
  })

  // HAProxy sends GOAWAY, and still serves what the client begins.
  it.concurrent('a WebSocket of another pool is waited for over HTTP/2', async ({ expect }) => {
    await using it = await lab({ engine, config: BOTH })
    const { haproxy, s1 } = it
    await using lb = it.provider()
    using busy = new Client(haproxy.port('web'), 's1')
    const answer = busy.ask('/stream') // or the drain could be over before the reload
    await until(() => s1.active === 1, 'in flight')
    const client = new StubbornHttp2Client(haproxy.port('other'))
    const socket = await client.websocket('s2')
    await using drained = startDrain(lb, web1, { timeout: '60s' })
    let wasIdle = false
    drained.on('idle', () => (wasIdle = true))
    await drained.inForce
    await haproxy.reload()
    s1.release()
    await answer
    busy[Symbol.dispose]()
    await until(
      () => drained.why().some(({ text }) => text.includes('1 connection is left in it')),
      'why() names it',
    )
    await client.echo(socket, 'still there')
    expect(client.dismissed).toBe(true)
    const before = it.s2.total
    await client.brings(client.begin('/', 's2'), 'ok')
    expect(it.s2.total).toBe(before + 1)
    expect(wasIdle).toBe(false)
    await client[Symbol.asyncDispose]()
    expect(member(await drained.done)).toMatchObject(SEALED_IDLE)
  })
})
