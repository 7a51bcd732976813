import { describe, expect, test } from 'vitest'
import { drain, DrainableError, resumeDrain, startDrain, type Ticket } from 'drainable'
import type { FakeClock, FakeProvider } from 'drainable/testing'
import { only, thrown, web1 } from '../set-up.js'
import { anotherObject, json, recordChanges, rig } from '../rig.js'

/** How many calls of a kind the balancer got. */
function calls(lb: FakeProvider, verb: 'describe' | 'observe'): number {
  return lb.requests.filter((call) => call.verb === verb).length
}

/** How long a drain with that timeout takes, and how it ends. */
async function ending(
  lb: FakeProvider,
  clock: FakeClock,
  timeout: number,
): Promise<{ readonly outcome: string; readonly took: number }> {
  const from = clock.now()
  await using run = startDrain(lb, web1, { clock, timeout })
  const { outcome } = await clock.runUntil(run.done)
  return { outcome, took: clock.now() - from }
}

// Fault 11, first clause
describe('the deadline of a drain', () => {
  test('bounds a first look that hangs', async () => {
    const { clock, lb } = rig()
    lb.failNext('hang', { verb: 'observe', times: 1_000 })
    const { outcome, took } = await ending(lb, clock, 5_000)
    expect(outcome).toBe('unreachable')
    expect(took).toBeLessThanOrEqual(5_500)
  })

  test('bounds a describe that hangs', async () => {
    const { clock, lb } = rig()
    lb.failNext('hang', { verb: 'describe', times: 1_000 })
    const { outcome, took } = await ending(lb, clock, 5_000)
    expect(outcome).toBe('unreachable')
    expect(took).toBeLessThanOrEqual(5_500)
  })

  test('bounds a describe and a first look that are slow together', async () => {
    const { clock, lb } = rig({ latency: 4_000 })
    const { took } = await ending(lb, clock, 5_000)
    expect(took).toBeLessThanOrEqual(5_500)
  })

  test('bounds the first look of drain() too, with nothing changed', async () => {
    const { clock, lb } = rig()
    lb.failNext('hang', { verb: 'observe', times: 1_000 })
    const sent = recordChanges(lb, clock)
    const from = clock.now()
    const error = await clock.runUntil(thrown(drain(lb, web1, { clock, timeout: '5s' })))
    expect(error).toMatchObject({ report: { outcome: 'unreachable' } })
    expect(clock.now() - from).toBeLessThanOrEqual(5_500)
    expect(sent).toEqual([])
    await clock.advance(0)
    expect(clock.pending).toBe(0)
  })

  for (const verb of ['describe', 'observe'] as const) {
    test(`bounds the first ${verb} of a resume that hangs`, async () => {
      const { clock, lb } = rig()
      const ticket = await busyTicket(lb, clock, 20_000)
      await clock.advance(10_000)
      lb.failNext('hang', { verb, times: 1_000 })
      const from = clock.now()
      await using run = resumeDrain(anotherObject(lb), ticket, { clock })
      expect((await clock.runUntil(run.done)).outcome).toBe('unreachable')
      expect(clock.now() - from).toBeLessThan(23_000)
    })
  }

  test('is not reached early by a first look that is slow but comes', async () => {
    const { clock, lb } = rig({ latency: 1_000 })
    expect((await ending(lb, clock, 60_000)).outcome).toBe('idle')
  })
})

/** The ticket of a drain that is in force and busy, and not held any more. */
async function busyTicket(lb: FakeProvider, clock: FakeClock, timeout: number): Promise<Ticket> {
  lb.occupy(web1)
  const run = startDrain(lb, web1, { clock, timeout })
  await clock.advance(1_000)
  const ticket = json(await run.ticket)
  await run.release()
  return ticket
}

