import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import {
  DrainableError,
  drain,
  resumeDrain,
  restore,
  startDrain,
  type DrainEvent,
  type Ticket,
} from 'drainable'
import type { FakeClock } from 'drainable/testing'
import { changesOf, only, setUp, thrown, web1, web2 } from '../set-up.js'
import { stepped } from '../stepped.js'

function json<T>(value: T): T {
  return JSON.parse(JSON.stringify(value)) as T
}

let wall = { base: 0, clock: undefined as FakeClock | undefined }
beforeEach(() => {
  wall = { base: Date.UTC(2026, 0, 1), clock: undefined }
  vi.spyOn(Date, 'now').mockImplementation(() => wall.base + (wall.clock?.now() ?? 0))
})
afterEach(() => vi.restoreAllMocks())

async function steps(
  lb: ReturnType<typeof setUp>['lb'],
  clock: FakeClock,
  from: Ticket,
  most = 400,
): ReturnType<typeof stepped> {
  let step = await stepped(lb, json(from), { clock })
  for (let i = 0; i < most && step.outcome === undefined; i += 1) {
    await clock.advance(Math.max(1, step.againIn))
    step = await stepped(lb, json(step.ticket), { clock })
  }
  return step
}

describe('stepDrain', () => {
  test('keeps the floor over the members of one step', async () => {
    const { clock, lb } = setUp()
    wall.clock = clock
    expect(await thrown(stepped(lb, { target: { pool: 'web' } }, { clock }))).toMatchObject({
      code: 'POOL_AT_MINIMUM',
    })
    let step = await stepped(
      lb,
      { target: { pool: 'web' }, policy: { onMinimum: 'wait', timeout: '10s' } },
      { clock },
    )
    step = await steps(lb, clock, step.ticket)
    const states = ['web1', 'web2', 'web3'].map((member) => lb.state({ pool: 'web', member }))
    expect(states.filter((state) => state === 'ready')).toHaveLength(3) // all of them, or none
    expect(step.outcome).toBe('refused')
  })

  test('asks for its place again if a drain crashed over its first hold', async () => {
    const { clock, lb } = setUp({ pools: { web: ['web1', 'web2'] } })
    wall.clock = clock
    const kept: Ticket[] = []
    const policy = { onMinimum: 'wait', timeout: '1m' } as const
    const onTicket = (ticket: Ticket): void => void kept.push(json(ticket))
    const crashed = startDrain(lb, web1, { clock, ...policy, onTicket })
    await clock.advance(0)
    await crashed.release()
    lb.setBehind(web1, 'ready') // it was never sent
    await using other = startDrain(lb, web2, { clock, timeout: '1m' })
    await clock.runUntil(other.inForce)
    expect(changesOf(kept[0]?.members[0])).toEqual(['drain:intended'])
    const step = await steps(lb, clock, kept[0]!, 5)
    expect([lb.state(web1), step.outcome]).toEqual(['ready', undefined])
    expect(step.why.map(({ code }) => code)).toContain('pool-at-minimum')
    await clock.runUntil(other.restore())
    const last = await steps(lb, clock, step.ticket)
    expect([last.outcome, lb.state(web1)]).toEqual(['idle', 'maint'])
  })

  test('continues when the wall clock went back', async () => {
    const { clock, lb } = setUp()
    wall.clock = clock
    let step = await stepped(lb, { target: web1, policy: { timeout: '3h' } }, { clock })
    step = await stepped(lb, json(step.ticket), { clock })
    expect(lb.state(web1)).toBe('drain')
    wall.base -= 3_600_000
    step = await steps(lb, clock, step.ticket, 60)
    expect(step.outcome).toBe('idle')
  })

  test('does not take the hold of a crashed step for one found in place', async () => {
    const { clock, lb } = setUp()
    wall.clock = clock
    const first = await stepped(lb, { target: web1 }, { clock })
    await stepped(lb, json(first.ticket), { clock }) // its ticket is lost
    const again = await stepped(lb, json(first.ticket), { clock })
    const report = await clock.runUntil(restore(lb, json(again.ticket), { clock }))
    const undone = lb.state(web1) === 'ready'
    expect(undone || only(report).error?.code === 'CONFLICT').toBe(true)
  })

  test('does not come back for the proof of one member while another has work', async () => {
    const { clock, lb } = setUp()
    wall.clock = clock
    lb.occupy(web2)
    const policy = { timeout: '1m', settle: '0ms' } as const
    let step = await stepped(lb, { target: [web1, web2], policy }, { clock })
    for (let i = 0; i < 4; i += 1) {
      await clock.advance(Math.max(1, step.againIn))
      step = await stepped(lb, json(step.ticket), { clock })
      expect(step.why.map(({ code }) => code)).toContain('in-flight')
      expect(step.againIn).toBe(500)
    }
  })

  test('leaves an overruled member alone while others go on', async () => {
    const { clock, lb } = setUp()
    wall.clock = clock
    lb.occupy(web2)
    let step = await stepped(lb, { target: [web1, web2], policy: { timeout: '10s' } }, { clock })
    step = await stepped(lb, json(step.ticket), { clock })
    await clock.advance(100)
    step = await stepped(lb, json(step.ticket), { clock })
    lb.setBehind(web1, 'ready')
    step = await steps(lb, clock, step.ticket)
    expect(lb.state(web1)).toBe('ready')
    expect(step.outcome).toBe('overruled')
  })

  test('says an overruled member once, and in each step why', async () => {
    const { clock, lb } = setUp()
    wall.clock = clock
    lb.occupy(web2)
    const heard: string[] = []
    const onEvent = ({ type }: DrainEvent): void => void heard.push(type)
    const start = { target: [web1, web2], policy: { timeout: '10s' } } as const
    let step = await stepped(lb, start, { clock, onEvent })
    for (let i = 0; i < 5; i += 1) {
      if (i === 2) lb.setBehind(web1, 'ready')
      await clock.advance(100)
      step = await stepped(lb, json(step.ticket), { clock, onEvent })
    }
    expect(heard.filter((type) => type === 'overruled')).toHaveLength(1)
    expect(step.why.map(({ code }) => code)).toContain('overruled')
    expect(step.ticket.members[0]?.outcome).toBe('overruled')
  })

  test('does not ask later for a member refused for good', async () => {
    const { clock, lb } = setUp()
    wall.clock = clock
    lb.occupy(web2)
    const apply = lb.apply.bind(lb)
    let asked = 0
    lb.apply = async (changes, ctx) => {
      const error = new DrainableError('FORBIDDEN', 'no right to change it')
      const rejected = changes.filter(({ ref }) => ref.member === web1.member)
      asked += rejected.length
      const others = changes.filter((change) => !rejected.includes(change))
      const { signal } = ctx
      const done = await apply(others, { signal, clock }) // the numbers of its results are other ones
      return [...rejected.map(({ ref }) => ({ ref, status: 'rejected' as const, error })), ...done]
    }
    const start = { target: [web1, web2], policy: { timeout: '10s' } } as const
    let step = await stepped(lb, start, { clock })
    for (let i = 0; i < 5; i += 1) {
      await clock.advance(100)
      step = await stepped(lb, json(step.ticket), { clock })
    }
    expect(asked).toBe(1)
    expect(step.ticket.members[0]?.outcome).toBe('refused')
  })

  test('does not send a waiting removal while nothing can be read', async () => {
    const { clock, lb } = setUp()
    const apply = lb.apply.bind(lb)
    const error = new DrainableError('CONFLICT', 'still has connections')
    let first = true
    lb.apply = (changes, ctx) => {
      if (first && changes[0]?.kind === 'remove') {
        first = false
        lb.failNext('reject', { verb: 'apply', error })
        lb.failNext('throw', { verb: 'observe', times: 20 })
      }
      return apply(changes, ctx)
    }
    const failed: number[] = []
    const observe = lb.observe.bind(lb)
    lb.observe = (refs, ctx) => {
      const look = observe(refs, ctx)
      look.catch(() => failed.push(clock.now()))
      return look
    }
    const run = startDrain(lb, web1, { clock, until: 'removed', timeout: '30s' })
    expect((await clock.runUntil(run.done)).outcome).toBe('removed')
    const removals = lb.requests.filter((call) => call.changes?.[0]?.kind === 'remove')
    const last = removals.at(-1)!
    const lookBefore = lb.requests
      .slice(0, lb.requests.indexOf(last))
      .findLast((c) => c.verb === 'observe')
    expect(last.at - lookBefore!.at).toBeLessThanOrEqual(20)
    expect(failed).toHaveLength(20)
    expect(last.at).toBeGreaterThan(failed.at(-1)!)
  })
})

