import { describe, expect, test } from 'vitest'
import { drain, DrainableError, startDrain, type TicketStore } from 'drainable'
import { setUp, thrown, web1, web2 } from '../set-up.js'

const NEVER = new Promise<never>(() => undefined)

function applies(lb: { requests: readonly { verb: string }[] }): number {
  return lb.requests.filter((call) => call.verb === 'apply').length
}

describe('done always resolves', () => {
  test('after a store stopped answering after the hold', async () => {
    const { clock, lb } = setUp()
    lb.occupy(web1)
    let hang = false
    const run = startDrain(lb, web1, {
      clock,
      timeout: '5s',
      onTicket: () => (hang ? NEVER : undefined),
    })
    await clock.advance(2_000)
    hang = true
    expect((await clock.runUntil(run.done, 60_000)).outcome).toBe('timeout')
    await clock.runUntil(run.release())
  })

  test('after an abort, too', async () => {
    const { clock, lb } = setUp()
    const stop = new AbortController()
    const caught = thrown(drain(lb, web1, { clock, signal: stop.signal, onTicket: () => NEVER }))
    await clock.advance(2_000)
    stop.abort('enough')
    expect(await clock.runUntil(caught, 10_000)).toBe('enough')
    expect(applies(lb)).toBe(0)
  })

  test('after a ticket fails with one member held and another not', async () => {
    const { clock, lb } = setUp({ pools: { web: ['web1', 'web2', 'web3'] } })
    const apply = lb.apply.bind(lb)
    lb.apply = async (changes, ctx) => {
      const open = changes.filter(({ ref }) => ref.member === 'web1')
      const taken = await apply(open, ctx)
      const error = new DrainableError('CONFLICT', 'not at present', { retryable: true })
      return changes.map(
        ({ ref }) =>
          taken.find((one) => one.ref.member === ref.member) ?? { ref, status: 'rejected', error },
      )
    }
    let fail = false
    const run = startDrain(lb, [web1, web2], {
      clock,
      timeout: Infinity,
      seal: true,
      onTicket: () => {
        if (fail) throw new Error('disk full')
      },
    })
    await clock.advance(500)
    expect([lb.state(web1), lb.state(web2)]).toEqual(['drain', 'ready'])
    fail = true
    const report = await clock.runUntil(run.done, 600_000)
    expect(report.members.map((member) => member.outcome)).toEqual(['idle', 'refused'])
    await run.release()
  })
})

describe('an undo removes the ticket', () => {
  test('on a restore in mid-drain', async () => {
    const { clock, lb } = setUp()
    lb.occupy(web1)
    const map = new Map<string, unknown>()
    const slow = (): Promise<void> => new Promise((resolve) => clock.setTimeout(resolve, 20))
    const tickets: TicketStore = {
      get: async (key) => map.get(key),
      set: async (key, value) => {
        await slow()
        map.set(key, value)
      },
      delete: async (key) => map.delete(key),
    }
    const run = startDrain(lb, web1, { clock, tickets, id: 'one' })
    await clock.advance(2_000)
    await clock.runUntil(run.restore())
    await clock.advance(2_000)
    expect(lb.state(web1)).toBe('ready')
    expect(map.has('one')).toBe(false)
    expect((await run.done).outcome).toBe('aborted')
  })
})
