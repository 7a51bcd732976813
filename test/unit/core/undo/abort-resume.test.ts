import { describe, expect, test } from 'vitest'
import { resumeDrain, startDrain, type Ticket } from 'drainable'
import { only, recorder, web1 } from '../set-up.js'
import { anotherObject, json, memoryStore, recordChanges, rig, type Rig } from '../rig.js'

interface Resuming extends Rig {
  readonly ticket: Ticket
  readonly stop: AbortController
  readonly seen: ReturnType<typeof recorder>
  readonly tickets: ReturnType<typeof memoryStore>
  readonly resume: () => ReturnType<typeof resumeDrain>
}

/** The ticket of a drain that holds web1, whose process is gone. */
async function resuming(onAbort: 'leave' | 'restore' = 'restore'): Promise<Resuming> {
  const both = rig()
  const { clock, lb } = both
  const stop = new AbortController()
  const seen = recorder()
  const tickets = memoryStore()
  lb.occupy(web1)
  const run = startDrain(lb, web1, { clock, timeout: '10m', onAbort, tickets, id: 'one' })
  await clock.advance(2_000)
  const ticket = json(await run.ticket)
  await run.release()
  expect(lb.state(web1)).toBe('drain')
  const options = { clock, tickets, signal: stop.signal, onEvent: seen.onEvent }
  // Another object, as in another process: nothing is known of the product yet.
  const resume = (): ReturnType<typeof resumeDrain> =>
    resumeDrain(anotherObject(lb), ticket, options)
  return { ...both, ticket, stop, seen, tickets, resume }
}

describe("an abort of a resume that is still preparing, with onAbort: 'restore'", () => {
  test('undoes what the ticket says is ours', async () => {
    const { clock, lb, stop, tickets, resume } = await resuming()
    await using run = resume()
    stop.abort('enough')
    const report = await clock.runUntil(run.done, 60_000)
    expect(report.outcome).toBe('aborted')
    expect(only(report).error).toBeUndefined()
    expect(lb.state(web1)).toBe('ready')
    expect(tickets.map.has('one')).toBe(false)
    expect(clock.pending).toBe(0)
  })

  test('undoes it if the signal had fired before the call', async () => {
    const { clock, lb, stop, resume } = await resuming()
    stop.abort('enough')
    await using run = resume()
    expect((await clock.runUntil(run.done, 60_000)).outcome).toBe('aborted')
    expect(lb.state(web1)).toBe('ready')
  })

  test('undoes it once the balancer answers again', async () => {
    const { clock, lb, stop, resume } = await resuming()
    lb.disconnect()
    await using run = resume()
    await clock.advance(500)
    stop.abort('enough')
    await clock.advance(10_000)
    lb.connect()
    expect((await clock.runUntil(run.done, 60_000)).outcome).toBe('aborted')
    expect(lb.state(web1)).toBe('ready')
  })

  test('undoes it if the deadline is over', async () => {
    const { clock, lb, stop, resume } = await resuming()
    await clock.advance(20 * 60_000)
    await using run = resume()
    stop.abort('enough')
    expect((await clock.runUntil(run.done, 60_000)).outcome).toBe('aborted')
    expect(lb.state(web1)).toBe('ready')
  })

  test('keeps the ticket and says so if the balancer stays away', async () => {
    const { clock, lb, stop, seen, tickets, resume } = await resuming()
    lb.disconnect()
    await using run = resume()
    stop.abort('enough')
    const report = await clock.runUntil(run.done, 60_000)
    expect(report.outcome).toBe('aborted')
    expect(only(report).error).toMatchObject({ code: 'UNREACHABLE', ref: web1 })
    expect(only(report).error?.message).toContain("ticket 'one'")
    expect(tickets.map.has('one')).toBe(true)
    const types = seen.types()
    expect(types.indexOf('fault')).toBeGreaterThanOrEqual(0)
    expect(types.indexOf('fault')).toBeLessThan(types.indexOf('end'))
    expect(clock.pending).toBe(0)
  })

  test('does not wait longer than an undo may take', async () => {
    const { clock, lb, stop, resume } = await resuming()
    lb.failNext('hang', { times: 1_000 })
    await using run = resume()
    await clock.advance(1_000)
    stop.abort('enough')
    expect((await clock.runUntil(run.done, 31_000)).outcome).toBe('aborted')
  })
})

test("an abort of a preparing resume changes nothing under 'leave'", async () => {
  const { clock, lb, stop, tickets, resume } = await resuming('leave')
  const sent = recordChanges(lb, clock)
  await using run = resume()
  stop.abort('enough')
  expect((await clock.runUntil(run.done, 1_000)).outcome).toBe('aborted')
  expect(sent).toEqual([])
  expect(tickets.map.has('one')).toBe(true)
})

test('restore() of a resume that can not begin names each member', async () => {
  const { clock, lb, resume } = await resuming()
  lb.disconnect()
  await using run = resume()
  await clock.advance(500)
  const report = await clock.runUntil(run.restore(), 60_000)
  expect(only(report)).toMatchObject({
    outcome: 'unreachable',
    phase: 'draining',
    error: { code: 'UNREACHABLE' },
  })
})
