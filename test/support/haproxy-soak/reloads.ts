/** Many reloads in one drain. */
import { startDrain } from 'drainable'
import { haproxyRuntime } from 'drainable/haproxy-runtime'
import type { Engine } from '../engines.js'
import { until } from '../haproxy.js'
import { lab, web1 } from '../haproxy-lab.js'
import { request } from '../haproxy-traffic.js'

/** What is left of them. */
export interface Reloaded {
  readonly outcome: string
  readonly sealed: boolean
  readonly verifiedIdle: boolean
  /** Why it is not verified, in words. */
  readonly why: readonly string[]
  /** Whether an answer that was under way through all of them came whole. */
  readonly whole: boolean
  /** Processes that the ticket still names. */
  readonly scopes: number
  /** By how much the ticket grew, in characters. */
  readonly growth: number
}

/**
 * Drains a server with one answer in flight, and reloads so often before that ends. With one thread a process: of some 2,700 old workers
 * of 3.2.26 with two, four never ended (one thread waits for the other, which sleeps), with one none of 2,200. Such a worker
 * answers nobody, and the drain says so for as long as it lives.
 */
export async function reloadOften(engine: Engine, many: number): Promise<Reloaded> {
  await using it = await lab({ engine, global: '  nbthread 1\n' })
  const { haproxy, s1 } = it
  await using lb = haproxyRuntime({ socket: haproxy.socket, master: haproxy.master })
  const answer = request(haproxy.port('web'), '/stream', { cookie: 's1' })
  await until(() => s1.active === 1, 'in flight')
  await using drained = startDrain(lb, web1, { timeout: '10m' })
  await drained.inForce
  await haproxy.reload()
  await until(() => drained.why().some(({ code }) => code === 'old-scope'), 'the old one')
  const before = JSON.stringify(await drained.ticket).length
  for (let count = 1; count < many; count += 1) await haproxy.reload()
  s1.release()
  const { cut } = await answer
  const [member] = (await drained.done).members
  if (member === undefined) throw new Error('nothing was drained')
  const ticket = await drained.ticket
  return {
    outcome: member.outcome,
    sealed: member.sealed,
    verifiedIdle: member.verifiedIdle,
    why: member.why.map(({ text }) => text),
    whole: !cut,
    scopes: ticket.members[0]?.processes.length ?? 0,
    growth: JSON.stringify(ticket).length - before,
  }
}
