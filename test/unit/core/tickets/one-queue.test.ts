/** Several runs of one process that have the same ticket: what is kept of it at the end. */
import { randomUUID } from 'node:crypto'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import {
  combineProviders,
  restore,
  resumeDrain,
  startDrain,
  type DrainableProvider,
  type Ticket,
  type TicketStore,
} from 'drainable'
import { fakeClock, fakeProvider, type FakeClock, type FakeProvider } from 'drainable/testing'
import { web1 } from '../set-up.js'
import { cases } from '../../../support/cases.js'
import { memoryStore } from '../rig.js'

/** A ticket store that takes its time for whatever changes it. */
function slowStore(
  clock: FakeClock,
  delay: () => number,
): TicketStore & { readonly map: Map<string, unknown> } {
  const kept = memoryStore()
  const slowly = async (work: () => unknown): Promise<void> => {
    await new Promise<void>((resolve) => void clock.setTimeout(resolve, delay()))
    work()
  }
  return {
    ...kept,
    set: (key, value) => slowly(() => kept.set(key, value)),
    delete: (key) => slowly(() => kept.delete(key)),
  }
}

/** A drain over one or two balancers of which one run is under way, and another one, of the same ticket, undoes it. */
async function undone(
  delays: readonly number[],
  { over, by, after }: { over: number; by: 'restore' | 'resume'; after: number },
): Promise<{ states: readonly string[]; kept: unknown }> {
  const clock = fakeClock(1_000)
  const parts = new Map<string, FakeProvider>()
  for (const key of ['a', 'b'].slice(0, over))
    parts.set(
      key,
      fakeProvider({ pools: { web: ['web1', 'web2'] }, clock, instance: randomUUID() }),
    )
  const [first] = parts.values()
  const lb: DrainableProvider = over === 1 ? first! : combineProviders(Object.fromEntries(parts))
  const members = [...parts.keys()].map((balancer) => ({ ...web1, balancer }))
  let asked = 0
  const tickets = slowStore(clock, () => delays[asked++ % delays.length]!)
  const options = { clock, tickets, id: 'job' }
  const run = startDrain(lb, over === 1 ? web1 : members, options)
  await clock.advance(after)
  const ticket = JSON.parse(JSON.stringify(await clock.runUntil(run.ticket))) as Ticket
  const later = by === 'resume' ? resumeDrain(lb, ticket, { clock, tickets }) : undefined
  await clock.runUntil(later?.restore() ?? restore(lb, ticket, { clock, tickets }), 300_000)
  await clock.runUntil(run.done, 300_000)
  await clock.runUntil(run.release(), 300_000)
  await clock.advance(300_000)
  return {
    states: [...parts.values()].map((part) => part.state(web1)),
    kept: tickets.map.get('job'),
  }
}

const delays = fc.array(fc.integer({ min: 0, max: 4_000 }), { minLength: 1, maxLength: 12 })
const story = fc.record({
  over: fc.constantFrom(1, 2),
  by: fc.constantFrom('restore' as const, 'resume' as const),
  after: fc.integer({ min: 0, max: 40_000 }),
})

test('a ticket undone by one run is written again by no other run', async () => {
  await fc.assert(
    fc.asyncProperty(delays, story, async (slow, how) => {
      const { states, kept } = await undone(slow, how)
      expect(states).toEqual(states.map(() => 'ready'))
      expect(kept).toBeUndefined()
    }),
    { numRuns: cases(200) },
  )
})
