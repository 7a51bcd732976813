import { describe, expect, test } from 'vitest'
import { resumeRoll, startRoll, type Ticket } from 'drainable'
import { fakeClock, fakeProvider } from 'drainable/testing'
import { jsonStore } from '../combined/set-up.js'
import { actor, seenAs, setUp, web } from './set-up.js'

describe('the report of a roll', () => {
  test('has the times of the drain, of act and of health for each server', async () => {
    const { clock, lb } = setUp(2)
    const { act } = actor(clock, async ({ ref }) => {
      if (ref.member === 'web2') throw new Error('exit 1')
      lb.setHealth(ref, 'down')
      clock.setTimeout(() => lb.setHealth(ref, 'up'), 4_000)
    })
    const { servers } = await clock.runUntil(startRoll(lb, web, { act, clock }).done)
    const [first, second] = servers.map(({ times }) => times)
    expect(first?.drain).toBe(servers[0]?.drained?.elapsed)
    expect(first?.act).toBe(1_000)
    expect(first?.healthy).toBeGreaterThanOrEqual(4_000)
    expect(first?.healthy).toBeLessThan(6_000)
    expect(Object.keys(second ?? {})).toEqual(['drain', 'act'])
  })

  test('names what an earlier process has left as found', async () => {
    const { clock, lb, refs } = setUp(3)
    lb.setBehind(refs[0]!, 'maint')
    const tickets = jsonStore()
    const first = actor(clock, async ({ ref }) => {
      if (ref.member === 'web2') throw new Error('exit 1')
    })
    await clock.runUntil(startRoll(lb, web, { act: first.act, clock, tickets, id: 'job' }).done)
    const ticket = (await tickets.get('job')) as Ticket
    const { act } = actor(clock)
    const report = await clock.runUntil(resumeRoll(lb, ticket, { act, clock, tickets }).done)
    expect(report).toMatchObject({ outcome: 'done', leftAsFound: [refs[0]] })
  })

  test('does not call a server drained whose lost hold no look has shown', async () => {
    const { clock, lb } = setUp(3, { capabilities: { lateBound: 60_000 } })
    lb.failNext('throw', { verb: 'apply', times: 100 })
    const { act } = actor(clock)
    const options = { act, clock, timeout: '5s', onTimeout: 'fail' } as const
    const report = await clock.runUntil(startRoll(lb, web, options).done)
    expect(report).toMatchObject({ outcome: 'stopped', leftDrained: [] })
  })

  test('does not call a member drained that act has removed', async () => {
    const { clock, lb, refs } = setUp(3)
    const { act } = actor(clock, async ({ ref }) => {
      lb.setBehind(ref, 'gone')
      await new Promise<void>((resolve) => void clock.setTimeout(resolve, 10_000))
      throw new Error('exit 1')
    })
    const report = await clock.runUntil(startRoll(lb, web, { act, clock }).done)
    expect(report).toMatchObject({ outcome: 'stopped', leftDrained: [] })
    expect(report.failed).toMatchObject([{ ref: refs[0], held: false }])
  })

  test.each(['failed', 'killed'] as const)(
    'says at a resume, too, that ports of one server can be taken alone (%s)',
    async (how) => {
      const clock = fakeClock(1_000)
      const local = seenAs(fakeProvider({ pools: { web: ['a', 'b', 'c'] }, clock }), (one) => ({
        ...one,
        address: '127.0.0.1',
      }))
      const tickets = jsonStore()
      const { act } = actor(clock)
      const options = { act, clock, tickets } as const
      const wait = { onMinimum: how === 'killed' ? 'wait' : 'fail', id: 'job' } as const
      const run = startRoll(local, web, { ...options, ...wait, timeout: '20s' })
      await clock.advance(5_000)
      const ticket = (await tickets.get('job')) as Ticket
      await clock.runUntil(run.close())
      const report = await clock.runUntil(resumeRoll(local, ticket, options).done)
      expect(report.servers[0]?.error?.message).toMatch(/0 servers of web .* group: 'ref'/)
    },
  )
})
