import { describe, expect, test } from 'vitest'
import { resumeRoll, startRoll, type DrainableProvider, type Ticket } from 'drainable'
import type { FakeProvider } from 'drainable/testing'
import { jsonStore } from '../combined/set-up.js'
import { actor, seenAs, setUp, web } from './set-up.js'

/** The same balancer where the name of one server belongs to another machine. */
function moved(lb: FakeProvider, name: string): DrainableProvider {
  return seenAs(lb, (one) =>
    one.ref.member === name ? { ...one, identity: 'another machine' } : one,
  )
}

/** A roll whose process dies once the first server was acted on and not opened yet. */
async function deadAfterAct() {
  const { clock, lb, refs } = setUp(3)
  const tickets = jsonStore()
  const { act } = actor(clock, async ({ ref }) => lb.setHealth(ref, 'down'))
  const run = startRoll(lb, web, { act, clock, tickets, id: 'job', waitHealthy: '1h' })
  await clock.advance(10_000)
  const ticket = (await tickets.get('job')) as Ticket
  expect(ticket.roll?.servers[0]?.state).toBe('acted')
  await clock.runUntil(run.close())
  lb.setHealth(refs[0]!, 'up')
  lb.setBehind(refs[0]!, 'maint')
  return { clock, lb, refs, tickets, ticket }
}

describe('a server that was acted on before a crash', () => {
  test('is not opened if its name is another machine by now', async () => {
    const { clock, lb, refs, tickets, ticket } = await deadAfterAct()
    const before = lb.requests.filter(({ verb }) => verb === 'apply').length
    const { act, calls } = actor(clock)
    const other = moved(lb, 'web1')
    const report = await clock.runUntil(resumeRoll(other, ticket, { act, clock, tickets }).done)
    expect(report.failed[0]?.error).toMatchObject({
      code: 'CONFLICT',
      message: expect.stringMatching(/web\/web1 is another member now: another machine/) as unknown,
    })
    expect(calls).toEqual([])
    expect(lb.requests.filter(({ verb }) => verb === 'apply')).toHaveLength(before)
    expect(lb.state(refs[0]!)).toBe('maint')
  })

  test('is opened if it is the same machine', async () => {
    const { clock, lb, refs, tickets, ticket } = await deadAfterAct()
    const { act, calls } = actor(clock)
    const report = await clock.runUntil(resumeRoll(lb, ticket, { act, clock, tickets }).done)
    expect(report.outcome).toBe('done')
    expect(calls).toEqual(['web2 1', 'web3 1'])
    expect(lb.state(refs[0]!)).toBe('ready')
  })
})
