import { expect, test } from 'vitest'
import { DrainableError, ready, resumeDrain, startDrain, type Ticket } from 'drainable'
import { only, thrown, web1 } from '../set-up.js'
import { json, rig, type Rig } from '../rig.js'

/** The first call that opens a member has no answer for that long, and is not carried out. */
function hangOpening({ clock, lb }: Rig, ms: number): void {
  const apply = lb.apply.bind(lb)
  let first = true
  lb.apply = (changes, ctx) => {
    if (!first || !changes.some(({ kind }) => kind === 'restore')) return apply(changes, ctx)
    first = false
    return new Promise((_, reject) => {
      const error = new DrainableError('CONNECTION_LOST', 'the answer was lost')
      clock.setTimeout(() => reject(error), ms)
    })
  }
}

test('an inherited undo does not count as set since by another client', async () => {
  const both = rig({ capabilities: { lateBound: 200 } })
  const { clock, lb } = both
  lb.occupy(web1)
  hangOpening(both, 2_000)
  const policy = { clock, hold: 'maint', timeout: '1m' } as const
  const one = startDrain(lb, web1, policy)
  await clock.advance(100)
  const opened = thrown(ready(lb, web1, { clock }))
  await clock.advance(100)
  lb.setBehind(web1, 'drain') // it is not ours any more, and the next run sees that first
  void one.restore()
  await clock.advance(100)
  const two = startDrain(lb, web1, policy)
  await clock.advance(100)
  const undone = two.restore()
  lb.setBehind(web1, 'maint')
  const report = await clock.runUntil(undone, 60_000)
  expect([only(report).outcome, lb.state(web1)]).toEqual(['overruled', 'maint'])
  await clock.runUntil(opened)
})

test('a resumed drain goes back to what it found, not to its lost hold', async () => {
  const { clock, lb } = rig({ capabilities: { lateBound: 200 } })
  lb.occupy(web1)
  const apply = lb.apply.bind(lb)
  const lost = new DrainableError('CONNECTION_LOST', 'the answer was lost')
  let calls = 0
  lb.apply = async (changes, ctx) => {
    calls += 1
    if (calls === 1) await apply(changes, ctx)
    if (calls < 4) throw lost
    return apply(changes, ctx)
  }
  const kept: Ticket[] = []
  const onTicket = (ticket: Ticket): void => void kept.push(json(ticket))
  const one = startDrain(lb, web1, { clock, timeout: '1m', onTicket })
  await clock.advance(1)
  const ticket = kept[0]! // as a process that was killed then leaves it
  expect(lb.state(web1)).toBe('drain')
  const two = startDrain(lb, web1, { clock, timeout: '1m' })
  await clock.advance(5)
  void two.restore()
  const again = resumeDrain(lb, ticket, { clock })
  await clock.advance(1_000)
  const report = await clock.runUntil(again.restore(), 60_000)
  expect([only(report).outcome, lb.state(web1)]).toEqual(['restored', 'ready'])
  await Promise.all([one.release(), two.release()])
})