describe('resumeDrain', () => {
  test('holds on after idle when resumed from an aborted drain', async () => {
    const { clock, lb } = setUp({ instance: 'lb' })
    wall.clock = clock
    lb.occupy(web1)
    const stop = new AbortController()
    const tickets: Ticket[] = []
    const caught = thrown(
      drain(lb, web1, {
        clock,
        timeout: '10m',
        signal: stop.signal,
        onTicket: (ticket) => void tickets.push(json(ticket)),
      }),
    )
    await clock.advance(2_000)
    stop.abort('SIGTERM')
    await caught
    const other = setUp({ instance: 'lb' })
    wall.clock = other.clock
    wall.base += 60_000
    other.lb.setBehind(web1, 'drain')
    const run = resumeDrain(other.lb, tickets.at(-1)!, { clock: other.clock })
    expect((await other.clock.runUntil(run.done)).outcome).toBe('idle')
    other.lb.reload()
    await other.clock.advance(3_000)
    expect(other.lb.state(web1)).toBe('maint')
    await run.release()
  })

  test("keeps a hold lowered that lacked the caller's word", async () => {
    const { clock, lb } = setUp()
    wall.clock = clock
    const observe = lb.observe.bind(lb)
    lb.observe = async (refs, ctx) => {
      const snapshot = await observe(refs, ctx)
      const readings = snapshot.readings.map((reading) =>
        reading.present ? { ...reading, maint: 'cuts' as const } : reading,
      )
      return { ...snapshot, readings }
    }
    const tickets: Ticket[] = []
    const run = startDrain(lb, web1, {
      clock,
      hold: 'maint',
      ifUnsupported: 'proceed',
      onTicket: (ticket) => void tickets.push(json(ticket)),
    })
    await clock.runUntil(run.done)
    await run.release()
    expect(lb.state(web1)).toBe('drain')
    lb.setBehind(web1, 'ready')
    const frozen = tickets[0]!
    const [member] = frozen.members
    const unsent: Ticket = {
      ...frozen,
      members: [{ ...member!, set: null, wish: 'none', intended: null }],
    }
    const resumed = resumeDrain(lb, unsent, { clock })
    await clock.runUntil(resumed.done)
    expect(lb.state(web1)).toBe('drain')
    await resumed.release()
  })
})

