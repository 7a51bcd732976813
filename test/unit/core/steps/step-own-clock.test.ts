import { expect, test } from 'vitest'
import {
  resumeDrain,
  startDrain,
  stepDrain,
  type DrainEvent,
  type DrainStep,
  type StepStart,
} from 'drainable'
import { fakeClock, fakeProvider, type FakeClock, type FakeProvider } from 'drainable/testing'
import { web1 } from '../set-up.js'
import { stepped } from '../stepped.js'
import { json } from '../rig.js'

const WALL = Date.UTC(2020, 0, 1)

/** A clock that tells wall time, and a balancer by it: the machine's time stands still meanwhile. */
function owned(wall = WALL): { clock: FakeClock; lb: FakeProvider } {
  const clock = fakeClock(1_000, wall)
  return { clock, lb: fakeProvider({ pools: { web: ['web1', 'web2'] }, clock }) }
}

async function steps(
  { clock, lb }: ReturnType<typeof owned>,
  policy: NonNullable<StepStart['policy']>,
): Promise<DrainStep> {
  const onTicket = (): void => undefined // kept before anything is sent
  let step = await stepped(lb, { target: web1, policy }, { clock, onTicket })
  for (let i = 0; i < 300 && step.outcome === undefined; i += 1) {
    await clock.advance(Math.max(1, step.againIn))
    step = await clock.runUntil(stepDrain(lb, json(step.ticket), { clock, onTicket }))
  }
  return step
}

test("the time between two steps is taken from the caller's clock", async () => {
  const both = owned()
  const from = both.clock.now()
  const step = await steps(both, { settle: '5s', timeout: '1m' })
  expect(step.outcome).toBe('idle')
  expect(both.clock.now() - from).toBeGreaterThanOrEqual(5_000)
  expect(both.clock.now() - from).toBeLessThan(7_000)
})

test('a fake clock drives steps', async () => {
  const clock = fakeClock()
  const lb = fakeProvider({ pools: { web: ['web1', 'web2'] }, clock })
  const step = await steps({ clock, lb }, { settle: '2s', timeout: '1m' })
  expect(step.outcome).toBe('idle')
  expect(clock.now()).toBeGreaterThanOrEqual(2_000)
  expect(clock.now()).toBeLessThan(4_000)
})

test("the deadline of steps is taken from the caller's clock", async () => {
  const both = owned()
  both.lb.occupy(web1)
  const from = both.clock.now()
  expect((await steps(both, { timeout: '1m' })).outcome).toBe('timeout')
  expect(both.clock.now() - from).toBeLessThan(62_000)
})

test("a ticket has moments of the caller's clock", async () => {
  const { clock, lb } = owned()
  lb.occupy(web1)
  const run = startDrain(lb, web1, { clock, timeout: '10s' })
  await clock.advance(2_000)
  const ticket = json(await run.ticket)
  await run.release()
  expect(ticket).toMatchObject({ deadline: '2020-01-01T00:00:10.000Z' })
  expect(ticket.members[0]?.startedAt).toBe('2020-01-01T00:00:00.000Z')
  const from = clock.now()
  const resumed = resumeDrain(lb, ticket, { clock })
  expect((await clock.runUntil(resumed.done)).outcome).toBe('timeout')
  expect(clock.now() - from).toBeLessThan(10_000)
  await resumed.release()
})

test("an end has a moment of the caller's clock", async () => {
  const { clock, lb } = owned()
  const seen: DrainEvent[] = []
  const run = startDrain(lb, web1, { clock, onEvent: (event) => void seen.push(event) })
  await clock.runUntil(run.done)
  await run.release()
  expect(seen.length).toBeGreaterThan(1)
  for (const { at } of seen) expect(at).toMatch(/^2020-01-01T00:00/)
})

test('a step by another clock takes its time from that clock', async () => {
  const { clock, lb } = owned()
  const first = await stepped(lb, { target: web1, policy: { settle: '3s' } }, { clock })
  const held = await stepped(lb, json(first.ticket), { clock })
  const other = fakeClock(1_000_000, WALL + 3_600_000)
  const step = stepped(lb, json(held.ticket), { clock: other })
  expect((await other.runUntil(step)).phase).toBe('draining')
})
