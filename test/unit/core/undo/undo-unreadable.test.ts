import { describe, expect, test } from 'vitest'
import { resumeDrain, restore, startDrain, type Drain } from 'drainable'
import type { FakeClock, FakeProvider } from 'drainable/testing'
import { only, recorder, web1, web2 } from '../set-up.js'
import { json, memoryStore, recordChanges, rig } from '../rig.js'

/** A drain that is in force, with work that keeps it from being idle. */
async function busy(lb: FakeProvider, clock: FakeClock): Promise<Drain> {
  lb.occupy(web1)
  const run = startDrain(lb, web1, { clock, timeout: '10m' })
  await clock.advance(2_000)
  expect(lb.state(web1)).toBe('drain')
  return run
}

// Fault 5
describe('restore() of a handle whose first look fails', () => {
  test('opens the member after one look that fails', async () => {
    const { clock, lb } = rig()
    await using run = await busy(lb, clock)
    lb.failNext('throw', { verb: 'observe' })
    const report = await clock.runUntil(run.restore(), 120_000)
    expect(only(report).outcome).toBe('restored')
    expect(lb.state(web1)).toBe('ready')
  })

  for (const how of ['throw', 'hang'] as const) {
    test(`lets done resolve as aborted (${how})`, async () => {
      const { clock, lb } = rig()
      await using run = await busy(lb, clock)
      lb.failNext(how, { verb: 'observe' })
      await clock.runUntil(run.restore(), 120_000)
      expect((await clock.runUntil(run.done, 1_000)).outcome).toBe('aborted')
    })
  }

  test('leaves no timer behind once it has ended', async () => {
    const { clock, lb } = rig()
    const run = await busy(lb, clock)
    lb.failNext('throw', { verb: 'observe' })
    await clock.runUntil(run.restore(), 120_000)
    await run.release()
    await clock.advance(0)
    expect(clock.pending).toBe(0)
  })

  test('opens a held member after idle too', async () => {
    const { clock, lb } = rig()
    await using run = startDrain(lb, web1, { clock })
    await clock.runUntil(run.done)
    lb.failNext('throw', { verb: 'observe', times: 3 })
    const report = await clock.runUntil(run.restore(), 120_000)
    expect(only(report).outcome).toBe('restored')
    expect(lb.state(web1)).toBe('ready')
    expect((await run.done).outcome).toBe('idle')
  })

  test('opens every member of a group', async () => {
    const { clock, lb } = rig()
    await using run = startDrain(lb, [web1, web2], { clock, timeout: '10m' })
    await clock.runUntil(run.done)
    lb.failNext('throw', { verb: 'observe' })
    const report = await clock.runUntil(run.restore(), 120_000)
    expect(report.members.map(({ outcome }) => outcome)).toEqual(['restored', 'restored'])
    expect([lb.state(web1), lb.state(web2)]).toEqual(['ready', 'ready'])
  })
})

// Fault 5
describe('restore() of a handle whose balancer stays away', () => {
  test('resolves as unreachable, and says why', async () => {
    const { clock, lb } = rig()
    await using run = await busy(lb, clock)
    lb.disconnect()
    const report = await clock.runUntil(run.restore(), 120_000)
    expect(only(report)).toMatchObject({
      outcome: 'unreachable',
      phase: 'draining',
      error: { code: 'UNREACHABLE' },
    })
  })

  test('lets done resolve as aborted', async () => {
    const { clock, lb } = rig()
    await using run = await busy(lb, clock)
    lb.disconnect()
    await clock.runUntil(run.restore(), 120_000)
    expect((await clock.runUntil(run.done, 1_000)).outcome).toBe('aborted')
  })

  test('keeps the ticket', async () => {
    const { clock, lb } = rig()
    const tickets = memoryStore()
    lb.occupy(web1)
    await using run = startDrain(lb, web1, { clock, timeout: '10m', tickets, id: 'one' })
    await clock.advance(2_000)
    lb.disconnect()
    await clock.runUntil(run.restore(), 120_000)
    expect(tickets.map.has('one')).toBe(true)
    lb.connect()
    const again = restore(lb, json(await run.ticket), { clock, tickets })
    expect(only(await clock.runUntil(again)).outcome).toBe('restored')
    expect(lb.state(web1)).toBe('ready')
    expect(tickets.map.has('one')).toBe(false)
  })

  test('can be asked for again once the balancer is back', async () => {
    const { clock, lb } = rig()
    await using run = await busy(lb, clock)
    lb.disconnect()
    await clock.runUntil(run.restore(), 120_000)
    lb.connect()
    expect(only(await clock.runUntil(run.restore(), 120_000)).outcome).toBe('restored')
    expect(lb.state(web1)).toBe('ready')
  })
})

