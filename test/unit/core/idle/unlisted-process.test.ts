import type * as os from 'node:os'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import {
  resumeDrain,
  startDrain,
  stepDrain,
  type DrainStep,
  type Snapshot,
  type Ticket,
} from 'drainable'
import type { FakeClock, FakeProvider } from 'drainable/testing'
import { only, web1 } from '../set-up.js'
import { json, rig, type Rig, showAs, without } from '../rig.js'

const machine = vi.hoisted((): { seconds: () => number } => ({ seconds: () => 1_000_000 }))
vi.mock('node:os', async (original) => ({
  ...(await original<typeof os>()),
  uptime: () => machine.seconds(),
}))

let now = (): number => 0
beforeEach(() => {
  vi.spyOn(Date, 'now').mockImplementation(() => Date.UTC(2026, 0, 1) + now())
  machine.seconds = () => 1_000_000 + now() / 1_000
})
afterEach(() => vi.restoreAllMocks())

/** Two processes, b of them with 4 in flight. */
function twoProcesses(): Rig {
  const both = rig({ scopes: ['a', 'b'] })
  now = () => both.clock.now()
  both.lb.occupy(web1, 4, 'b')
  return both
}

/** From now on b is not listed, and only `ended` says what became of it. */
function unlist(lb: FakeProvider, ended?: Snapshot['ended']): void {
  showAs(lb, (reading) => without(reading, 'b'), ended === undefined ? {} : { ended })
}

/** The same snapshot, without b. */
function unlisted(snapshot: Snapshot): Snapshot {
  return { ...snapshot, readings: snapshot.readings.map((reading) => without(reading, 'b')) }
}

async function stepFor(
  lb: FakeProvider,
  clock: FakeClock,
  from: DrainStep,
  limit: number,
  pause = 100,
): Promise<DrainStep> {
  const until = clock.now() + limit
  let step = from
  while (step.outcome === undefined && clock.now() < until) {
    await clock.advance(pause)
    step = await clock.runUntil(stepDrain(lb, json(step.ticket), { clock }))
  }
  return step
}

/** A drain by steps that has seen both processes. */
async function stepped(lb: FakeProvider, clock: FakeClock): Promise<DrainStep> {
  const start = { target: web1, policy: { timeout: '5m' } } as const
  const step = await stepFor(lb, clock, await stepDrain(lb, start, { clock }), 3_000)
  expect(lb.state(web1)).toBe('drain')
  return step
}

async function ticketOf(lb: FakeProvider, clock: FakeClock): Promise<Ticket> {
  await using run = startDrain(lb, web1, { clock, timeout: '5m' })
  await clock.advance(3_000)
  expect(only(run.report()).phase).toBe('draining')
  return json(await run.ticket)
}

