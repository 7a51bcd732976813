/** Several drains of one member: what is kept in their tickets, and what a process does that has more than one of them. */
import { describe, expect, test } from 'vitest'
import { restore, startDrain, stepDrain, type Clock, type Ticket } from 'drainable'
import type { FakeClock } from 'drainable/testing'
import { anotherObject, json, memoryStore, rig } from '../rig.js'
import { only, web1, web2 } from '../set-up.js'

/** The clock of another process: by it nothing is known of what this one has done. */
function ofAnother(clock: FakeClock): Clock {
  return { now: () => clock.now(), setTimeout: clock.setTimeout.bind(clock) }
}

/** A drain of one member, and a later one of two under the same id, both held. */
async function twoDrains() {
  const { clock, lb } = rig()
  const { map, ...tickets } = memoryStore()
  const options = { clock, tickets, id: 'job' }
  const one = startDrain(lb, web1, options)
  await clock.runUntil(one.done)
  const both = startDrain(lb, [web1, web2], options)
  await clock.runUntil(both.done)
  const kept = (): readonly string[] | undefined =>
    (map.get('job') as Ticket | undefined)?.members.map(({ ref }) => ref.member)
  return { clock, lb, one, both, kept, tickets }
}

test('of two drains under one id the later one has the ticket, and the hold', async () => {
  const { clock, lb, one, both, kept } = await twoDrains()
  await clock.runUntil(one.restore())
  await clock.advance(60_000)
  expect([lb.state(web1), lb.state(web2), kept()]).toEqual(['maint', 'maint', ['web1', 'web2']])
  await clock.runUntil(both.restore())
  expect([lb.state(web1), lb.state(web2), kept()]).toEqual(['ready', 'ready', undefined])
})

test('an undo by an older ticket undoes what the store has under its id', async () => {
  const { clock, lb, one, both, kept, tickets } = await twoDrains()
  const older = json(await one.ticket)
  await clock.runUntil(restore(lb, older, { clock, tickets }))
  await clock.advance(60_000)
  expect([lb.state(web1), lb.state(web2), kept()]).toEqual(['ready', 'ready', undefined])
  await Promise.all([one.release(), both.release()])
})

test('a ticket that nothing was changed under can be resumed', async () => {
  const { clock, lb } = rig({ pools: { web: ['web1', 'web2'] } })
  const { map, ...tickets } = memoryStore()
  const first = startDrain(lb, web1, { clock, tickets, id: 'job' })
  await clock.runUntil(first.done)
  const older = json(await first.ticket)
  await clock.runUntil(first.release())
  const late = anotherObject(lb)
  const observe = late.observe.bind(late)
  let go = (): void => undefined
  const gate = new Promise<void>((resolve) => (go = resolve))
  late.observe = async (...asked) => {
    await gate
    return observe(...asked)
  }
  // It wants both members, of which only one may go: the floor refuses.
  const options = { clock, tickets, id: 'job', keepReady: 2, onMinimum: 'wait' } as const
  const both = startDrain(late, [web1, web2], { ...options, timeout: '10m' })
  await clock.advance(10)
  await clock.runUntil(restore(lb, older, { clock, tickets }))
  expect(map.has('job')).toBe(false)
  go()
  await clock.advance(5_000)
  expect(both.report().members.map(({ outcome }) => outcome)).toEqual(['aborted', 'aborted'])
  await clock.runUntil(both.release())
  expect([lb.state(web1), lb.state(web2), map.has('job')]).toEqual(['ready', 'ready', true])
})

test('a raise is in the other ticket before its own goes', async () => {
  const { clock, lb } = rig()
  const { map, ...tickets } = memoryStore()
  const options = { clock, seal: false, tickets } as const
  const first = startDrain(lb, web1, { ...options, id: 'first' })
  await clock.runUntil(first.done)
  const second = startDrain(lb, web1, { ...options, hold: 'maint', id: 'second' })
  await clock.runUntil(second.done)
  await clock.runUntil(second.restore())
  expect([[...map.keys()], lb.state(web1)]).toEqual([['first'], 'maint'])
  // The process is gone: another one has the ticket alone.
  const left = map.get('first') as Ticket
  const undone = await clock.runUntil(restore(lb, left, { clock: ofAnother(clock) }))
  expect([only(undone).outcome, lb.state(web1)]).toEqual(['restored', 'ready'])
})

describe.each(['older first', 'newer first'])(
  'a process with two tickets of a member: %s',
  (order) => {
    /** Undoes both in a process that has seen nothing yet. */
    async function restoreBoth(
      { clock, lb }: ReturnType<typeof rig>,
      tickets: readonly Ticket[],
    ): Promise<readonly unknown[]> {
      const own = ofAnother(clock)
      const given = order === 'older first' ? tickets : tickets.toReversed()
      const both = Promise.all(given.map((ticket) => restore(lb, json(ticket), { clock: own })))
      const reports = await clock.runUntil(both)
      return [lb.state(web1), ...reports.map((report) => only(report).outcome)]
    }

    test('opens what another client has lowered to the older state', async () => {
      const both = rig()
      const { clock, lb } = both
      const first = startDrain(lb, web1, { clock, seal: false })
      await clock.runUntil(first.done)
      const second = startDrain(lb, web1, { clock: ofAnother(clock), hold: 'maint' })
      await clock.runUntil(second.done)
      const tickets = [json(await first.ticket), json(await second.ticket)]
      await Promise.all([first.release(), second.release()])
      lb.setBehind(web1, 'drain')
      expect(await restoreBoth(both, tickets)).toEqual(['ready', 'restored', 'restored'])
    })

    test('does not go back to what the older one may have set', async () => {
      const both = rig()
      const { clock, lb } = both
      const start = { target: web1, policy: { timeout: '10m' } } as const
      const first = await clock.runUntil(stepDrain(lb, start, { clock: ofAnother(clock) }))
      lb.setBehind(web1, 'drain') // its hold, sent before its process ended
      const second = await clock.runUntil(stepDrain(lb, start, { clock: ofAnother(clock) }))
      const undone = await restoreBoth(both, [first.ticket, second.ticket])
      expect(undone).toEqual(['drain', 'overruled', 'overruled'])
    })
  },
)