describe('a maint that is not gentle', () => {
  test('of a member without a word of its own is judged by the capability', async () => {
    const { clock, lb } = setUp({ capabilities: { maint: 'cuts' } })
    const observe = lb.observe.bind(lb)
    lb.observe = async (refs, ctx) => {
      const snapshot = await observe(refs, ctx)
      const readings = snapshot.readings.map((reading) =>
        reading.present && reading.ref.member === 'web1'
          ? { ...reading, maint: 'gentle' as const }
          : reading,
      )
      return { ...snapshot, readings }
    }
    const error = await clock.runUntil(thrown(drain(lb, [web1, web2], { clock, hold: 'maint' })))
    expect(error).toMatchObject({ code: 'UNSUPPORTED' })
    expect(lb.state(web2)).toBe('ready')
  })

  test('has cut nothing if the raise was refused', async () => {
    const { clock, lb } = setUp({ capabilities: { maint: 'cuts' } })
    const end = lb.occupy(web1, 3)
    const apply = lb.apply.bind(lb)
    lb.apply = (changes, ctx) => {
      if (changes[0]?.kind === 'hold' && changes[0].to === 'maint')
        lb.failNext('reject', { verb: 'apply' })
      return apply(changes, ctx)
    }
    const run = startDrain(lb, web1, {
      clock,
      timeout: '1m',
      escalateAfter: '5s',
      onTimeout: 'terminate',
    })
    await clock.advance(10_000)
    end()
    const report = await clock.runUntil(run.done)
    expect(only(report)).toMatchObject({ outcome: 'idle', terminated: 0 })
    await run.release()
  })

  test('as a first hold says how many it cut', async () => {
    const { clock, lb } = setUp({ capabilities: { maint: 'cuts' } })
    lb.occupy(web1, 3)
    const run = startDrain(lb, web1, {
      clock,
      hold: 'maint',
      timeout: '20s',
      onTimeout: 'terminate',
    })
    const report = await clock.runUntil(run.done)
    expect(only(report)).toMatchObject({ outcome: 'terminated', terminated: 3 })
    await run.release()
  })
})

test('another incarnation of a process is proved from the start', async () => {
  const { clock, lb } = setUp({ scopes: ['a', 'b'] })
  const end = lb.occupy(web1, 1, 'b') // so that nothing ends before the process is back
  const run = startDrain(lb, web1, { clock, settle: '5s', timeout: '1m' })
  await clock.advance(8_000)
  lb.setScopes([{ scope: 'a', state: 'ended' }, 'b'])
  await clock.advance(8_000)
  lb.setScopes([{ scope: 'a', incarnation: 'new' }, 'b'])
  end()
  const back = clock.now()
  const report = await clock.runUntil(run.done)
  expect(report.outcome).toBe('idle')
  expect(clock.now() - back).toBeGreaterThanOrEqual(5_000)
  await run.release()
})
