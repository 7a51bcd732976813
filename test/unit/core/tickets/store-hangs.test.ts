import { expect, test } from 'vitest'
import { startDrain, type TicketStore } from 'drainable'
import { only, web1 } from '../set-up.js'
import { memoryStore, rig } from '../rig.js'

/** A ticket store that can be made to answer nothing any more. */
function store(): TicketStore & { hangs: boolean } {
  const kept = memoryStore()
  const never = new Promise<never>(() => undefined)
  const tickets = {
    hangs: false,
    get: (key: string) => (tickets.hangs ? never : kept.get(key)),
    set: (key: string, value: unknown) => (tickets.hangs ? never : kept.set(key, value)),
    delete: (key: string) => (tickets.hangs ? never : kept.delete(key)),
  }
  return tickets
}

test('a hold that a reload forgot is put back while the ticket store hangs', async () => {
  const { clock, lb } = rig()
  const tickets = store()
  const run = startDrain(lb, web1, { clock, tickets, seal: false })
  await clock.runUntil(run.done)
  tickets.hangs = true
  lb.reload()
  expect(lb.state(web1)).toBe('ready')
  await clock.advance(5_000)
  expect(lb.state(web1)).toBe('drain')
  await clock.runUntil(run.release())
})

test('an undo opens the member while the ticket store hangs', async () => {
  const { clock, lb } = rig()
  const tickets = store()
  const run = startDrain(lb, web1, { clock, tickets, seal: false })
  await clock.runUntil(run.done)
  tickets.hangs = true
  const report = await clock.runUntil(run.restore(), 60_000)
  expect([only(report).outcome, lb.state(web1)]).toEqual(['restored', 'ready'])
})

test.each([{}, { id: 'deploy-7' }])(
  'a drain with %o ends though its ticket store never answers',
  async (more) => {
    const { clock, lb } = rig()
    const tickets = store()
    tickets.hangs = true
    const run = startDrain(lb, web1, { clock, tickets, timeout: Infinity, ...more })
    const report = await clock.runUntil(run.done, 120_000)
    expect([report.outcome, lb.state(web1)]).toEqual(['refused', 'ready'])
    expect((report.error ?? report.members[0]?.error)?.message).toMatch(/ticket store/)
  },
)