// Fault 5, for the undo of a ticket
describe('restore() of a ticket', () => {
  test('opens the member after one look that fails', async () => {
    const { clock, lb } = rig()
    const run = await busy(lb, clock)
    const ticket = json(await run.ticket)
    await run.release()
    lb.failNext('throw', { verb: 'observe' })
    expect(only(await clock.runUntil(restore(lb, ticket, { clock }))).outcome).toBe('restored')
    expect(lb.state(web1)).toBe('ready')
  })

  test('resolves as unreachable where the balancer stays away', async () => {
    const { clock, lb } = rig()
    const tickets = memoryStore()
    lb.occupy(web1)
    const run = startDrain(lb, web1, { clock, timeout: '10m', tickets, id: 'one' })
    await clock.advance(2_000)
    const ticket = json(await run.ticket)
    await run.release()
    lb.disconnect()
    const report = await clock.runUntil(restore(lb, ticket, { clock, tickets }), 120_000)
    expect(only(report)).toMatchObject({
      outcome: 'unreachable',
      phase: 'draining',
      error: { code: 'UNREACHABLE' },
    })
    expect(tickets.map.has('one')).toBe(true)
  })
})

// Fault 5, for a restore while the first look is under way
describe('restore() of a handle that is still preparing', () => {
  for (const verb of ['describe', 'observe'] as const) {
    test(`resolves at once while the first ${verb} hangs, nothing is changed`, async () => {
      const { clock, lb } = rig()
      lb.failNext('hang', { verb, times: 1_000 })
      const sent = recordChanges(lb, clock)
      await using run = startDrain(lb, web1, { clock, timeout: '10m' })
      await clock.advance(1_000)
      await clock.runUntil(run.restore(), 1_000)
      expect((await clock.runUntil(run.done, 1_000)).outcome).toBe('aborted')
      expect(sent).toEqual([])
    })
  }

  test('opens what an earlier process held, in a resume', async () => {
    const { clock, lb } = rig({ latency: 50 })
    const first = await busy(lb, clock)
    const ticket = json(await first.ticket)
    await clock.runUntil(first.release())
    await using run = resumeDrain(lb, ticket, { clock })
    const report = await clock.runUntil(run.restore(), 120_000)
    expect(only(report).outcome).toBe('restored')
    expect(lb.state(web1)).toBe('ready')
    expect((await clock.runUntil(run.done, 1_000)).outcome).toBe('aborted')
  })
})

// Fault 5: what must stay so
describe('restore() of a handle whose looks succeed', () => {
  test('opens the member and ends once', async () => {
    const { clock, lb } = rig()
    const seen = recorder()
    lb.occupy(web1)
    await using run = startDrain(lb, web1, { clock, timeout: '10m', onEvent: seen.onEvent })
    await clock.advance(2_000)
    await clock.runUntil(run.restore())
    expect(lb.state(web1)).toBe('ready')
    expect((await run.done).outcome).toBe('aborted')
    expect(seen.of('end')).toHaveLength(1)
  })

  test('reports restored and changes nothing if nothing of ours is left', async () => {
    const { clock, lb } = rig()
    await using run = startDrain(lb, web1, { clock })
    await clock.runUntil(run.done)
    await clock.runUntil(run.restore())
    const sent = recordChanges(lb, clock)
    expect(only(await clock.runUntil(run.restore())).outcome).toBe('restored')
    expect(sent).toEqual([])
  })
})
