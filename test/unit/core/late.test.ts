import { describe, expect, test } from 'vitest'
import { drain, ready, restore, startDrain, type Ticket, type TicketStore } from 'drainable'
import { only, setUp, thrown, web1, web2 } from './set-up.js'

const NEVER = new Promise<never>(() => undefined)

function applies(lb: { requests: readonly { verb: string }[] }): number {
  return lb.requests.filter((call) => call.verb === 'apply').length
}

describe('nothing is sent after the end', () => {
  test('an abort while the store is asked for an earlier ticket', async () => {
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

  test('a release before the first look came back', async () => {
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

describe('done always resolves', () => {
  test('with a store that stops answering after the hold', async () => {
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

  test('at an abort too', async () => {
    const { clock, lb } = setUp()
    const stop = new AbortController()
    const caught = thrown(drain(lb, web1, { clock, signal: stop.signal, onTicket: () => NEVER }))
    await clock.advance(2_000)
    stop.abort('enough')
    expect(await clock.runUntil(caught, 10_000)).toBe('enough')
    expect(applies(lb)).toBe(0)
  })

  test('where a ticket fails while one member is held and another is not', async () => {
    const { clock, lb } = setUp({ pools: { web: ['web1', 'web2', 'web3'] } })
    lb.setBehind({ pool: 'web', member: 'web3' }, 'drain')
    let fail = false
    const run = startDrain(lb, [web1, web2], {
      clock,
      timeout: Infinity,
      onMinimum: 'wait',
      seal: true,
      onTicket: () => {
        if (fail) throw new Error('disk full')
      },
    })
    await clock.advance(500)
    expect([lb.state(web1), lb.state(web2)]).toEqual(['drain', 'ready'])
    fail = true
    // The seal of web1 and the first hold of web2 go out in one call.
    const observe = lb.observe.bind(lb)
    const until = clock.now() + 700
    lb.observe = async (refs, ctx) => {
      if (clock.now() > until) lb.setBehind({ pool: 'web', member: 'web3' }, 'ready')
      return observe(refs, ctx)
    }
    const report = await clock.runUntil(run.done, 600_000)
    expect(report.members.map((member) => member.outcome)).toEqual(['idle', 'refused'])
    await run.release()
  })
})

describe('an undo leaves no ticket', () => {
  test('a restore in mid-drain', async () => {
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

describe('ready', () => {
  test('does not fight for ever with somebody who sets it back', async () => {
    const { clock, lb } = setUp({ latency: 1 })
    lb.setBehind(web1, 'drain')
    const apply = lb.apply.bind(lb)
    lb.apply = async (changes, ctx) => {
      const results = await apply(changes, ctx)
      lb.setBehind(web1, 'drain')
      return results
    }
    const error = await clock.runUntil(thrown(ready(lb, web1, { clock })), 120_000)
    expect(error).toMatchObject({ code: 'CONFLICT' })
    expect((error as Error).message).toContain('another client')
    expect(applies(lb)).toBeLessThan(10)
    expect(clock.pending).toBe(0)
  })

  test("the caller's own check is told to stop when ready() is over", async () => {
    const { clock, lb } = setUp()
    lb.setHealth(web1, 'unchecked')
    lb.setBehind(web1, 'drain')
    let given: AbortSignal | undefined
    const caught = thrown(
      ready(lb, web1, { clock, waitHealthy: (_, signal) => ((given = signal), NEVER) }),
    )
    await clock.advance(500)
    lb.setBehind(web1, 'gone')
    expect(await clock.runUntil(caught)).toMatchObject({ code: 'MEMBER_GONE' })
    expect(given?.aborted).toBe(true)
  })

  test('a check that throws at once is a failed check', async () => {
    const { clock, lb } = setUp()
    lb.setHealth(web1, 'unchecked')
    const waitHealthy = (): never => {
      throw new Error('no route')
    }
    expect(await clock.runUntil(thrown(ready(lb, web1, { clock, waitHealthy })))).toMatchObject({
      code: 'HEALTH_TIMEOUT',
    })
  })
})

describe('the lane', () => {
  test('a failed describe that an abort gave up is not remembered', async () => {
    const { clock, lb } = setUp({ latency: 100 })
    lb.failNext('throw', { verb: 'describe' })
    const stop = new AbortController()
    const caught = thrown(drain(lb, web1, { clock, signal: stop.signal }))
    await clock.advance(10)
    stop.abort('enough')
    expect(await caught).toBe('enough')
    await clock.advance(1_000)
    expect((await clock.runUntil(drain(lb, web1, { clock }))).outcome).toBe('idle')
  })

  test('a look nobody waits for any more is given up', async () => {
    const { clock, lb } = setUp()
    lb.occupy(web1)
    const stop = new AbortController()
    const caught = thrown(drain(lb, web1, { clock, signal: stop.signal }))
    await clock.advance(2_000)
    lb.failNext('hang', { verb: 'observe' })
    await clock.advance(2_000)
    stop.abort('enough')
    expect(await caught).toBe('enough')
    await clock.advance(0)
    expect(clock.pending).toBe(0)
  })

  test('a slow look under way at the deadline is not unreachable', async () => {
    const { clock, lb } = setUp({ latency: 600 })
    lb.occupy(web1)
    const outcomes = new Set<string>()
    for (let ms = 20_000; ms < 24_000; ms += 137) {
      const run = startDrain(lb, web1, { clock, timeout: ms })
      outcomes.add((await clock.runUntil(run.done)).outcome)
      await run.release()
      await clock.advance(5_000)
    }
    expect([...outcomes]).toEqual(['timeout'])
  })
})

test('an id that still holds another member is not written over', async () => {
  const { clock, lb } = setUp({ pools: { web: ['web1', 'web2', 'web3', 'web4'] } })
  const map = new Map<string, unknown>()
  const tickets: TicketStore = {
    get: async (key) => map.get(key),
    set: async (key, value) => map.set(key, value),
    delete: async (key) => map.delete(key),
  }
  await clock.runUntil(drain(lb, web1, { clock, tickets, id: 'deploy' }))
  const error = await clock.runUntil(thrown(drain(lb, web2, { clock, tickets, id: 'deploy' })))
  expect(error).toMatchObject({ code: 'TICKET_INVALID' })
  expect((error as Error).message).toContain('web/web1')
  expect((map.get('deploy') as Ticket).members[0]!.ref).toEqual(web1)
  await clock.runUntil(ready(lb, web1, { clock }))
  expect(
    only(await clock.runUntil(drain(lb, web2, { clock, tickets, id: 'deploy' }))).outcome,
  ).toBe('idle')
})

test('a frozen change is given up two seconds after its drain has gone', async () => {
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
