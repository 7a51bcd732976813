/** Several drains of one process under one ticket, each of other members too: what is kept of it when one of them is undone. */
import { expect, test } from 'vitest'
import { restore, startDrain, type Ticket } from 'drainable'
import { anotherObject, json, memoryStore, rig } from '../rig.js'
import { web1, web2 } from '../set-up.js'

/** A drain of one member, and a later one of two under the same id, both held. */
async function twoDrains() {
  const { clock, lb } = rig()
  const { map, ...tickets } = memoryStore()
  const options = { clock, tickets, id: 'job' }
  const one = startDrain(lb, web1, options)
  await clock.runUntil(one.done)
  const both = startDrain(lb, [web1, web2], options)
  await clock.runUntil(both.done)
  const kept = (): readonly string[] | undefined =>
    (map.get('job') as Ticket | undefined)?.members.map(({ ref }) => ref.member)
  return { clock, lb, one, both, kept, tickets }
}

test('of two drains under one id the later one has the ticket, and the hold', async () => {
  const { clock, lb, one, both, kept } = await twoDrains()
  await clock.runUntil(one.restore())
  await clock.advance(60_000)
  expect([lb.state(web1), lb.state(web2), kept()]).toEqual(['maint', 'maint', ['web1', 'web2']])
  await clock.runUntil(both.restore())
  expect([lb.state(web1), lb.state(web2), kept()]).toEqual(['ready', 'ready', undefined])
})

test('an undo by an older ticket undoes what the store has under its id', async () => {
  const { clock, lb, one, both, kept, tickets } = await twoDrains()
  const older = json(await one.ticket)
  await clock.runUntil(restore(lb, older, { clock, tickets }))
  await clock.advance(60_000)
  expect([lb.state(web1), lb.state(web2), kept()]).toEqual(['ready', 'ready', undefined])
  await Promise.all([one.release(), both.release()])
})

test('a ticket that nothing was changed under can be resumed', async () => {
  const { clock, lb } = rig({ pools: { web: ['web1', 'web2'] } })
  const { map, ...tickets } = memoryStore()
  const first = startDrain(lb, web1, { clock, tickets, id: 'job' })
  await clock.runUntil(first.done)
  const older = json(await first.ticket)
  await clock.runUntil(first.release())
  const late = anotherObject(lb)
  const observe = late.observe.bind(late)
  let go = (): void => undefined
  const gate = new Promise<void>((resolve) => (go = resolve))
  late.observe = async (...asked) => {
    await gate
    return observe(...asked)
  }
  // It wants both members, of which only one may go: the floor refuses.
  const options = { clock, tickets, id: 'job', keepReady: 2, onMinimum: 'wait' } as const
  const both = startDrain(late, [web1, web2], { ...options, timeout: '10m' })
  await clock.advance(10)
  await clock.runUntil(restore(lb, older, { clock, tickets }))
  expect(map.has('job')).toBe(false)
  go()
  await clock.advance(5_000)
  expect(both.report().members.map(({ outcome }) => outcome)).toEqual(['aborted', 'aborted'])
  await clock.runUntil(both.release())
  expect([lb.state(web1), lb.state(web2), map.has('job')]).toEqual(['ready', 'ready', true])
})
