import { afterEach, describe, expect, test, vi } from 'vitest'
import { stepDrain, type DrainStep, type Ticket } from 'drainable'
import type { FakeClock, FakeProvider } from 'drainable/testing'
import { web1 } from '../set-up.js'
import { hostClock, type HostClock } from './host-clock.js'
import { json, rig } from '../rig.js'

afterEach(() => vi.restoreAllMocks())

const BLIND = 1_100
/** The step that closes the door. */
const JUMP = 4
const DAY = 86_400_000

interface Stepping {
  readonly clock: FakeClock
  readonly lb: FakeProvider
  readonly host: HostClock
  readonly ticket: Ticket
}

/** A drain by steps whose hold took effect long ago. */
async function held(
  options: Parameters<typeof rig>[0] = { capabilities: { blind: BLIND } },
  more: { readonly until?: 'removed'; readonly onTimeout?: 'terminate' } = {},
  answerLost = false,
): Promise<Stepping> {
  const { clock, lb } = rig(options)
  const host = hostClock(clock)
  const policy = { timeout: '3h', settle: '0ms', ...more } as const
  let step = await stepDrain(lb, { target: web1, policy }, { clock })
  const keep = lb.occupy(web1)
  if (answerLost) lb.failNext('throw-after', { verb: 'apply' })
  for (let i = 0; i < 4; i += 1) {
    await clock.advance(200)
    step = await stepDrain(lb, json(step.ticket), { clock })
  }
  await clock.advance(5_000)
  step = await stepDrain(lb, json(step.ticket), { clock })
  expect(lb.state(web1)).toBe('drain')
  expect(step.outcome).toBeUndefined()
  keep()
  return { clock, lb, host, ticket: step.ticket }
}

/** Steps 50 ms apart until the drain has ended or `limit` has passed. */
async function stepUntil(
  { clock, lb }: Pick<Stepping, 'clock' | 'lb'>,
  from: Ticket,
  limit: number,
  beforeEach: () => void = () => undefined,
): Promise<DrainStep> {
  const until = clock.now() + limit
  let ticket = json(from)
  for (;;) {
    beforeEach()
    const step = await clock.runUntil(stepDrain(lb, ticket, { clock }))
    if (step.outcome !== undefined || clock.now() >= until) return step
    ticket = json(step.ticket)
    await clock.advance(50)
  }
}

/** One request comes and goes, and a step sees it. */
async function arriveAndSee({ clock, lb }: Stepping, ticket: Ticket): Promise<Ticket> {
  lb.arrive(web1)
  await clock.advance(50)
  const step = await clock.runUntil(stepDrain(lb, json(ticket), { clock }))
  expect(step.outcome).toBeUndefined()
  return step.ticket
}

// Fault 3
describe("a step after a disagreement of its host's clocks", () => {
  const jumps: readonly (readonly [string, (host: HostClock) => void])[] = [
    ['wall clock an hour ahead', (host) => host.jumpWall(3_600_000)],
    ['wall clock two seconds ahead', (host) => host.jumpWall(2_000)],
    ['wall clock 900 ms ahead', (host) => host.jumpWall(900)],
    ['wall clock an hour back', (host) => host.jumpWall(-3_600_000)],
    ['uptime an hour ahead', (host) => host.jumpUptime(3_600_000)],
    [
      'wall clock an hour and uptime five seconds ahead',
      (host) => {
        host.jumpWall(3_600_000)
        host.jumpUptime(5_000)
      },
    ],
    ['host booted again', (host) => host.otherBoot()],
    ['other host, 900 ms ahead', (host) => host.otherBoot(900)],
    ['other host, an hour ahead', (host) => host.otherBoot(3_600_000)],
    ['other host, an hour behind', (host) => host.otherBoot(-3_600_000)],
  ]

  test.each(jumps)('is not idle within blind of an arrival: %s', async (_, jump) => {
    const stepping = await held()
    const { clock, host } = stepping
    const arrived = clock.now()
    const ticket = await arriveAndSee(stepping, stepping.ticket)
    jump(host)
    const step = await stepUntil(stepping, ticket, 30_000)
    expect(step.outcome).toBe('idle')
    expect(clock.now() - arrived).toBeGreaterThanOrEqual(BLIND)
  })

  test.each(jumps)('is idle soon anyway: %s', async (_, jump) => {
    const stepping = await held()
    const { clock, host } = stepping
    const ticket = await arriveAndSee(stepping, stepping.ticket)
    jump(host)
    const from = clock.now()
    expect((await stepUntil(stepping, ticket, 30_000)).outcome).toBe('idle')
    expect(clock.now() - from).toBeLessThan(5_000)
  })

  test('is not idle if the wall clock jumps ahead before each step', async () => {
    const stepping = await held()
    const { clock, host } = stepping
    const arrived = clock.now()
    const ticket = await arriveAndSee(stepping, stepping.ticket)
    const step = await stepUntil(stepping, ticket, BLIND - 300, () => host.jumpWall(60_000))
    expect(step.outcome).toBeUndefined()
    expect(clock.now() - arrived).toBeLessThan(BLIND)
  })
})

