/** A reload that gives a server another name: the old process has its work under the name of before. */
import { startDrain } from 'drainable'
import { describe, it } from 'vitest'
import { engines } from '../../support/engines.js'
import {
  busyAtIdle,
  type Config,
  lab,
  member,
  moveServer,
  site,
  untilOldWorker,
  web1,
  work,
} from '../../support/haproxy-lab.js'
import { Tunnel } from '../../support/haproxy-traffic.js'

const RENAMED: Readonly<Record<string, { readonly ref: typeof web1; readonly config: Config }>> = {
  'its server': {
    ref: { pool: 'web', member: 'new' },
    config: (port) => site(port, 'web').replace('server s1', 'server new'),
  },
  'its backend': {
    ref: { pool: 'new', member: 's1' },
    config: (port) => site(port, 'web').replaceAll(/backend web$/gm, 'backend new'),
  },
  'it and another, each to the name of the other': {
    ref: { pool: 'web', member: 's2' },
    config: (port) =>
      site(port, 'web')
        .replace('server s1', 'server s3')
        .replace('server s2', 'server s1')
        .replace('server s3', 'server s2'),
  },
}

describe.each(engines('haproxy'))('HAProxy $version', (engine) => {
  it.concurrent.for(Object.keys(RENAMED))(
    'what an old worker holds by another name is waited for: renamed %s',
    async (what, { expect }) => {
      const { ref, config } = RENAMED[what]!
      await using it = await lab({ engine })
      const { haproxy, s1 } = it
      const working = await work(it)
      await haproxy.reload(config)
      await using lb = it.provider()
      await using drained = startDrain(lb, ref, { timeout: '60s' })
      const busy = busyAtIdle(drained, s1)
      await untilOldWorker(drained)
      await working.end()
      expect(member(await drained.done)).toMatchObject({ outcome: 'idle', sealed: true })
      expect(busy()).toBe(0)
    },
  )

  it.concurrent(
    'a tunnel of before is waited for where another server has got its address since',
    async ({ expect }) => {
      await using it = await lab({ engine })
      const { haproxy, s1 } = it
      await using tunnel = await Tunnel.websocket(haproxy.port('web'), 's1')
      await moveServer(haproxy, 'web', haproxy.port('s2'))
      await moveServer(haproxy, 'web', haproxy.port('s1'), 's2')
      await haproxy.reload()
      await using lb = it.provider()
      await using drained = startDrain(lb, web1, { timeout: '60s' })
      const busy = busyAtIdle(drained, s1)
      await untilOldWorker(drained)
      await tunnel[Symbol.asyncDispose]()
      expect(member(await drained.done)).toMatchObject({ outcome: 'idle', sealed: true })
      expect(busy()).toBe(0)
    },
  )
})
