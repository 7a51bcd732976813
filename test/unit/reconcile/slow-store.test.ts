/** A reconciler whose ticket store takes longer than an end waits for it, or lists nothing. */
import { expect, test } from 'vitest'
import type { TicketStore } from 'drainable'
import { bench, desired, web } from './set-up.js'

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
