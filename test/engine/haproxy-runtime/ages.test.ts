/** How old the work is that a drain waits for: HAProxy tells it, a person reads it. */
import { drain, select, startDrain } from 'drainable'
import { systemClock, type Clock } from 'drainable/provider'
import { describe, it } from 'vitest'
import { engines } from '../../support/engines.js'
import { until } from '../../support/haproxy.js'
import { lab, web1 } from '../../support/haproxy-lab.js'
import { request, Tunnel } from '../../support/haproxy-traffic.js'

/** A drain takes a second for ten; limits of calls stay what they are. The master is found before, in real time. */
const quick: Clock = { ...systemClock, now: () => performance.now() * 10 }

describe.each(engines('haproxy'))('HAProxy $version', (engine) => {
  it.concurrent('a drain that times out says how old its work is', async ({ expect }) => {
    await using at = await lab({ engine })
    await using lb = at.provider()
    const port = at.haproxy.port('web')
    await using tunnel = await Tunnel.websocket(port, 's1')
    const answer = request(port, '/hold', { cookie: 's1' })
    await until(() => at.s1.active === 2, 'in flight')
    await select(lb, web1)
    const error: unknown = await drain(lb, web1, { timeout: '2m', clock: quick }).catch(
      (thrown: unknown) => thrown,
    )
    expect(error).toMatchObject({ code: 'DRAIN_TIMEOUT' })
    expect(String(error)).toMatch(/: 2 in flight, the oldest for \d/)
    expect(tunnel.closed).toBe(false)
    at.s1.release()
    await answer
  })

  it.concurrent('the work of a replaced process has an age too', async ({ expect }) => {
    await using at = await lab({ engine })
    await using lb = at.provider()
    const port = at.haproxy.port('web')
    await using tunnel = await Tunnel.websocket(port, 's1')
    await until(() => at.s1.active === 1, 'in flight')
    await at.haproxy.reload()
    await select(lb, web1)
    const run = startDrain(lb, web1, { timeout: '10m', clock: quick })
    await expect
      .poll(() => run.why().map(({ text }) => text))
      .toContainEqual(
        expect.stringMatching(/^1 still in flight on .* replaced .*, for \d/) as unknown,
      )
    expect(tunnel.closed).toBe(false)
    await run.release()
  })
})
