import { describe, expect, test } from 'vitest'
import {
  isDrainableError,
  ready,
  resumeRoll,
  startRoll,
  type DrainableProvider,
  type RollEvent,
  type Ticket,
} from 'drainable'
import { fakeClock, fakeProvider, type FakeProvider } from 'drainable/testing'
import { jsonStore } from '../combined/set-up.js'
import { thrown } from '../core/set-up.js'
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
      code: 'MEMBER_GONE',
      message: expect.stringMatching(
        /web\/web1 is another member now .* in drain: open it with ready\(\)/,
      ) as unknown,
    })
    expect(calls).toEqual([])
    expect(lb.requests.filter(({ verb }) => verb === 'apply')).toHaveLength(before)
    expect(lb.state(refs[0]!)).toBe('drain')
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

describe('the opening of a server', () => {
  test('ends no drain that an earlier process has ended', async () => {
    const { clock, lb, tickets, ticket } = await deadAfterAct()
    const { act } = actor(clock)
    const ends: string[] = []
    const onEvent = (event: RollEvent): void => {
      if (event.type === 'end') ends.push(...event.report.members.map(({ ref }) => ref.member))
    }
    await clock.runUntil(resumeRoll(lb, ticket, { act, clock, tickets, onEvent }).done)
    expect(ends).toEqual(['web2', 'web3'])
  })

  test('is of its name if its machine was replaced while act ran', async () => {
    const { clock, lb, refs } = setUp(3)
    const { act } = actor(clock, async ({ ref }) => {
      if (ref.member !== 'web1') return
      lb.setIdentity(ref, 'a new machine')
      await new Promise<void>((resolve) => void clock.setTimeout(resolve, 3_000))
    })
    const report = await clock.runUntil(startRoll(lb, web, { act, clock }).done)
    expect(report).toMatchObject({ outcome: 'done', leftDrained: [], leftAsFound: [] })
    expect(lb.state(refs[0]!)).toBe('ready')
  })

  test('waits for the health of a server that an operator has opened', async () => {
    const { clock, lb, refs } = setUp(3)
    const { act, calls } = actor(clock, async ({ ref }) => {
      if (ref.member !== 'web1') return
      lb.setBehind(ref, 'ready')
      lb.setHealth(ref, 'down')
      await new Promise<void>((resolve) => void clock.setTimeout(resolve, 2_000))
    })
    const run = startRoll(lb, web, { act, clock, waitHealthy: '1m' })
    await clock.advance(30_000)
    expect(calls).toEqual(['web1 1'])
    lb.setHealth(refs[0]!, 'up')
    const report = await clock.runUntil(run.done)
    expect(report).toMatchObject({ outcome: 'done', leftAsFound: [] })
  })

  test('says that the time was too short, and not that no check passed', async () => {
    const clock = fakeClock(1_000)
    const lb = fakeProvider({ pools: { web: ['web1', 'web2'] }, clock, latency: 200 })
    lb.setBehind({ pool: 'web', member: 'web1' }, 'maint')
    const target = { pool: 'web', member: 'web1' }
    const error = await thrown(clock.runUntil(ready(lb, target, { clock, timeout: '1s' })))
    if (!isDrainableError(error, 'CALL_TIMEOUT')) throw error
    expect(error.message).toMatch(
      /^web\/web1 was 'drain' .* \(health: up\), and 1\.4 s was too short/,
    )
  })

  test('counts its time from its own beginning', async () => {
    const { clock, lb, refs } = setUp(3)
    const { act } = actor(clock, async ({ ref }) => {
      lb.setHealth(ref, 'down')
      await new Promise<void>((resolve) => void clock.setTimeout(resolve, 60_000))
    })
    const run = startRoll(lb, web, { act, clock, waitHealthy: '20s' })
    const report = await clock.runUntil(run.done)
    expect(report.failed[0]?.error?.message).toMatch(/no check passed within 20 s \(health: down\)/)
    expect(report.leftDrained).toEqual([refs[0]])
  })
})
