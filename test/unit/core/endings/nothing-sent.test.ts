import { describe, expect, test } from 'vitest'
import { drain, ready, restore, startDrain, type Ticket, type TicketStore } from 'drainable'
import { setUp, thrown, web1, web2 } from '../set-up.js'

function applies(lb: { requests: readonly { verb: string }[] }): number {
  return lb.requests.filter((call) => call.verb === 'apply').length
}

describe('nothing is sent after the end', () => {
  test('by a drain that was aborted while the store was asked for a ticket', async () => {
    const { clock, lb } = setUp()
    let answer = (): void => undefined
    const tickets: TicketStore = {
      get: () => new Promise((resolve) => (answer = () => resolve(undefined))),
      set: async () => true,
      delete: async () => true,
    }
    const stop = new AbortController()
    const caught = thrown(drain(lb, web1, { clock, tickets, id: 'x', signal: stop.signal }))
    await clock.advance(100)
    stop.abort('enough')
    await clock.advance(0)
    answer()
    expect(await clock.runUntil(caught)).toBe('enough')
    await clock.advance(10_000)
    expect(applies(lb)).toBe(0)
    expect(clock.pending).toBe(0)
  })

  test('by a drain that was released during its first look', async () => {
    const { clock, lb } = setUp({ latency: 50 })
    const run = startDrain(lb, web1, { clock })
    await clock.advance(10)
    await clock.runUntil(run.release())
    await clock.advance(10_000)
    expect((await run.done).outcome).toBe('aborted')
    expect(applies(lb)).toBe(0)
  })

  test('ready() takes back a hold that waits for the ticket of several', async () => {
    const { clock, lb } = setUp({ pools: { web: ['web1', 'web2', 'web3', 'web4'] } })
    let keep = (): void => undefined
    const run = startDrain(lb, [web1, web2], {
      clock,
      timeout: '1m',
      onTicket: () => new Promise<void>((resolve) => (keep = resolve)),
    })
    await clock.advance(1_000)
    await clock.runUntil(ready(lb, web1, { clock }))
    keep()
    await clock.advance(1_000)
    expect(lb.state(web1)).toBe('ready')
    expect(lb.state(web2)).toBe('drain')
    keep()
    await clock.runUntil(run.release())
  })

  test('ready() waits for a hold that is under way', async () => {
    const { clock, lb } = setUp({ latency: 50 })
    const apply = lb.apply.bind(lb)
    lb.apply = async (changes, ctx) => {
      if (changes.some((change) => change.kind === 'hold'))
        await new Promise<void>((resolve) => clock.setTimeout(resolve, 500))
      return apply(changes, ctx)
    }
    const run = startDrain(lb, web1, { clock })
    await clock.advance(300)
    await clock.runUntil(ready(lb, web1, { clock }))
    await clock.advance(3_000)
    expect(lb.state(web1)).toBe('ready')
    await run.release()
  })
})

test('a hold that is answered after the abort can be undone by its ticket', async () => {
  const { clock, lb } = setUp({ latency: 50 })
  const stop = new AbortController()
  const kept: Ticket[] = []
  const onTicket = (ticket: Ticket): void => void kept.push(ticket)
  const caught = thrown(drain(lb, web1, { clock, signal: stop.signal, onTicket }))
  await clock.advance(120) // described, looked at, and the hold is under way
  expect(applies(lb)).toBe(1)
  stop.abort('enough')
  expect(await caught).toBe('enough')
  await clock.advance(1_000)
  expect(lb.state(web1)).toBe('drain')
  await clock.runUntil(restore(lb, kept.at(-1)!, { clock }))
  expect(lb.state(web1)).toBe('ready')
})

test('a frozen change is given up two seconds after its drain has ended', async () => {
  const { clock, lb } = setUp()
  lb.failNext('hang', { verb: 'apply' })
  const stop = new AbortController()
  const caught = thrown(drain(lb, web1, { clock, signal: stop.signal }))
  await clock.advance(1_000)
  stop.abort(new Error('enough'))
  expect(await caught).toMatchObject({ message: 'enough' })
  await clock.advance(2_100)
  expect(clock.pending).toBe(0)
})
