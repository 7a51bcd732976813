/** A drain leaves its ticket. Once `ready()` has opened all its members, nothing is left to undo, and the ticket goes. */
import { describe, expect, test } from 'vitest'
import { drain, findOrphans, ready, restore, resumeDrain, startDrain, type Ticket } from 'drainable'
import { plainStore } from '../../tickets/set-up.js'
import { anotherObject, rig } from '../rig.js'
import { only, web1, web2 } from '../set-up.js'

function stage() {
  const { clock, lb } = rig()
  const map = new Map<string, unknown>()
  const tickets = plainStore(map)
  return { clock, lb, map, tickets, ids: () => [...map.keys()].filter((key) => /^job/.test(key)) }
}

describe('the ticket of a drain', () => {
  test('goes when its member was made ready', async () => {
    const { clock, lb, tickets, ids } = stage()
    await clock.runUntil(drain(lb, web1, { clock, tickets, id: 'job' }))
    expect(ids()).toEqual(['job'])
    await clock.runUntil(ready(lb, web1, { clock }))
    expect(ids()).toEqual([])
    lb.setBehind(web1, 'maint')
    expect(await findOrphans(tickets, anotherObject(lb), { clock })).toEqual([])
  })

  test('goes when the last of its members was made ready', async () => {
    const { clock, lb, tickets, ids } = stage()
    await clock.runUntil(drain(lb, [web1, web2], { clock, tickets, id: 'job', keepReady: 0 }))
    await clock.runUntil(ready(lb, web1, { clock }))
    expect(ids()).toEqual(['job'])
    await clock.runUntil(ready(lb, web2, { clock }))
    expect(ids()).toEqual([])
  })

  test('is written to its end when ready() of a part resolves', async () => {
    const { clock, lb, tickets } = stage()
    let writing = 0
    const slow = {
      ...tickets,
      set: async (key: string, value: unknown) => {
        writing += 1
        await new Promise<void>((done) => clock.setTimeout(done, 1_500))
        await tickets.set(key, value)
        writing -= 1
      },
    }
    const wish = { clock, tickets: slow, id: 'job', keepReady: 0 }
    await clock.runUntil(drain(lb, [web1, web2], wish))
    expect(writing).toBe(0)
    await clock.runUntil(ready(lb, web1, { clock }))
    expect(writing).toBe(0)
  })

  test('goes when ready() ends a drain that still holds', async () => {
    const { clock, lb, tickets, ids } = stage()
    await using run = startDrain(lb, web1, { clock, tickets, id: 'job' })
    await clock.runUntil(run.done)
    await clock.runUntil(ready(lb, web1, { clock }))
    await clock.advance(1_000)
    expect(ids()).toEqual([])
  })

  test('goes when ready() ends a drain that goes on with it', async () => {
    const { clock, lb, map, tickets, ids } = stage()
    await clock.runUntil(drain(lb, web1, { clock, tickets, id: 'job' }))
    await using run = resumeDrain(lb, map.get('job') as Ticket, { clock, tickets })
    await clock.runUntil(run.done)
    await clock.runUntil(ready(lb, web1, { clock }))
    await clock.advance(1_000)
    expect(ids()).toEqual([])
  })

  test('stays when its member could not be opened', async () => {
    const { clock, lb, tickets, ids } = stage()
    await clock.runUntil(drain(lb, web1, { clock, tickets, id: 'job' }))
    lb.setHealth(web1, 'down')
    const failed = ready(lb, web1, { clock, waitHealthy: '5s' })
    await expect(clock.runUntil(failed)).rejects.toMatchObject({ code: 'HEALTH_TIMEOUT' })
    expect(ids()).toEqual(['job'])
  })

  test('stays when another drain of this process holds under it', async () => {
    const { clock, lb, tickets, ids } = stage()
    await clock.runUntil(drain(lb, web1, { clock, tickets, id: 'job-1' }))
    await using held = startDrain(lb, web2, { clock, tickets, id: 'job-2', keepReady: 0 })
    await clock.runUntil(held.done)
    await clock.runUntil(ready(lb, web1, { clock }))
    expect(ids()).toEqual(['job-2'])
  })

  test('of the next drain of its member is another one', async () => {
    const { clock, lb, tickets, ids } = stage()
    for (const id of ['job-1', 'job-2']) {
      await clock.runUntil(drain(lb, web1, { clock, tickets, id }))
      expect(ids()).toEqual([id])
      await clock.runUntil(ready(lb, web1, { clock }))
      expect(ids()).toEqual([])
    }
  })
})

test('a ticket is restored where ready() had opened its member half of the way', async () => {
  const { clock, lb, map, tickets } = stage()
  await clock.runUntil(drain(lb, web1, { clock, tickets, id: 'job' }))
  const ticket = map.get('job') as Ticket
  lb.setHealth(web1, 'unknown')
  const given = new AbortController()
  const opening = ready(lb, web1, { clock, signal: given.signal })
  await clock.advance(100)
  expect(lb.state(web1)).toBe('drain') // it waits for a check
  const restoring = restore(lb, ticket, { clock, tickets })
  await clock.advance(100)
  given.abort(new Error('given up'))
  await expect(opening).rejects.toThrow('given up')
  lb.setHealth(web1, 'up')
  expect(only(await clock.runUntil(restoring)).outcome).toBe('restored')
  expect(lb.state(web1)).toBe('ready')
})
