import { describe, expect, test } from 'vitest'
import { combineProviders, resumeDrain, resumeRoll, startDrain, startRoll } from 'drainable'
import type { Ticket, Why } from 'drainable'
import { fakeLease } from 'drainable/testing'
import { jsonStore } from '../combined/set-up.js'
import { actor, setUp, web } from './set-up.js'

/** The reasons as a program reads them. */
function codes(list: readonly Why[]): string[] {
  return list.map(({ code, ref }) => `${code} ${ref.member}`)
}

/** A roll that was killed while its function ran for web1. */
async function killed(rig: ReturnType<typeof setUp>): Promise<Ticket> {
  const tickets = jsonStore()
  const hang = async ({ signal }: { signal: AbortSignal }): Promise<void> =>
    new Promise((_, reject) =>
      signal.addEventListener('abort', () => reject(signal.reason as Error)),
    )
  const run = startRoll(rig.lb, web, { act: hang, clock: rig.clock, tickets, id: 'job' })
  await rig.clock.advance(10_000)
  const ticket = (await tickets.get('job')) as Ticket
  await rig.clock.runUntil(run.close())
  return ticket
}

describe('why() of a roll says', () => {
  test('who has the lease that a resume waits for', async () => {
    const rig = setUp(3)
    const ticket = await killed(rig)
    const lease = fakeLease({ clock: rig.clock })
    lease.seize('the dead one')
    const { act } = actor(rig.clock)
    const run = resumeRoll(rig.lb, ticket, { act, clock: rig.clock, lease })
    await rig.clock.advance(3_000)
    expect(codes(run.why())).toEqual(['lease web1'])
    expect(run.why()[0]?.text).toMatch(/held by 'the dead one'.*the roll waits for it until \d{4}-/)
    await rig.clock.runUntil(run.done)
    expect(run.why()).toEqual([])
  })

  test('who has the lease also if every server is done', async () => {
    const { clock, lb } = setUp(3)
    const { act } = actor(clock)
    const kept: Ticket[] = []
    const onTicket = (ticket: Ticket): void => void kept.push(ticket)
    const first = startRoll(lb, web, { act, clock, waitHealthy: false, id: 'job', onTicket })
    await clock.runUntil(first.done)
    const lease = fakeLease({ clock })
    lease.seize('the dead one')
    const run = resumeRoll(lb, kept.at(-1)!, { act, clock, lease })
    await clock.advance(3_000)
    expect(codes(run.why())).toEqual(['lease *'])
    await clock.runUntil(run.done)
  })

  test('that the balancer can not be read yet, as an event does', async () => {
    const rig = setUp(3)
    const ticket = await killed(rig)
    rig.lb.disconnect()
    const { act } = actor(rig.clock)
    const faults: string[] = []
    const onEvent = (event: { type: string }): void => {
      if (event.type === 'fault') faults.push(event.type)
    }
    const run = resumeRoll(rig.lb, ticket, { act, clock: rig.clock, onEvent })
    await rig.clock.advance(10_000)
    expect(codes(run.why())).toEqual(['unreadable web1'])
    expect(faults).toHaveLength(1)
    rig.lb.connect()
    expect((await rig.clock.runUntil(run.done)).outcome).toBe('done')
  })

  test('that act is running, and since when', async () => {
    const { clock, lb } = setUp(3)
    const act = (): Promise<void> =>
      new Promise((resolve) => void clock.setTimeout(resolve, 60_000))
    await using run = startRoll(lb, web, { act, clock })
    await clock.advance(30_000)
    expect(codes(run.why())).toEqual(['acting web1'])
    expect(run.why()[0]?.text).toMatch(/^act for web\/web1 .* has run for \d+.* s, attempt 1$/)
    const ended = run.close()
    await clock.runUntil(ended)
  })

  test('what a server waits for that was acted on', async () => {
    const { clock, lb, refs } = setUp(3)
    const act = (): Promise<void> => {
      lb.setHealth(refs[0]!, 'down')
      return Promise.resolve()
    }
    const run = startRoll(lb, web, { act, clock, waitHealthy: '10m' })
    await clock.advance(30_000)
    expect(run.why().map(({ ref }) => ref.member)).toContain('web1')
    lb.disconnect()
    await clock.advance(20_000)
    expect(codes(run.why())).toContain('unreadable web1')
    lb.connect()
    lb.setHealth(refs[0]!, 'up')
    await clock.advance(20_000)
    expect(run.report().servers[0]?.outcome).toBe('done')
    await clock.runUntil(run.close())
  })

  test('which balancer of several it waits for', async () => {
    const one = setUp(3, { instance: 'why-a' })
    const { clock } = one
    const two = setUp(3, { instance: 'why-b', clock })
    const both = (): ReturnType<typeof combineProviders> =>
      combineProviders({ a: one.lb, b: two.lb })
    const tickets = jsonStore()
    const targets = ['a', 'b'].map((balancer) => ({ ...one.refs[0]!, balancer }))
    const first = startDrain(both(), targets, { clock, tickets, id: 'd', timeout: '10m' })
    await clock.runUntil(first.done)
    const ticket = (await tickets.get('d')) as Ticket
    await first.release()
    two.lb.disconnect()
    await using run = resumeDrain(both(), ticket, { clock })
    await clock.advance(5_000)
    expect(run.why().map(({ code, ref }) => [code, ref.balancer])).toContainEqual([
      'unreadable',
      'b',
    ])
  })
})
