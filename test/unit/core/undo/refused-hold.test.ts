import { expect, test } from 'vitest'
import { DrainableError, restore, startDrain, type Ticket } from 'drainable'
import { only, web1 } from '../set-up.js'
import { isHold, json, rig } from '../rig.js'

test('a refused hold is not ours if another client set more meanwhile', async () => {
  const { clock, lb } = rig()
  const apply = lb.apply.bind(lb)
  lb.apply = (changes, ctx) => {
    if (!changes.some(isHold)) return apply(changes, ctx)
    lb.setBehind(web1, 'maint')
    const error = new DrainableError('CONFLICT', 'another client changes it', { retryable: true })
    return Promise.resolve(changes.map(({ ref }) => ({ ref, status: 'rejected' as const, error })))
  }
  const kept: Ticket[] = []
  const onTicket = (ticket: Ticket): void => void kept.push(json(ticket))
  const run = startDrain(lb, web1, { clock, seal: false, onTicket })
  await clock.runUntil(run.done)
  await run.release()
  lb.setBehind(web1, 'drain')
  const report = await clock.runUntil(restore(lb, kept.at(-1)!, { clock }), 60_000)
  // Nothing of ours was ever there, so nothing is left to undo.
  expect([only(report).outcome, lb.state(web1)]).toEqual(['restored', 'drain'])
})

test('a refused hold is not ours if an operator set the same afterwards', async () => {
  const { clock, lb } = rig()
  lb.occupy(web1)
  const apply = lb.apply.bind(lb)
  let refused = false
  lb.apply = (changes, ctx) => {
    if (refused || !changes.some(isHold)) return apply(changes, ctx)
    refused = true
    clock.setTimeout(() => lb.setBehind(web1, 'drain'), 3)
    const error = new DrainableError('CONFLICT', 'not at present', { retryable: true })
    return Promise.resolve(changes.map(({ ref }) => ({ ref, status: 'rejected' as const, error })))
  }
  const run = startDrain(lb, web1, { clock, seal: false, timeout: '1m' })
  await clock.advance(200)
  const report = await clock.runUntil(run.restore(), 60_000)
  expect([only(report).outcome, lb.state(web1)]).toEqual(['overruled', 'drain'])
  await run.release()
})