/** The looks that one call makes. */
async function looksOf(
  { clock, lb }: Stepping,
  ticket: Ticket,
): Promise<{ readonly step: DrainStep; readonly at: readonly number[] }> {
  const from = lb.requests.length
  const step = await clock.runUntil(stepDrain(lb, json(ticket), { clock }))
  const calls = lb.requests.slice(from).filter(({ verb }) => verb === 'observe')
  return { step, at: calls.map(({ at }) => at) }
}

/** Steps, each on a host of its own, until one of them sends the seal or ends; the looks of each. */
async function onOtherHosts(stepping: Stepping): Promise<readonly (readonly number[])[]> {
  const looks: (readonly number[])[] = []
  let { ticket } = stepping
  for (let i = 0; i < 20; i += 1) {
    stepping.host.otherBoot(i * 10_000)
    const { step, at } = await looksOf(stepping, ticket)
    looks.push(at)
    const { changes } = step.ticket.members[0]!
    if (step.outcome !== undefined || changes.some(({ to }) => to === 'maint')) return looks
    ticket = step.ticket
    await stepping.clock.advance(50)
  }
  return looks
}

// Fault 3: another host has no quiet time to go on from
describe('a step on another host', () => {
  test('that gives the verdict looks twice, the blind time apart', async () => {
    const looks = (await onOtherHosts(await held())).at(-1)!
    expect(looks.length).toBeGreaterThanOrEqual(2)
    expect(looks.at(-1)! - looks[0]!).toBeGreaterThanOrEqual(BLIND)
  })

  test('that gives the verdict looks twice, freshness apart', async () => {
    const looks = (await onOtherHosts(await held({ capabilities: { freshness: 4_000 } }))).at(-1)!
    expect(looks.length).toBeGreaterThanOrEqual(2)
    expect(looks.at(-1)! - looks[0]!).toBeGreaterThanOrEqual(4_000)
  })

  test('past the deadline of a removal is not idle within blind of an arrival', async () => {
    const capabilities = { blind: BLIND, maint: 'cuts', terminate: true, remove: true } as const
    const removal = { until: 'removed', onTimeout: 'terminate' } as const
    const stepping = await held(
      { capabilities: { ...capabilities, lateBound: DAY } },
      removal,
      true,
    )
    const { clock, lb, host } = stepping
    const arrived = clock.now()
    const seen = await arriveAndSee(stepping, stepping.ticket)
    await clock.advance(50)
    let { ticket } = (await looksOf(stepping, seen)).step // the first zero
    host.otherBoot(4 * 3_600_000)
    const said: string[] = []
    for (;;) {
      const step = stepDrain(lb, json(ticket), { clock, onEvent: ({ type }) => said.push(type) })
      ;({ ticket } = await clock.runUntil(step))
      if (clock.now() - arrived >= BLIND) break
      expect(said).not.toContain('idle')
      await clock.advance(50)
    }
    expect(said).toContain('in-force')
  })

  test('gives no verdict if something arrived between its two looks', async () => {
    const stepping = await held()
    const { clock, lb, host } = stepping
    const { ticket } = (await looksOf(stepping, stepping.ticket)).step // the first zero
    await clock.advance(600_000)
    host.otherBoot()
    let going = true
    const arrive = (): void => {
      if (!going) return
      lb.arrive(web1)
      clock.setTimeout(arrive, 300)
    }
    clock.setTimeout(arrive, 100)
    const { step } = await looksOf(stepping, ticket)
    going = false
    expect(step.outcome).toBeUndefined()
    expect(step.ticket.members[0]!.changes.map(({ to }) => to)).toEqual(['drain'])
    expect(lb.state(web1)).toBe('drain')
  })

  test('looks once while work is in flight', async () => {
    const stepping = await held()
    const { lb, host } = stepping
    const end = lb.occupy(web1)
    host.otherBoot()
    const { step, at } = await looksOf(stepping, stepping.ticket)
    expect(at).toHaveLength(1)
    expect(step.outcome).toBeUndefined()
    end()
  })

  test('ends idle within a few steps', async () => {
    const stepping = await held()
    const { clock, host } = stepping
    const from = clock.now()
    const step = await stepUntil(stepping, stepping.ticket, 60_000, () => host.otherBoot())
    expect(step.outcome).toBe('idle')
    expect(clock.now() - from).toBeLessThan(10_000)
  })
})

