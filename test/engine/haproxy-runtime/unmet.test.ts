/** Processes that a provider has never met: a reload, or a restart, came between two of its calls. */
import { setTimeout as pass } from 'node:timers/promises'
import { resumeDrain, startDrain, stepDrain, type Ticket } from 'drainable'
import { callContext } from 'drainable/provider'
import { describe, it } from 'vitest'
import { engines } from '../../support/engines.js'
import { until } from '../../support/haproxy.js'
import { busyAtIdle, lab, member, SEALED_IDLE, web1, work } from '../../support/haproxy-lab.js'

/** Longer than the quiet time. */
const LONGER = 2_000

describe.each(engines('haproxy'))('HAProxy $version', (engine) => {
  it.concurrent('a process that was only described is waited for', async ({ expect }) => {
    await using it = await lab({ engine, mode: 'plain' })
    const working = await work(it)
    await using lb = it.provider()
    await lb.describe(callContext())
    await it.haproxy.reload()
    await using drained = startDrain(lb, web1, { timeout: '60s' })
    const busy = busyAtIdle(drained, it.s1)
    await until(() => drained.why().some(({ code }) => code === 'unreadable'), 'it is named')
    await pass(LONGER)
    expect(busy()).toBe(-1)
    await working.end()
    expect(member(await drained.done)).toMatchObject({ outcome: 'idle', verifiedIdle: false })
    expect(busy()).toBe(0)
  })

  it.concurrent('a drain by steps goes on after a reload without a master', async ({ expect }) => {
    await using it = await lab({ engine, mode: 'plain' })
    const working = await work(it)
    let ticket: Ticket | undefined
    const step = async (): Promise<string | undefined> => {
      await using lb = it.provider()
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
    const end = performance.now() + LONGER
    while (performance.now() < end) expect(await step()).toBeUndefined()
    await working.end()
    expect(await until(step, 'its end', 30_000)).toBe('idle')
    expect(it.s1.active).toBe(0)
  })

  it.concurrent('a drain is resumed after a reload without a master', async ({ expect }) => {
    await using it = await lab({ engine, mode: 'plain' })
    let ticket: Ticket
    {
      await using lb = it.provider()
      await using drained = startDrain(lb, web1, { timeout: '60s', settle: '3s' })
      await drained.inForce
      await until(() => drained.why().some(({ text }) => /another \d/.test(text)), 'it is read')
      ticket = await drained.ticket
    }
    await it.haproxy.reload()
    await using lb = it.provider()
    await using resumed = resumeDrain(lb, ticket)
    expect(member(await resumed.done)).toMatchObject({ outcome: 'idle', sealed: true })
  })

  it.concurrent.for(['plain', 'hidden'] as const)(
    'after a restart idle is proved (%s)',
    async (mode, { expect }) => {
      // Nothing tells there whether it ever reloaded.
      if (mode === 'hidden' && engine.series === '2.6') return
      await using it = await lab({ engine, mode })
      await using lb = it.provider()
      await using drained = startDrain(lb, web1, { timeout: '60s', settle: '3s' })
      await drained.inForce
      await it.haproxy.restart()
      expect(member(await drained.done)).toMatchObject(SEALED_IDLE)
    },
  )
})
