import { expect, test } from 'vitest'
import { restore, startDrain, stepDrain, watch, type Ticket } from 'drainable'
import { only, web1 } from '../set-up.js'
import { anotherObject, isOpening, json, loseAnswer, rig } from '../rig.js'

test('a hold that one undo left as uncertain is not ours for the next', async () => {
  const { clock, lb } = rig()
  const start = { target: web1, policy: { hold: 'maint', timeout: '10m' } } as const
  const announced = await clock.runUntil(stepDrain(lb, start, { clock }))
  const run = startDrain(lb, web1, { clock, seal: false })
  await clock.runUntil(run.done)
  const held = json(await clock.runUntil(run.ticket))
  await clock.runUntil(run.release())
  lb.setBehind(web1, 'maint')
  const another = anotherObject(lb)
  const first = await clock.runUntil(restore(another, json(announced.ticket), { clock }), 60_000)
  expect(only(first).error?.message).toContain('was only intended')
  const second = await clock.runUntil(restore(another, held, { clock }), 60_000)
  expect(only(second)).toMatchObject({ outcome: 'overruled', error: { code: 'CONFLICT' } })
  expect(lb.state(web1)).toBe('maint')
})

test('the last ticket lists an undo that only a look has shown', async () => {
  const { clock, lb } = rig()
  const told: Ticket[] = []
  const onTicket = (ticket: Ticket): void => void told.push(json(ticket))
  const run = startDrain(lb, web1, { clock, seal: false, onTicket })
  await clock.runUntil(run.done)
  loseAnswer(lb, clock, isOpening, 1)
  const undone = await clock.runUntil(run.restore(), 60_000)
  expect([only(undone).outcome, lb.state(web1)]).toEqual(['restored', 'ready'])
  await clock.runUntil(run.release())
  lb.setBehind(web1, 'drain') // by an operator
  const again = await clock.runUntil(restore(anotherObject(lb), told.at(-1)!, { clock }), 60_000)
  expect([only(again).outcome, lb.state(web1)]).toEqual(['overruled', 'drain'])
})

test('a drain goes on when the one whose ticket it took is undone', async () => {
  const { clock, lb } = rig()
  const policy = { clock, seal: false, id: 'deploy', onOverrule: 'reapply' } as const
  const first = startDrain(lb, web1, { ...policy, onTicket: () => undefined })
  await clock.runUntil(first.done)
  const second = startDrain(lb, web1, { ...policy, onTicket: () => undefined })
  await clock.runUntil(second.done)
  const undone = await clock.runUntil(first.restore(), 60_000)
  expect([only(undone).outcome, lb.state(web1)]).toEqual(['overruled', 'drain'])
  lb.setBehind(web1, 'ready')
  await clock.advance(5_000)
  expect(lb.state(web1)).toBe('drain')
})

test('a member that a drain has left drained is so after the undo of the next', async () => {
  const { clock, lb } = rig()
  const watched = watch(lb, web1, { clock })
  const first = startDrain(lb, web1, { clock, seal: false })
  await clock.runUntil(first.done)
  await clock.runUntil(first.release())
  const second = startDrain(lb, web1, { clock, seal: false })
  await clock.runUntil(second.done)
  const undone = await clock.runUntil(second.restore())
  expect([only(undone).outcome, lb.state(web1)]).toEqual(['restored', 'drain'])
  await watched.close()
})
