/** Two HAProxy before the same servers, of which one takes the address at a time (keepalived). */
import { combineProviders, drain, startDrain } from 'drainable'
import { describe, it } from 'vitest'
import { engines } from '../../support/engines.js'
import { until } from '../../support/haproxy.js'
import { lab, member, moveServer, web1 } from '../../support/haproxy-lab.js'
import { request } from '../../support/haproxy-traffic.js'

const DONE = { outcome: 'idle', sealed: true, verifiedIdle: true }

describe.each(engines('haproxy'))('a pair of HAProxy $version', (engine) => {
  it.concurrent('nested drains hold a server on both, through a failover', async ({ expect }) => {
    await using one = await lab({ engine })
    await using two = await lab({ engine })
    for (const name of ['s1', 's2'] as const)
      await moveServer(two.haproxy, 'web', one.haproxy.port(name), name)
    const { s1 } = one
    await using first = one.provider()
    await using second = two.provider()
    // What is in flight came through the one that had the address before.
    const late = request(two.haproxy.port('web'), '/stream', { cookie: 's1' })
    await until(() => s1.active === 1, 'in flight')
    await using outer = startDrain(first, web1, { timeout: '60s' })
    expect(member(await outer.done)).toMatchObject(DONE)
    expect(s1.active).toBe(1)
    await using inner = startDrain(second, web1, { timeout: '60s' })
    await until(() => inner.why().some(({ count }) => count === 1), 'it counts what it holds')
    s1.release()
    expect(member(await inner.done)).toMatchObject(DONE)
    expect(s1.active).toBe(0)
    const { total } = s1
    for (const { haproxy } of [one, two, one]) {
      const answer = await request(haproxy.port('web'), '/', { cookie: 's1' })
      expect(answer).toMatchObject({ status: 200, server: 's2' })
    }
    expect(s1.total).toBe(total)
    // Each gives back its own, and the other stays as it is.
    await inner.restore()
    expect(await two.haproxy.mask('web', 's1')).toBe(0)
    expect(await one.haproxy.mask('web', 's1')).toBe(1)
    await outer.restore()
    expect(await one.haproxy.mask('web', 's1')).toBe(0)
    expect((await late).cut).toBe(false)
  })

  it.concurrent('one that hangs from the start: the end says what is held', async ({ expect }) => {
    await using one = await lab({ engine })
    await using two = await lab({ engine, mode: 'plain' })
    await using all = combineProviders({ one: one.provider(), two: two.provider() })
    const pid = await two.haproxy.pid()
    process.kill(pid, 'SIGSTOP')
    try {
      const targets = ['one', 'two'].map((balancer) => ({ ...web1, balancer }))
      const policy = { timeout: '6s', onUnreachable: 'wait' } as const
      const error = await drain(all, targets, policy).catch((cause: unknown) => cause)
      expect(String(error)).toContain('; held: one:web/s1 in maint; nothing is held on two')
      expect(await one.haproxy.mask('web', 's1')).toBe(1)
      const report = await drain(all, targets, { ...policy, onTimeout: 'proceed' })
      expect(report.members.map(({ ref, outcome }) => [ref.balancer, outcome])).toEqual([
        ['one', 'idle'],
        ['two', 'proceeded'],
      ])
    } finally {
      process.kill(pid, 'SIGCONT')
    }
  })
})