// Fault 11, second clause
describe('a first call that fails with a passing error', () => {
  for (const verb of ['describe', 'observe'] as const) {
    test(`is made again: ${verb}`, async () => {
      const { clock, lb } = rig()
      lb.failNext('throw', { verb })
      expect((await ending(lb, clock, 120_000)).outcome).toBe('idle')
    })

    test(`is made again for up to 5 s: ${verb}`, async () => {
      const { clock, lb } = rig()
      lb.failNext('throw', { verb, times: 1_000 })
      const from = clock.now()
      const error = await clock.runUntil(thrown(drain(lb, web1, { clock, timeout: '2m' })))
      expect(error).toMatchObject({ code: 'CONNECTION_LOST', report: { outcome: 'unreachable' } })
      expect(clock.now() - from).toBeGreaterThan(3_000)
      expect(clock.now() - from).toBeLessThanOrEqual(6_000)
      expect(calls(lb, verb)).toBeGreaterThan(2)
    })
  }

  for (const verb of ['describe', 'observe'] as const) {
    const reloaded = (): DrainableError =>
      new DrainableError('CONFLICT', 'it is being reloaded', { provider: 'fake' })

    test(`is made again while the balancer is being replaced: ${verb}`, async () => {
      const { clock, lb } = rig()
      lb.failNext('throw', { verb, times: 3, error: reloaded() })
      expect((await ending(lb, clock, 120_000)).outcome).toBe('idle')
    })

    test(`is given up after 5 s of being replaced, with its words: ${verb}`, async () => {
      const { clock, lb } = rig()
      lb.failNext('throw', { verb, times: 1_000, error: reloaded() })
      const from = clock.now()
      const error = await clock.runUntil(thrown(drain(lb, web1, { clock, timeout: '2m' })))
      expect(error).toMatchObject({ code: 'CONFLICT', report: { outcome: 'refused' } })
      expect(clock.now() - from).toBeGreaterThan(3_000)
      expect(clock.now() - from).toBeLessThanOrEqual(6_000)
    })
  }

  test('is made again until the balancer is back after 4 s', async () => {
    const { clock, lb } = rig()
    lb.disconnect()
    clock.setTimeout(() => lb.connect(), 4_000)
    expect((await ending(lb, clock, 120_000)).outcome).toBe('idle')
  })

  test('is not made in a busy loop', async () => {
    const { clock, lb } = rig()
    lb.failNext('throw', { verb: 'observe', times: 10_000 })
    await ending(lb, clock, 120_000)
    expect(calls(lb, 'observe')).toBeLessThan(100)
  })

  test('is made again no longer than the deadline allows', async () => {
    const { clock, lb } = rig()
    lb.failNext('throw', { verb: 'observe', times: 10_000 })
    const { outcome, took } = await ending(lb, clock, 2_000)
    expect(outcome).toBe('unreachable')
    expect(took).toBeGreaterThan(1_000)
    expect(took).toBeLessThanOrEqual(2_500)
  })

  test('ends at once with the signal', async () => {
    const { clock, lb } = rig()
    lb.failNext('throw', { verb: 'observe', times: 10_000 })
    const stop = new AbortController()
    const caught = thrown(drain(lb, web1, { clock, timeout: '2m', signal: stop.signal }))
    await clock.advance(1_000)
    stop.abort('enough')
    expect(await clock.runUntil(caught, 100)).toBe('enough')
    await clock.advance(0)
    expect(clock.pending).toBe(0)
  })

  for (const verb of ['describe', 'observe'] as const) {
    test(`is made again for a minute by a resume: ${verb}`, async () => {
      const { clock, lb } = rig()
      const ticket = await busyTicket(lb, clock, 600_000)
      const backAt = clock.now() + 60_000
      const provider = anotherObject(lb, (asked) => {
        if (asked === verb && clock.now() < backAt)
          throw new DrainableError('CONNECTION_LOST', 'restarting')
      })
      await using run = resumeDrain(provider, ticket, { clock })
      await clock.advance(90_000)
      expect(only(run.report())).toMatchObject({ phase: 'draining' })
      expect(run.why()[0]).toMatchObject({ code: 'in-flight', count: 1 })
    })
  }
})

const NOT_LISTENING = ['ENOENT', 'ECONNREFUSED', 'ENOTFOUND'] as const

/** An error of the network with that code: its own, or its cause's cause. */
function notListening(code: string, deep: boolean): DrainableError {
  const cause = Object.assign(new Error(`connect ${code}`), { code })
  return new DrainableError('UNREACHABLE', 'nothing listens there', {
    cause: deep ? new TypeError('fetch failed', { cause }) : cause,
  })
}

