/** A reconciler whose ticket store takes longer than an end waits for it, or lists nothing. */
import { describe, expect, test } from 'vitest'
import type { TicketStore } from 'drainable'
import { bench, desired, slowBench, slowStore, web, type Bench } from './set-up.js'

test('a ticket written late does not outlive its member', async () => {
  const world = bench('web1', 'web2', 'web3')
  const { clock, lb, tickets } = world
  let delay = 0
  const slow: TicketStore = {
    ...tickets,
    set: async (key, value) => {
      if (delay > 0) await new Promise<void>((resolve) => void clock.setTimeout(resolve, delay))
      await tickets.set(key, value)
    },
  }
  await using loop = world.start({ tickets: slow })
  loop.set(desired({ web1: 'drain', web2: 'serve', web3: 'serve' }))
  await clock.runUntil(loop.settled())
  const kept = (): readonly string[] =>
    [...tickets.kept.keys()].filter((key) => key.startsWith('reconcile:'))
  expect(kept()).toHaveLength(1)
  delay = 10_000
  lb.setBehind(web('web1'), 'ready') // it is put back, which is written
  await clock.advance(1_000)
  lb.setBehind(web('web1'), 'gone')
  loop.set(desired({ web2: 'serve', web3: 'serve' }))
  await clock.advance(60_000)
  expect(kept()).toEqual([])
})

test('sets with ever new deadlines keep no first hold from being sent', async () => {
  const world = slowBench(5, 'web1', 'web2')
  const loop = world.start({ tickets: slowStore(world.clock, 150) })
  for (let left = 600_000; world.sent().length === 0 && left > 590_000; left -= 250) {
    loop.set(desired({ web1: 'drain', web2: 'serve' }), { timeout: left })
    await world.clock.advance(250)
  }
  expect(world.sent()).toEqual(['hold web1 drain'])
  await world.clock.runUntil(loop.close())
})

test('a drain whose ticket came too late for its deadline is tried again', async () => {
  const world = bench('web1', 'web2')
  const { clock, tickets } = world
  const set = tickets.set.bind(tickets)
  tickets.set = async (key, value) => {
    tickets.set = set
    await new Promise<void>((resolve) => void clock.setTimeout(resolve, 10_000))
    await set(key, value)
  }
  await using loop = world.start({ timeout: '3s', onOverrule: 'fail' })
  loop.set(desired({ web1: 'drain', web2: 'serve' }))
  await clock.advance(60_000)
  expect(world.states('web1')).toEqual(['maint'])
})

describe('close() while an addition is being written', () => {
  const fresh = { pool: 'web', member: 'n', address: '10.0.0.9', port: 80, state: 'serve' } as const

  /** A store that takes `ms` for each write, and says when one ended last. */
  function slowly(world: Bench, ms: number) {
    const wrote = { at: NaN }
    const set: TicketStore['set'] = async (key, value) => {
      await new Promise<void>((resolve) => void world.clock.setTimeout(resolve, ms))
      await world.tickets.set(key, value)
      wrote.at = world.clock.now()
    }
    return { wrote, tickets: { ...world.tickets, set } }
  }

  test('waits for the write, sends nothing, and lists nothing that was not sent', async () => {
    const world = bench('web1')
    const { wrote, tickets } = slowly(world, 3_000)
    const loop = world.start({ tickets })
    loop.set([...desired({ web1: 'serve' }), fresh])
    await world.clock.advance(1_000)
    await world.clock.runUntil(loop.close())
    expect(world.clock.now()).toBeGreaterThanOrEqual(wrote.at)
    expect(world.sent()).toEqual([])
    expect([...world.tickets.kept]).toEqual([])
    const closed = wrote.at
    await world.clock.advance(60_000)
    expect(wrote.at).toBe(closed)
    expect(world.clock.pending).toBe(0)
  })

  test('waits for the answer of one that was sent, and keeps it', async () => {
    const world = slowBench(500, 'web1')
    const loop = world.start()
    loop.set([...desired({ web1: 'serve' }), fresh])
    await world.clock.runUntil(
      (async () => {
        while (world.sent().length === 0) await world.clock.advance(10)
      })(),
    )
    await world.clock.runUntil(loop.close())
    expect([...world.tickets.kept.values()]).toMatchObject([
      { added: [['10.0.0.9', 80, null, null, expect.any(String)]] },
    ])
    expect(world.clock.pending).toBe(0)
  })
})

test('a store that can list no tickets is refused at the start', () => {
  const world = bench('web1')
  const tickets = { ...world.tickets, keys: undefined } as never
  expect(() => world.start({ tickets })).toThrow(
    expect.objectContaining({
      code: 'UNSUPPORTED',
      message: expect.stringContaining('the ticket store lists nothing: give it keys()') as string,
    }),
  )
})
