/** Looks that leave out the master, while every member is at work. */
import { startDrain } from 'drainable'
import { describe, it } from 'vitest'
import { engines } from '../../support/engines.js'
import { until } from '../../support/haproxy.js'
import { lab, member, SEALED_IDLE, web1 } from '../../support/haproxy-lab.js'
import { request } from '../../support/haproxy-traffic.js'

describe.each(engines('haproxy'))('HAProxy $version', (engine) => {
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
