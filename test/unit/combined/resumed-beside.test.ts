import { expect, test } from 'vitest'
import { resumeDrain, startDrain, type Ticket } from 'drainable'
import { a1, b1, bare, setUp } from './set-up.js'

test('a resume opens what its drain has held since that ticket was kept', async () => {
  const { clock, a, b, all } = setUp()
  const end = a.occupy(bare)
  b.disconnect()
  const policy = { clock, id: 'd1', timeout: '1m', onUnreachable: 'wait' } as const
  const tickets: Ticket[] = []
  startDrain(all, [a1, b1], { ...policy, onTicket: (one) => void tickets.push(one) })
  await clock.advance(2_000)
  const early = JSON.parse(JSON.stringify(tickets.at(-1))) as Ticket
  expect(early.members.map(({ ref }) => ref.balancer)).toEqual(['a'])
  b.connect()
  await clock.advance(2_000)
  expect(b.state(bare)).not.toBe('ready')
  const resumed = resumeDrain(all, early, { clock, onTicket: () => undefined })
  await clock.advance(1_000)
  end()
  await clock.runUntil(resumed.done)
  const report = await clock.runUntil(resumed.restore())
  expect(report.outcome).toBe('restored')
  expect([a.state(bare), b.state(bare)]).toEqual(['ready', 'ready'])
  await all.close()
})

test('a drain that a resume goes on with waits for no balancer any more', async () => {
  const { clock, a, b, all } = setUp()
  b.disconnect()
  const policy = { clock, id: 'd1', timeout: '1m', onUnreachable: 'wait' } as const
  const tickets: Ticket[] = []
  const first = startDrain(all, [a1, b1], { ...policy, onTicket: (one) => void tickets.push(one) })
  await clock.advance(2_000)
  const resumed = resumeDrain(all, tickets.at(-1)!, { clock, onTicket: () => undefined })
  let isOver = false
  void first.done.then(() => (isOver = true))
  await clock.advance(3_000)
  expect(isOver).toBe(true)
  expect(first.report().members.map(({ ref }) => ref)).toEqual([a1])
  b.connect()
  expect((await clock.runUntil(resumed.done)).outcome).toBe('idle')
  expect((await clock.runUntil(resumed.restore())).outcome).toBe('restored')
  expect([a.state(bare), b.state(bare)]).toEqual(['ready', 'ready'])
  await all.close()
})
