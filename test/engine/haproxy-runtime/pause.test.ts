/** HAProxy stands still (SIGSTOP, a paused VM) while it holds a request that is in no counter. */
import { setTimeout as pass } from 'node:timers/promises'
import { startDrain } from 'drainable'
import { describe, it } from 'vitest'
import { engines } from '../../support/engines.js'
import { freePort, until } from '../../support/haproxy.js'
import { lab, web1, type Config } from '../../support/haproxy-lab.js'
import { Backend, request } from '../../support/haproxy-traffic.js'

/** Pauses during a turn-around of 1 s: when each begins after the connect was refused, and for how long. */
const PAUSES: readonly { readonly is: string; readonly pauses: readonly [number, number][] }[] = [
  { is: 'of 300 ms', pauses: [[300, 300]] },
  { is: 'of 1 s', pauses: [[600, 1_000]] },
  { is: 'of 2 s at its end', pauses: [[900, 2_000]] },
  { is: 'of 4 s', pauses: [[100, 4_000]] },
  {
    is: 'of 200 ms, three times',
    pauses: [
      [100, 200],
      [400, 200],
      [700, 200],
    ],
  },
]

describe.each(engines('haproxy'))('HAProxy $version', (engine) => {
  // Each has a HAProxy of its own, because a pause stops all that is in it.
  it.concurrent.for(PAUSES)(
    'a retry that outlasts pauses $is is not overlooked',
    async ({ pauses }, { expect }) => {
      const retried = await freePort()
      const config: Config = (port) => `
frontend f_web
  bind 127.0.0.1:${port('web')}
  default_backend web
backend web
  cookie SRV insert
  server s1 127.0.0.1:${retried} cookie s1
  server s2 127.0.0.1:${port('s2')} cookie s2
# ${port('s1')}`
      await using it = await lab({ engine, config })
      const { haproxy } = it
      await using lb = it.provider()
      await using drained = startDrain(lb, web1, { timeout: '60s', settle: 0 })
      await drained.inForce
      let idleAt = Infinity
      drained.on('idle', () => (idleAt = performance.now()))
      const answer = request(haproxy.port('web'), '/', { cookie: 's1' })
      await until(async () => (await haproxy.stat('web', 's1', 'wretr')) !== '0', 'refused once')
      await using backend = await Backend.start(retried, 's1')
      const pid = await haproxy.pid()
      const from = performance.now()
      for (const [at, ms] of pauses) {
        await pass(Math.max(0, from + at - performance.now()))
        process.kill(pid, 'SIGSTOP')
        await pass(ms)
        process.kill(pid, 'SIGCONT')
      }
      expect((await answer).server).toBe('s1')
      const arrivedAt = performance.now()
      expect(backend.total).toBe(1)
      expect(idleAt).toBeGreaterThan(arrivedAt)
      const report = await drained.done
      expect(report.members[0]).toMatchObject({ outcome: 'idle', verifiedIdle: true })
    },
  )
})
