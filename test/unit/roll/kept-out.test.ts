import { describe, expect, test } from 'vitest'
import { resumeRoll, startRoll, type RollEvent, type Ticket } from 'drainable'
import { jsonStore } from '../combined/set-up.js'
import { actor, setUp, web } from './set-up.js'

/** A roll over five servers of which the first three failed, each left drained. */
async function threeFailed(policy: { readonly timeout?: '20s' | '30s' } = {}) {
  const { clock, lb, refs } = setUp(5)
  const tickets = jsonStore()
  const { act } = actor(clock, async () => {
    throw new Error('exit 1')
  })
  const options = { act, clock, tickets, id: 'job', ...policy }
  const run = startRoll(lb, web, { ...options, maxUnavailable: 3, onFailure: { maxFailed: 2 } })
  await clock.runUntil(run.done)
  const ticket = (await tickets.get('job')) as Ticket
  const plan = { ...ticket.roll!.plan, maxUnavailable: 1 }
  return { clock, lb, refs, tickets, ticket: { ...ticket, roll: { ...ticket.roll!, plan } } }
}

describe('a resumed roll keeps out servers that failed before', () => {
  test('and opens none of them after a reload before its turn', async () => {
    const { clock, lb, refs, tickets, ticket } = await threeFailed()
    const seen: string[][] = []
    const { act, calls } = actor(clock, async ({ ref }) => {
      if (ref.member !== 'web1') return
      lb.reload()
      await new Promise<void>((resolve) => void clock.setTimeout(resolve, 2_000))
      seen.push(refs.map((one) => lb.state(one)))
    })
    const resumed = resumeRoll(lb, ticket, { act, clock, tickets })
    const report = await clock.runUntil(resumed.done)
    expect(seen).toEqual([['maint', 'maint', 'maint', 'ready', 'ready']])
    expect(report.outcome).toBe('done')
    expect(calls).toEqual(['web1 2', 'web2 2', 'web3 2', 'web4 1', 'web5 1'])
    expect(refs.map((one) => lb.state(one))).toEqual(refs.map(() => 'ready'))
    expect(tickets.map.size).toBe(0)
  })

  test('and gives each its whole time to drain from its turn', async () => {
    const { clock, lb, refs, tickets, ticket } = await threeFailed({ timeout: '20s' })
    const { act, calls } = actor(clock, async ({ ref }) => {
      if (ref.member !== 'web1') return
      await new Promise<void>((resolve) => void clock.setTimeout(resolve, 60_000))
      clock.setTimeout(lb.occupy(refs[1]!), 10_000)
    })
    const report = await clock.runUntil(resumeRoll(lb, ticket, { act, clock, tickets }).done)
    expect(report.outcome).toBe('done')
    expect(calls.slice(0, 3)).toEqual(['web1 2', 'web2 2', 'web3 2'])
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
    expect(calls).toEqual(['web1 2'])
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

  test('and reports one that another client opened before its turn', async () => {
    const { clock, lb, refs, tickets, ticket } = await threeFailed()
    const events: RollEvent[] = []
    const { act } = actor(clock, async ({ ref }) => {
      if (ref.member !== 'web1') return
      lb.setBehind(refs[2]!, 'ready')
      await new Promise<void>((resolve) => void clock.setTimeout(resolve, 5_000))
    })
    const onEvent = (event: RollEvent): void => void events.push(event)
    await clock.runUntil(resumeRoll(lb, ticket, { act, clock, tickets, onEvent }).done)
    const said = events.flatMap((event) =>
      event.type === 'overruled' || event.type === 'act'
        ? [`${event.type} ${event.ref.member}`]
        : [],
    )
    expect(said.slice(0, 3)).toEqual(['act web1', 'overruled web3', 'act web2'])
  })
})
