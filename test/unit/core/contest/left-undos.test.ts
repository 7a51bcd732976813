/** An undo without an answer that one call after another brings, each with a copy of it from the ticket. */
import { expect, test } from 'vitest'
import { startDrain, stepDrain, type Ticket } from 'drainable'
import { isOpening, json, rig } from '../rig.js'
import { web1 } from '../set-up.js'

test('an undo without an answer that steps leave is one change for a drain', async () => {
  const { clock, lb } = rig({ capabilities: { lateBound: 1_000 } })
  const tickets: Ticket[] = []
  const onTicket = (ticket: Ticket): void => void tickets.push(json(ticket))
  lb.occupy(web1)
  const run = startDrain(lb, web1, { clock, timeout: '1h', onTicket })
  await clock.advance(300)
  const held = tickets.at(-1)!
  const restore = { kind: 'restore', ref: web1, expect: 'drain', to: 'ready' } as const
  for (let n = 0; n < 20; n += 1) {
    // The steps of another drain of the same member, which knows its undo from its ticket.
    const members = held.members.map((member) => ({ ...member, late: [restore] }))
    await clock.runUntil(stepDrain(lb, { ...held, id: 'steps', members }, { clock }))
  }
  lb.reload() // the put-back writes a ticket
  await clock.advance(300)
  expect(tickets.at(-1)!.members.flatMap(({ late }) => late)).toHaveLength(1)
  expect(lb.requests.flatMap(({ changes = [] }) => changes).filter(isOpening)).toEqual([])
  await clock.runUntil(run.restore(), 60_000)
  await run.release()
})
