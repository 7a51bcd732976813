import { expect, test } from 'vitest'
import { resumeRoll, startRoll, type RollEvent, type Ticket } from 'drainable'
import { fakeClock, fakeProvider } from 'drainable/testing'
import { withHost } from '../../model/user/host.js'
import { UserProcess } from '../../model/user/user-process.js'
import { jsonStore } from '../combined/set-up.js'
import { actor, seenAs, web } from './set-up.js'

const WEB1 = { pool: 'web', member: 'web1' }

test('a hold of which nobody knows whose it is, left by an undo, is said', async () => {
  const clock = fakeClock(1_000, Date.UTC(2026, 0, 1))
  const leave = withHost({ wall: () => clock.wall(), uptime: () => clock.now(), random: () => 0.5 })
  try {
    const lb = fakeProvider({ pools: { web: ['web1', 'web2', 'web3'] }, clock, instance: 'a' })
    const tickets = jsonStore()
    const { act } = actor(clock)
    const first = new UserProcess(1, clock)
    // The process dies with its first hold on the way, and the hold arrives.
    const dying = seenAs(lb, (reading) => reading)
    const never = new Promise<never>(() => undefined)
    first.run(() =>
      startRoll({ ...dying, apply: () => never }, web, {
        act,
        clock: first.clock,
        tickets,
        id: 'job',
        onAbort: 'restore',
      }),
    )
    await clock.advance(100)
    first.die()
    lb.setBehind(WEB1, 'drain')

    const second = new UserProcess(2, clock)
    const events: RollEvent[] = []
    const run = second.run(() =>
      resumeRoll(
        seenAs(lb, (reading) => reading),
        savedIn(tickets),
        {
          act,
          clock: second.clock,
          tickets,
          onEvent: (event) => void events.push(event),
        },
      ),
    )
    await clock.advance(200)
    await clock.runUntil(run.close())
    const report = await run.done
    expect(lb.state(WEB1)).toBe('drain')
    expect(report.leftDrained).toEqual([])
    expect(report.leftAsFound).toEqual([WEB1])
    const told = events.flatMap((event) => (event.type === 'fault' ? [event.error.message] : []))
    expect(told).toEqual([expect.stringMatching(/only intended.*ready\(\) opens it$/)])
  } finally {
    leave()
  }
})

function savedIn({ map }: { readonly map: Map<string, string> }): Ticket {
  return JSON.parse(map.get('job') ?? 'null') as Ticket
}
