import { expect, test } from 'vitest'
import { resumeDrain, startDrain, type Ticket } from 'drainable'
import { only, web1, web2 } from '../set-up.js'
import { json, memoryStore, ofKind, recordChanges, rig } from '../rig.js'

const TWO = { pools: { web: ['web1', 'web2'] } }

/** The ticket as it is while the first hold is only intended: its process dies before it is sent. */
async function intended({ clock, lb }: ReturnType<typeof rig>): Promise<Ticket> {
  const tickets = memoryStore()
  const kept: Ticket[] = []
  const store = {
    ...tickets,
    set: (key: string, value: unknown) => {
      kept.push(json(value) as Ticket)
      return tickets.set(key, value)
    },
  }
  const run = startDrain(lb, web1, { clock, timeout: '1m', tickets: store })
  await clock.advance(5_000)
  await clock.runUntil(run.restore())
  const found = kept.find(({ members }) => members[0]?.intended != null)
  if (found === undefined) throw new Error('no ticket says that a hold is intended')
  expect(lb.state(web1)).toBe('ready')
  return found
}

test('a first hold that was never sent asks the floor when resumed', async () => {
  const both = rig(TWO)
  const ticket = await intended(both)
  const { clock, lb } = both
  lb.setBehind(web2, 'maint')
  const sent = recordChanges(lb, clock)
  const run = resumeDrain(lb, ticket, { clock })
  const report = await clock.runUntil(run.done, 120_000)
  expect(only(report)).toMatchObject({ outcome: 'refused', error: { code: 'POOL_AT_MINIMUM' } })
  expect(ofKind(sent, 'hold')).toEqual([])
  await run.release()
})

test('a hold that was sent and is in force needs no place', async () => {
  const both = rig(TWO)
  const ticket = await intended(both)
  const { clock, lb } = both
  lb.setBehind(web1, 'drain')
  lb.setBehind(web2, 'maint')
  const run = resumeDrain(lb, ticket, { clock })
  const report = await clock.runUntil(run.done, 120_000)
  expect(only(report).outcome).not.toBe('refused')
  await run.release()
})
