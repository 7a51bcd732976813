import { describe, expect, test } from 'vitest'
import { resumeRoll, startRoll, type Ticket } from 'drainable'
import { jsonStore } from '../combined/set-up.js'
import { actor, setUp, web } from './set-up.js'

/** A roll over five servers of which the first three failed, each left drained. */
async function threeFailed() {
  const { clock, lb, refs } = setUp(5)
  const tickets = jsonStore()
  const { act } = actor(clock, async () => {
    throw new Error('exit 1')
  })
  const options = { act, clock, tickets, id: 'job' }
  const run = startRoll(lb, web, { ...options, maxUnavailable: 3, onFailure: { maxFailed: 2 } })
  await clock.runUntil(run.done)
  const ticket = (await tickets.get('job')) as Ticket & Required<Pick<Ticket, 'roll'>>
  return { clock, lb, refs, tickets, ticket }
}

describe('a resumed roll keeps out servers that failed before', () => {
  test('and opens none of them after a reload in its first moments', async () => {
    const { clock, lb, refs, tickets, ticket } = await threeFailed()
    const seen: string[][] = []
    const { act, calls, most } = actor(clock, async ({ ref, attempt }) => {
      if (attempt === 1) return
      if (ref.member === 'web1') lb.reload()
      await new Promise<void>((resolve) => void clock.setTimeout(resolve, 2_000))
      seen.push(refs.map((one) => lb.state(one)))
    })
    const resumed = resumeRoll(lb, ticket, { act, clock, tickets })
    const report = await clock.runUntil(resumed.done)
    expect(seen[0]).toEqual(['maint', 'maint', 'maint', 'ready', 'ready'])
    expect(most()).toBe(3)
    expect(report.outcome).toBe('done')
    expect(calls).toEqual(['web1 2', 'web2 2', 'web3 2', 'web4 1', 'web5 1'])
    expect(refs.map((one) => lb.state(one))).toEqual(refs.map(() => 'ready'))
    expect(tickets.map.size).toBe(0)
  })

  test('and in the ticket, even if the first fails again', async () => {
    const { clock, lb, refs, tickets, ticket } = await threeFailed()
    const { act, calls } = actor(clock, async () => {
      throw new Error('exit 2')
    })
    const stopping = {
      ...ticket,
      roll: { ...ticket.roll, plan: { ...ticket.roll.plan, maxFailed: 0 } },
    }
    const report = await clock.runUntil(resumeRoll(lb, stopping, { act, clock, tickets }).done)
    expect(calls).toEqual(['web1 2', 'web2 2', 'web3 2'])
    expect(report.leftDrained).toEqual(refs.slice(0, 3))
    expect(refs.map((one) => lb.state(one)).slice(0, 3)).toEqual(['maint', 'maint', 'maint'])
    const kept = (await tickets.get('job')) as Ticket
    expect(kept.roll!.servers.map(({ state, drain }) => [state, drain?.deadline])).toEqual([
      ['failed', expect.any(String)],
      ['failed', expect.any(String)],
      ['failed', expect.any(String)],
      ['waiting', undefined],
      ['waiting', undefined],
    ])
    // Nothing of the roll looks at the balancer any more.
    const before = lb.requests.length
    await clock.advance(60_000)
    expect(lb.requests).toHaveLength(before)
  })

  test('and gives their drains up at once when it is closed', async () => {
    const { clock, lb, refs, tickets, ticket } = await threeFailed()
    const { act, calls } = actor(clock)
    for (const ref of refs.slice(0, 3)) lb.occupy(ref)
    const resumed = resumeRoll(lb, ticket, { act, clock, tickets })
    await clock.advance(1_000)
    const before = clock.now()
    await clock.runUntil(resumed.close())
    expect(clock.now() - before).toBeLessThan(5_000)
    expect(calls).toEqual([])
    expect(resumed.report()).toMatchObject({ outcome: 'aborted', leftDrained: refs.slice(0, 3) })
  })
})
