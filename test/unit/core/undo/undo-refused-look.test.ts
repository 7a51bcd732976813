/** An undo whose balancer refuses to be read, as with a wrong password: its report says so, and it never rejects. */
import { expect, test } from 'vitest'
import { restore, startDrain, type DrainableProvider, type Ticket } from 'drainable'
import { DrainableError } from 'drainable/provider'
import { only, web1 } from '../set-up.js'
import { json, memoryStore, rig } from '../rig.js'

/** The same balancer, from a process that may not read it. */
function forbidden(lb: DrainableProvider): DrainableProvider {
  return {
    specVersion: 1,
    name: lb.name,
    instance: lb.instance,
    describe: () => Promise.reject(new DrainableError('FORBIDDEN', 'the password was refused')),
    observe: (refs, ctx) => lb.observe(refs, ctx),
    apply: (changes, ctx) => lb.apply(changes, ctx),
    close: () => lb.close(),
    [Symbol.asyncDispose]: () => lb.close(),
  }
}

test('restore() of a balancer that may not be read reports its members as refused', async () => {
  const { clock, lb } = rig()
  const tickets = memoryStore()
  const run = startDrain(lb, web1, { clock, tickets, id: 'job' })
  await clock.runUntil(run.done)
  await clock.runUntil(run.release())
  const ticket = json(await tickets.get('job')) as Ticket
  const report = await clock.runUntil(restore(forbidden(lb), ticket, { clock, tickets }))
  expect(report.outcome).toBe('refused')
  expect(only(report)).toMatchObject({ ref: web1, outcome: 'refused', held: true })
  expect(report.error?.code).toBe('FORBIDDEN')
  expect(await tickets.get('job')).toBeDefined()
  await lb.close()
})
