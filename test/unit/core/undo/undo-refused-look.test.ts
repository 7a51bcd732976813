/** An undo whose balancer refuses to be read, as with a wrong password: its report says so, and it never rejects. */
import { expect, test } from 'vitest'
import { restore, startDrain, type Ticket } from 'drainable'
import { DrainableError } from 'drainable/provider'
import { only, web1 } from '../set-up.js'
import { anotherObject, json, memoryStore, rig } from '../rig.js'

test('restore() of a balancer that may not be read reports refused members', async () => {
  const { clock, lb } = rig()
  const tickets = memoryStore()
  const run = startDrain(lb, web1, { clock, tickets, id: 'job' })
  await clock.runUntil(run.done)
  await clock.runUntil(run.release())
  const ticket = json(await tickets.get('job')) as Ticket
  const forbidden = anotherObject(lb, () => {
    throw new DrainableError('FORBIDDEN', 'the password was refused')
  })
  const report = await clock.runUntil(restore(forbidden, ticket, { clock, tickets }))
  expect(report.outcome).toBe('refused')
  expect(only(report)).toMatchObject({ ref: web1, outcome: 'refused', held: true })
  expect(report.error?.code).toBe('FORBIDDEN')
  expect(await tickets.get('job')).toBeDefined()
  await lb.close()
})