// Fault 4
describe('a process that is not listed any more', () => {
  test('is unread for stepDrain()', async () => {
    const { clock, lb } = twoProcesses()
    const from = await stepped(lb, clock)
    unlist(lb)
    const step = await stepFor(lb, clock, from, 30_000)
    expect(step).toMatchObject({ phase: 'draining' })
    expect(step.outcome).toBeUndefined()
    expect(step.why).toContainEqual(expect.objectContaining({ code: 'unreadable', scope: 'b' }))
  })

  test('is unread for stepDrain() although it was idle when last seen', async () => {
    const { clock, lb } = rig({ scopes: ['a', 'b'] })
    now = () => clock.now()
    lb.occupy(web1, 1, 'a')()
    const start = { target: web1, policy: { timeout: '5m' } } as const
    const from = await stepFor(lb, clock, await stepDrain(lb, start, { clock }), 300)
    expect(from.outcome).toBeUndefined()
    unlist(lb)
    expect((await stepFor(lb, clock, from, 30_000)).outcome).toBeUndefined()
  })

  test('is unread for stepDrain() although it was unread when last seen', async () => {
    const { clock, lb } = twoProcesses()
    lb.setScopes(['a', { scope: 'b', state: 'unread' }])
    const from = await stepped(lb, clock)
    unlist(lb)
    expect((await stepFor(lb, clock, from, 30_000)).outcome).toBeUndefined()
  })

  test('leads stepDrain() to its deadline, not to idle', async () => {
    const { clock, lb } = twoProcesses()
    const from = await stepped(lb, clock)
    unlist(lb)
    expect((await stepFor(lb, clock, from, 600_000, 1_000)).outcome).toBe('timeout')
  })

  test('is unread for a drain if only a stale first look listed it', async () => {
    const { clock, lb } = twoProcesses()
    const other = startDrain(lb, web1, { clock, timeout: '5m' })
    const run = startDrain(lb, web1, { clock, timeout: '5m' })
    const observe = lb.observe.bind(lb)
    let looks = 0
    lb.observe = async (refs, ctx) => {
      looks += 1
      const [mine, snapshot] = [looks, await observe(refs, ctx)]
      if (mine !== 2) return mine < 2 ? snapshot : unlisted(snapshot)
      // The first look of the second one is answered when the first one has sent its hold.
      await new Promise<void>((resolve) => clock.setTimeout(resolve, 50))
      return snapshot
    }
    await clock.advance(30_000)
    expect(looks).toBeGreaterThan(2)
    expect(only(run.report()).phase).toBe('draining')
    expect(run.why()).toContainEqual(expect.objectContaining({ code: 'unreadable', scope: 'b' }))
    await Promise.all([run.release(), other.release()])
  })

  test('is unread for resumeDrain()', async () => {
    const { clock, lb } = twoProcesses()
    const ticket = await ticketOf(lb, clock)
    unlist(lb)
    await using run = resumeDrain(lb, ticket, { clock })
    await clock.advance(30_000)
    expect(only(run.report())).toMatchObject({ phase: 'draining', verifiedIdle: false })
    expect(run.why()).toContainEqual(expect.objectContaining({ code: 'unreadable', scope: 'b' }))
  })

  test('is unread for startDrain()', async () => {
    const { clock, lb } = twoProcesses()
    await using run = startDrain(lb, web1, { clock, timeout: '5m' })
    await clock.advance(3_000)
    unlist(lb)
    await clock.advance(30_000)
    expect(only(run.report())).toMatchObject({ phase: 'draining', verifiedIdle: false })
  })

  test('is read again by stepDrain() when it is listed again', async () => {
    const { clock, lb } = twoProcesses()
    const from = await stepped(lb, clock)
    const observe = lb.observe.bind(lb)
    unlist(lb)
    const blind = await stepFor(lb, clock, from, 3_000)
    lb.observe = observe
    const step = await stepFor(lb, clock, blind, 3_000)
    expect(step.why).toContainEqual(
      expect.objectContaining({ code: 'in-flight', scope: 'b', count: 4 }),
    )
  })
})

// Fault 4: an end that the product reports is believed
describe('a process that the product says has ended', () => {
  const ways: readonly (readonly [string, NonNullable<Snapshot['ended']>])[] = [
    ['by name', ['b']],
    ['by listing them all', 'unlisted'],
  ]

  test.each(ways)('lets stepDrain() go on to idle: %s', async (_, ended) => {
    const { clock, lb } = twoProcesses()
    const from = await stepped(lb, clock)
    unlist(lb, ended)
    expect((await stepFor(lb, clock, from, 30_000)).outcome).toBe('idle')
  })

  test.each(ways)('is lost for resumeDrain() with what it held: %s', async (_, ended) => {
    const { clock, lb } = twoProcesses()
    const ticket = await ticketOf(lb, clock)
    unlist(lb, ended)
    await using run = resumeDrain(lb, ticket, { clock })
    const report = await clock.runUntil(run.done)
    expect(only(report)).toMatchObject({ outcome: 'idle', verifiedIdle: false })
    expect(only(report).lost).toMatchObject([{ scope: 'b', active: 4 }])
  })

  test.each(ways)('is lost for startDrain() with what it held: %s', async (_, ended) => {
    const { clock, lb } = twoProcesses()
    await using run = startDrain(lb, web1, { clock, timeout: '5m' })
    await clock.advance(3_000)
    unlist(lb, ended)
    const report = await clock.runUntil(run.done)
    expect(only(report)).toMatchObject({ outcome: 'idle', verifiedIdle: false })
    expect(only(report).lost).toMatchObject([{ scope: 'b', active: 4 }])
  })

  test('lets stepDrain() go on if it is listed as ended', async () => {
    const { clock, lb } = twoProcesses()
    const from = await stepped(lb, clock)
    lb.setScopes(['a'])
    expect((await stepFor(lb, clock, from, 30_000)).outcome).toBe('idle')
  })

  test('does not end a process that is not named', async () => {
    const { clock, lb } = twoProcesses()
    await using run = startDrain(lb, web1, { clock, timeout: '5m' })
    await clock.advance(3_000)
    unlist(lb, ['c'])
    await clock.advance(30_000)
    expect(only(run.report())).toMatchObject({ phase: 'draining', verifiedIdle: false })
  })
})

// Fault 12, by steps
describe('a member that is absent and listed without scopes', () => {
  test('ends a drain by steps as gone', async () => {
    const { clock, lb } = rig({ capabilities: { countsAfterRemove: false } })
    now = () => clock.now()
    lb.occupy(web1, 3)
    const from = await stepped(lb, clock)
    lb.setBehind(web1, 'gone')
    expect((await stepFor(lb, clock, from, 5_000)).outcome).toBe('gone')
  })
})
