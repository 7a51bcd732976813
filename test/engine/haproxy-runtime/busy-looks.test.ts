/** Looks over the kept connection, while every member is at work. */
import { startDrain } from 'drainable'
import { systemClock } from 'drainable/provider'
import { describe, it } from 'vitest'
import { KeptConnection } from '../../../src/adapters/haproxy-runtime/session/kept-connection.js'
import { RuntimeSocket } from '../../../src/adapters/haproxy-runtime/session/socket.js'
import { engines } from '../../support/engines.js'
import { until } from '../../support/haproxy.js'
import { lab, member, SEALED_IDLE, web1 } from '../../support/haproxy-lab.js'
import { request } from '../../support/haproxy-traffic.js'

const limits = { connectTimeout: 5_000, replyTimeout: 10_000, maxConnections: 4 }

describe.each(engines('haproxy'))('HAProxy $version', (engine) => {
  it.concurrent('a hundred lines at once are answered in order', async ({ expect }) => {
    await using it = await lab({ engine })
    const socket = new RuntimeSocket(
      { to: { path: it.haproxy.socket }, label: '', local: true },
      limits,
    )
    const ctx = { clock: systemClock, signal: new AbortController().signal }
    const kept = await KeptConnection.open(socket, 10_000, ctx)
    const lines = Array.from({ length: 100 }, (_, index) =>
      index % 3 === 0 ? 'show info float' : index % 3 === 1 ? 'show stat web 6 1' : 'no such thing',
    )
    const firsts = (await kept.runAll(lines, ctx)).map((reply) => reply.split(/[:,]/)[0])
    kept.close()
    expect(firsts.slice(0, 2)).toEqual(['Name', '# pxname'])
    expect(firsts[2]).toMatch(/^Unknown command/)
    expect(firsts).toEqual(lines.map((_, index) => firsts[index % 3]))
  })

  it.concurrent('a reload is found while looks are cheap', async ({ expect }) => {
    await using it = await lab({ engine })
    const { haproxy, s1 } = it
    await using lb = it.provider({ master: haproxy.master })
    const answer = request(haproxy.port('web'), '/hold', { cookie: 's1' })
    await until(() => s1.active === 1, 'in flight')
    const drained = startDrain(lb, web1, { timeout: '30s' })
    await drained.inForce
    await until(() => drained.why().some(({ code }) => code === 'in-flight'), 'it waits')
    await haproxy.reload()
    await until(
      async () => (await haproxy.stat('web', 's1', 'status')) === 'DRAIN',
      'the drain is back in the new process',
    )
    await until(() => drained.why().some(({ code }) => code === 'old-scope'), 'the old one')
    s1.release()
    expect(await answer).toMatchObject({ status: 200, cut: false })
    expect(member(await drained.done)).toMatchObject(SEALED_IDLE)
  })
})
