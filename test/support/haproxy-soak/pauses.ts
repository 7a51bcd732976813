/** A request that HAProxy holds in no counter, between a refused connect and its retry, while HAProxy stands still. */
import { setTimeout as pass } from 'node:timers/promises'
import { startDrain } from 'drainable'
import type { Engine } from '../engines.js'
import { freePort, until } from '../haproxy.js'
import { type Config, lab, web1 } from '../haproxy-lab.js'
import { Backend, request } from '../haproxy-traffic.js'

export interface Pauses {
  /** When each begins after the connect was refused, and for how long, ms. */
  readonly pauses: readonly (readonly [number, number])[]
  /** The master and all workers, where it is not the worker that serves. */
  readonly whole?: boolean
  /** Another client has set it before the drain. */
  readonly found?: 'maint'
}

export interface Paused {
  /** The server that answered. */
  readonly server: string
  /** How many requests came to the drained server. */
  readonly arrived: number
  /** Whether idle was said before the request came to the server. */
  readonly early: boolean
  readonly outcome: string | undefined
  readonly verifiedIdle: boolean | undefined
}

/** Drains a server that refuses a connect, pauses HAProxy, and lets the retry reach the server. */
export async function retryUnderPauses(
  engine: Engine,
  { pauses, whole, found }: Pauses,
): Promise<Paused> {
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
  let idleAt = Infinity
  const begin = (): ReturnType<typeof startDrain> => {
    const drained = startDrain(lb, web1, { timeout: '60s', settle: 0 })
    drained.on('idle', () => (idleAt = performance.now()))
    return drained
  }
  const before = found === undefined ? begin() : undefined
  await before?.inForce
  const answer = request(haproxy.port('web'), '/', { cookie: 's1' })
  await until(async () => (await haproxy.stat('web', 's1', 'wretr')) !== '0', 'refused once')
  if (found !== undefined) await haproxy.cli(`set server web/s1 state ${found}`)
  await using drained = before ?? begin()
  await using backend = await Backend.start(retried, 's1')
  const pids = whole === true ? await haproxy.processes() : [await haproxy.pid()]
  const from = performance.now()
  for (const [at, ms] of pauses) {
    await pass(Math.max(0, from + at - performance.now()))
    for (const pid of pids) process.kill(pid, 'SIGSTOP')
    await pass(ms)
    for (const pid of pids) process.kill(pid, 'SIGCONT')
  }
  const { server } = await answer
  const [member] = (await drained.done).members
  return {
    server,
    arrived: backend.total,
    // Not the answer at the client: behind a stall of this process it is handled in one turn with the look after it.
    early: idleAt < backend.lastArrivalAt,
    outcome: member?.outcome,
    verifiedIdle: member?.verifiedIdle,
  }
}
