/** Processes that a provider has never met: a reload, or a restart, came between two of its calls. */
import { setTimeout as pass } from 'node:timers/promises'
import { resumeDrain, startDrain, stepDrain, type Ticket } from 'drainable'
import { callContext } from 'drainable/provider'
import { describe, it } from 'vitest'
import { engines } from '../../support/engines.js'
import { until } from '../../support/haproxy.js'
import { busyAtIdle, lab, member, SEALED_IDLE, web1, work } from '../../support/haproxy-lab.js'

describe.each(engines('haproxy'))('HAProxy $version', (engine) => {
  it.concurrent('a process that was only described is unread', async ({ expect }) => {
    await using it = await lab({ engine, mode: 'plain' })
    const working = await work(it)
    await using lb = it.provider()
    await lb.describe(callContext())
    await it.haproxy.reload()
    await using drained = startDrain(lb, web1, { timeout: '4s' })
    const busy = busyAtIdle(drained, it.s1)
    await until(() => drained.why().some(({ code }) => code === 'unreadable'), 'it is named')
    expect(member(await drained.done)).toMatchObject({ outcome: 'timeout', verifiedIdle: false })
    expect(busy()).toBe(-1)
    await working.end()
  })

  it.concurrent('a drain by steps goes on once within is over', async ({ expect }) => {
    await using it = await lab({ engine, mode: 'plain', global: '  hard-stop-after 2s' })
    await work(it)
    let ticket: Ticket | undefined
    const step = async (): Promise<string | undefined> => {
      await using lb = it.provider({ oldWorkers: { within: '2s' } })
      const made = await stepDrain(lb, ticket ?? { target: web1, policy: { timeout: '60s' } })
      ticket = made.ticket
      if (made.outcome !== undefined) return made.outcome
      await pass(Math.min(200, made.againIn))
      return undefined
    }
    await until(async () => {
      await step()
      return (await it.haproxy.stat('web', 's1', 'status')) === 'DRAIN'
    }, 'drained')
    await it.haproxy.reload()
    expect(await until(step, 'its end', 30_000)).toBe('idle')
    expect(it.s1.active).toBe(0)
  })

  it.concurrent('a ticket names a process that is unread until within', async ({ expect }) => {
    await using it = await lab({ engine, mode: 'plain', global: '  hard-stop-after 2s' })
    await work(it)
    let ticket: Ticket
    {
      await using lb = it.provider()
      await using drained = startDrain(lb, web1, { timeout: '60s' })
      await drained.inForce
      await until(() => drained.why().some(({ code }) => code === 'in-flight'), 'it is read')
      ticket = await drained.ticket
    }
    await it.haproxy.reload()
    await using lb = it.provider({ oldWorkers: { within: '2s' } })
    await using resumed = resumeDrain(lb, ticket)
    const busy = busyAtIdle(resumed, it.s1)
    expect(member(await resumed.done)).toMatchObject({ outcome: 'idle', sealed: true })
    expect(busy()).toBe(0)
  })

  it.concurrent.for(['plain', 'hidden'] as const)(
    'after a restart idle is proved once within is over (%s)',
    async (mode, { expect }) => {
      await using it = await lab({ engine, mode })
      await using lb = it.provider({ oldWorkers: { within: '1s' } })
      await using drained = startDrain(lb, web1, { timeout: '60s', settle: '3s' })
      await drained.inForce
      await it.haproxy.restart()
      expect(member(await drained.done)).toMatchObject(SEALED_IDLE)
    },
  )
})
