/** An undo is over when every worker that may get new clients has taken it; an old one gets none. */
import { ready, startDrain } from 'drainable'
import { describe, it } from 'vitest'
import { engines } from '../../support/engines.js'
import { until } from '../../support/haproxy.js'
import {
  lab,
  member,
  ownBackend,
  SEALED_IDLE,
  site,
  web1,
  work,
} from '../../support/haproxy-lab.js'
import { request } from '../../support/haproxy-traffic.js'

describe.each(engines('haproxy'))('an undo on HAProxy $version', (engine) => {
  it.concurrent('does not wait for an old worker that stays drained', async ({ expect }) => {
    await using it = await lab({ engine })
    const request = await work(it)
    await using lb = it.provider()
    await using run = startDrain(lb, web1, { timeout: '60s' })
    await run.inForce
    await it.haproxy.reload()
    await until(
      async () => (await it.haproxy.stat('web', 's1', 'status')) === 'DRAIN',
      'the drain is back in the new worker',
    )
    const from = performance.now()
    expect(member(await run.restore()).outcome).toBe('restored')
    expect(performance.now() - from).toBeLessThan(10_000)
    expect(it.s1.active).toBe(1)
    await lb.close()
    expect(await it.haproxy.mask('web', 's1')).toBe(0)
    await request.end()
  })

  it.concurrent.for(['fall 1', 'fall 3'])(
    'an undo waits for no check that was switched off (%s)',
    async (fall, { expect }) => {
      await using it = await lab({
        engine,
        config: (port) => site(port, 'web', { s1: `check inter 100 ${fall}` }),
      })
      await using lb = it.provider()
      await using drained = startDrain(lb, web1, { timeout: '30s' })
      expect(member(await drained.done)).toMatchObject(SEALED_IDLE)
      await it.haproxy.cli('disable health web/s1')
      expect((await drained.restore()).outcome).toBe('restored')
      expect(await it.haproxy.mask('web', 's1')).toBe(0)
      const answer = await request(it.haproxy.port('web'), '/', { cookie: 's1' })
      expect(answer).toMatchObject({ status: 200, server: 's1' })
    },
  )

  // Persistence is forced, so that a client comes before the server is marked down for its check.
  it.concurrent('where maint cuts, the wait for a check cuts no client', async ({ expect }) => {
    await using it = await lab({
      engine,
      config: (port) =>
        site(port, 'web', {
          backend: '  force-persist if TRUE',
          s1: 'check inter 100 fall 1 on-marked-down shutdown-sessions',
        }),
    })
    await using lb = it.provider({ maintCuts: true })
    await it.haproxy.cli('set server web/s1 state maint')
    const request = await work(it)
    const opened = await ready(lb, web1, { waitHealthy: '10s' })
    expect(opened.members[0]).toMatchObject({ wasAdmin: 'maint', health: 'up' })
    expect(it.s1.active).toBe(1)
    expect(await request.end()).toMatchObject({ cut: false, body: 'first;done' })
  })

  // HAProxy keeps the state of a server whose address is changed.
  it.concurrent('of a server that moved says what is left to do', async ({ expect }) => {
    await using it = await lab({ engine })
    await using lb = it.provider()
    const run = startDrain(lb, web1, { timeout: '30s' })
    await run.inForce
    await using other = await ownBackend(it.haproxy, 'web')
    const seen = member(await run.restore())
    expect(seen.outcome).toBe('gone')
    expect(seen.error?.message).toContain('left alone, in drain: open it with ready()')
    await ready(lb, web1)
    await request(it.haproxy.port('web'), '/', { cookie: 's1' })
    expect(other.total).toBe(1)
  })

  it.concurrent.for([0, 40, 120])(
    'during a reload leaves the server open, closed right after (%i ms)',
    async (later, { expect }) => {
      await using it = await lab({ engine })
      await using lb = it.provider()
      await using run = startDrain(lb, web1, { timeout: '60s' })
      await run.done
      const reloaded = it.haproxy.reload()
      const begun = performance.now()
      await until(() => performance.now() - begun >= later, 'the reload is under way')
      expect(member(await run.restore()).outcome).toBe('restored')
      await lb.close()
      await reloaded
      expect(await it.haproxy.mask('web', 's1')).toBe(0)
    },
  )
})