// Fault 11, second clause
describe('a first call that finds no listener', () => {
  for (const code of NOT_LISTENING) {
    for (const deep of [false, true]) {
      const name = deep ? `${code}, deep in its causes` : code
      test(`is made again for 1 s: ${name}`, async () => {
        const { clock, lb } = rig()
        lb.failNext('throw', { times: 10_000, error: notListening(code, deep) })
        const { outcome, took } = await ending(lb, clock, 120_000)
        expect(outcome).toBe('unreachable')
        expect(took).toBeGreaterThan(500)
        expect(took).toBeLessThanOrEqual(1_500)
      })
    }

    test(`continues if a listener is back within 1 s: ${code}`, async () => {
      const { clock, lb } = rig()
      lb.failNext('throw', { verb: 'observe', error: notListening(code, false) })
      expect((await ending(lb, clock, 120_000)).outcome).toBe('idle')
    })
  }
})

// Fault 11, second clause
describe('a first call that fails for good', () => {
  for (const code of ['UNAUTHENTICATED', 'MALFORMED_REPLY'] as const) {
    test(`is not made again: ${code}`, async () => {
      const { clock, lb } = rig()
      const error = new DrainableError(code, 'no')
      lb.failNext('throw', { verb: 'observe', times: 10_000, error })
      const from = clock.now()
      expect(await clock.runUntil(thrown(drain(lb, web1, { clock })))).toMatchObject({ code })
      expect(calls(lb, 'observe')).toBe(1)
      expect(clock.now()).toBe(from)
    })
  }

  test('is not made again by a resume either', async () => {
    const { clock, lb } = rig()
    const ticket = await busyTicket(lb, clock, 600_000)
    const before = calls(lb, 'describe')
    const error = new DrainableError('UNAUTHENTICATED', 'no')
    lb.failNext('throw', { verb: 'describe', times: 10_000, error })
    const from = clock.now()
    await using run = resumeDrain(anotherObject(lb), ticket, { clock })
    const report = await clock.runUntil(run.done)
    expect(calls(lb, 'describe')).toBe(before + 1)
    expect(clock.now()).toBe(from)
    const reasons = [report.error, ...report.members.map((member) => member.error)]
    expect(reasons).toContainEqual(expect.objectContaining({ code: 'UNAUTHENTICATED' }))
  })

  test('is not made again for a member that does not exist', async () => {
    const { clock, lb } = rig()
    const target = { pool: 'web', member: 'web9' }
    const error = await clock.runUntil(thrown(drain(lb, target, { clock })))
    expect(error).toMatchObject({ code: 'NOT_FOUND' })
    // The second one is at everything: it tells which name was probably meant.
    const looks = lb.requests.filter(({ verb }) => verb === 'observe')
    expect(looks.map(({ refs }) => refs)).toEqual([[target], 'all'])
  })
})

// Fault 11, third clause
describe('a drain at its deadline', () => {
  test('is a timeout if only the last look has no answer', async () => {
    const { clock, lb } = rig()
    lb.occupy(web1, 3)
    clock.setTimeout(() => lb.failNext('hang', { verb: 'observe', times: 10_000 }), 19_900)
    await using run = startDrain(lb, web1, { clock, timeout: '20s' })
    const report = await clock.runUntil(run.done)
    expect(report.outcome).toBe('timeout')
    expect(only(report).why[0]).toMatchObject({ code: 'in-flight', count: 3 })
  })

  test('ends soon after it if its last look hangs', async () => {
    const { clock, lb } = rig()
    lb.occupy(web1, 3)
    clock.setTimeout(() => lb.failNext('hang', { verb: 'observe', times: 10_000 }), 19_900)
    await using run = startDrain(lb, web1, { clock, timeout: '20s' })
    expect((await clock.runUntil(run.done)).elapsed).toBeLessThan(23_000)
  })

  test('is a timeout if each look is slow but comes', async () => {
    const { clock, lb } = rig({ latency: 3_000 })
    lb.occupy(web1, 3)
    expect((await ending(lb, clock, 60_000)).outcome).toBe('timeout')
  })

  test('is unreachable if the balancer has not answered for long', async () => {
    const { clock, lb } = rig()
    lb.occupy(web1, 3)
    clock.setTimeout(() => lb.failNext('hang', { verb: 'observe', times: 10_000 }), 2_000)
    expect((await ending(lb, clock, 20_000)).outcome).toBe('unreachable')
  })

  test('is unreachable if the balancer refuses every look', async () => {
    const { clock, lb } = rig()
    lb.occupy(web1, 3)
    clock.setTimeout(() => lb.disconnect(), 2_000)
    expect((await ending(lb, clock, 20_000)).outcome).toBe('unreachable')
  })
})
