/** What a look sees in an old worker, whichever other servers, looks and paces there are beside it. */
import { startDrain } from 'drainable'
import { describe, it } from 'vitest'
import { engines } from '../../support/engines.js'
import { freePort, until } from '../../support/haproxy.js'
import {
  busyAtIdle,
  Client,
  type Config,
  lab,
  look,
  member,
  moveServer,
  SEALED_IDLE,
  site,
  untilOldWorker,
  web1,
  work,
} from '../../support/haproxy-lab.js'
import { Tunnel } from '../../support/haproxy-traffic.js'

const web2 = { pool: 'web', member: 's2' }
/** Its server s1 has another name. */
const RENAMED: Config = (port) => site(port, 'web').replace('server s1', 'server new')

describe.each(engines('haproxy'))('HAProxy $version', (engine) => {
  it.concurrent('a look at everything sees its renamed servers too', async ({ expect }) => {
    await using it = await lab({ engine })
    await using other = await Tunnel.websocket(it.haproxy.port('web'), 's2')
    const working = await work(it)
    await it.haproxy.reload(RENAMED)
    await using lb = it.provider()
    const ref = { pool: 'web', member: 'new' }
    let all = 0
    const observe = lb.observe.bind(lb)
    lb.observe = (refs, ctx) => {
      if (refs === 'all') all += 1
      return observe(refs, ctx)
    }
    // Searches for drains of other clients: looks at everything.
    lb.on('load', () => undefined)
    await using drained = startDrain(lb, ref, { timeout: '90s' })
    const busy = busyAtIdle(drained, it.s1)
    await untilOldWorker(drained)
    const before = all
    // The pause before it is a hundred times as long as the last one took.
    await until(() => all > before, 'one more look at everything', 60_000)
    await working.end()
    expect(member(await drained.done)).toMatchObject(SEALED_IDLE)
    expect(busy()).toBe(0)
    expect(other.closed).toBe(false)
  })

  it.concurrent(
    'a tunnel in the row of another server is found although its backend was renamed',
    async ({ expect }) => {
      await using it = await lab({ engine })
      const { haproxy, s1 } = it
      await using tunnel = await Tunnel.websocket(haproxy.port('web'), 's1')
      await moveServer(haproxy, 'web', haproxy.port('s2'))
      await moveServer(haproxy, 'web', haproxy.port('s1'), 's2')
      await haproxy.reload((port) => site(port, 'web').replaceAll(/backend web$/gm, 'backend new'))
      await using lb = it.provider()
      await using drained = startDrain(lb, { pool: 'new', member: 's1' }, { timeout: '60s' })
      const busy = busyAtIdle(drained, s1)
      await untilOldWorker(drained)
      await tunnel[Symbol.asyncDispose]()
      expect(member(await drained.done)).toMatchObject({ outcome: 'idle', sealed: true })
      expect(busy()).toBe(0)
    },
  )

  it.concurrent(
    'an address that moves after the names of before were learnt is looked for anew',
    async ({ expect }) => {
      await using it = await lab({ engine })
      const { haproxy, s1 } = it
      await using tunnel = await Tunnel.websocket(haproxy.port('web'), 's1')
      await haproxy.reload()
      await using lb = it.provider()
      // Another address, which the old worker does not know: the names are learnt.
      await moveServer(haproxy, 'web', await freePort(), 's2')
      await look(lb, 'web', 's2')
      await moveServer(haproxy, 'web', haproxy.port('s2'))
      await moveServer(haproxy, 'web', haproxy.port('s1'), 's2')
      await using drained = startDrain(lb, web2, { timeout: '60s' })
      const busy = busyAtIdle(drained, s1)
      await untilOldWorker(drained)
      await tunnel[Symbol.asyncDispose]()
      const done = member(await drained.done)
      expect(done).toMatchObject({ outcome: 'idle', sealed: true })
      expect(busy()).toBe(0)
    },
  )

  it.concurrent('a WebSocket of another drained server is not waited for', async ({ expect }) => {
    await using it = await lab({ engine })
    await using other = await Tunnel.websocket(it.haproxy.port('web'), 's2')
    const working = await work(it)
    await using lb = it.provider()
    await using drained = startDrain(lb, [web1, web2], { timeout: '60s', keepReady: 0 })
    await drained.inForce
    await it.haproxy.reload()
    await working.end()
    await until(() => drained.report().members[0]?.phase === 'idle', 'the first one is idle')
    expect(other.closed).toBe(false)
  })

  it.concurrent('a clean end is seen at a slow pace too', async ({ expect }) => {
    await using it = await lab({ engine })
    const working = await work(it)
    await using lb = it.provider()
    await using drained = startDrain(lb, web1, { timeout: '60s', pace: '3s' })
    await drained.inForce
    await it.haproxy.reload()
    await untilOldWorker(drained)
    await working.end()
    expect(member(await drained.done)).toMatchObject(SEALED_IDLE)
  })

  it.concurrent('what is left is cut under its name of before', async ({ expect }) => {
    await using it = await lab({ engine })
    using client = new Client(it.haproxy.port('web'), 's1')
    const answer = client.ask('/stream')
    await until(() => it.s1.active === 1, 'in flight')
    await it.haproxy.reload(RENAMED)
    await using lb = it.provider()
    const ref = { pool: 'web', member: 'new' }
    const policy = { timeout: '4s', onTimeout: 'terminate', keepReady: 0 } as const
    await using drained = startDrain(lb, ref, policy)
    await drained.done
    expect((await answer).cut).toBe(true)
  })
})