// Fault 3: what must go on counting as quiet time
describe('a step on the same host', () => {
  test('looks once, whatever it decides', async () => {
    const stepping = await held()
    const { clock } = stepping
    let { ticket } = stepping
    for (let i = 0; i < 60; i += 1) {
      const { step, at } = await looksOf(stepping, ticket)
      expect(at).toHaveLength(1)
      if (step.outcome !== undefined) break
      ticket = step.ticket
      await clock.advance(50)
    }
    expect(stepping.lb.state(web1)).toBe('maint')
  })

  test('counts a gap of ten minutes as quiet time', async () => {
    const stepping = await held()
    const { clock } = stepping
    const { ticket } = (await looksOf(stepping, stepping.ticket)).step // the first zero
    await clock.advance(600_000)
    const from = clock.now()
    expect((await stepUntil(stepping, ticket, 30_000)).outcome).toBe('idle')
    expect(clock.now() - from).toBeLessThan(BLIND)
  })

  test('counts a gap in which the wall clock was slewed by half a second', async () => {
    const stepping = await held()
    const { clock, host } = stepping
    const { ticket } = (await looksOf(stepping, stepping.ticket)).step
    await clock.advance(600_000)
    host.jumpWall(-500)
    const from = clock.now()
    expect((await stepUntil(stepping, ticket, 30_000)).outcome).toBe('idle')
    expect(clock.now() - from).toBeLessThan(BLIND)
  })

  test('starts the quiet time anew if something arrived in a gap', async () => {
    const stepping = await held()
    const { clock, lb } = stepping
    const { ticket } = (await looksOf(stepping, stepping.ticket)).step
    lb.arrive(web1)
    await clock.advance(600_000)
    const from = clock.now()
    expect((await stepUntil(stepping, ticket, 30_000)).outcome).toBe('idle')
    expect(clock.now() - from).toBeGreaterThanOrEqual(BLIND)
  })
})

// What a crashed step may have sent is told from what was confirmed since by their order alone.
describe('a confirmed hold is not taken for a late one', () => {
  /** Drained and sealed by steps, the wall clock jumps once the hold is confirmed. */
  async function ledger(jump: number): Promise<readonly string[]> {
    const { clock, lb } = rig({ capabilities: { lateBound: 60_000 } })
    const host = hostClock(clock)
    const policy = { timeout: '3h', settle: '0ms' } as const
    let step = await stepDrain(lb, { target: web1, policy }, { clock })
    for (let i = 0; i < 20 && step.outcome === undefined; i += 1) {
      await clock.advance(step.againIn + 10)
      if (i === JUMP) host.jumpWall(jump)
      step = await stepDrain(lb, json(step.ticket), { clock })
    }
    expect(step.outcome).toBe('idle')
    return step.ticket.members[0]!.changes.map(({ to, state }) => `${to}:${state}`)
  }

  const once = ['drain:applied', 'maint:applied']

  test('when the wall clock jumps a minute ahead', async () => {
    expect(await ledger(60_000)).toEqual(once)
  })

  test('when the wall clock is slewed by less than a millisecond', async () => {
    expect(await ledger(0.4)).toEqual(once)
  })

  test('when moments are fractions of a millisecond, and it may still be late', async () => {
    const { clock, lb } = rig({ capabilities: { lateBound: 60_000 } })
    hostClock(clock)
    lb.occupy(web1)
    let step = await stepDrain(lb, { target: web1 }, { clock })
    for (let i = 0; i < 5; i += 1) {
      await clock.advance(10.3)
      step = await stepDrain(lb, json(step.ticket), { clock })
    }
    expect(step.ticket.members[0]!.state.hold.late).toHaveLength(1)
  })

  test('proves anew a member sealed on another host with a slower clock', async () => {
    const FRESH = 4_000
    const stepping = await held({ capabilities: { freshness: FRESH } })
    const { clock, lb, host } = stepping
    let { ticket } = stepping
    while (lb.state(web1) !== 'maint') {
      ticket = (await looksOf(stepping, ticket)).step.ticket
      await clock.advance(50)
    }
    // Came in just before the seal: numbers that are as old as that do not show it.
    const at = clock.now()
    host.otherBoot(10_000)
    const step = await stepUntil(stepping, ticket, 60_000)
    expect(step.outcome).toBe('idle')
    expect(clock.now() - at).toBeGreaterThanOrEqual(FRESH)
  })
})
