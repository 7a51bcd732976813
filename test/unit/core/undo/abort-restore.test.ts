import { describe, expect, test } from 'vitest'
import { drain, DrainableError, startDrain, type DrainReport, type Policy } from 'drainable'
import { only, recorder, thrown, web1, web2 } from '../set-up.js'
import { memoryStore, recordChanges, rig, type Rig } from '../rig.js'

interface Aborting extends Rig {
  readonly stop: AbortController
  readonly reason: Error
  readonly policy: Policy
  readonly seen: ReturnType<typeof recorder>
  readonly tickets: ReturnType<typeof memoryStore>
}

function aborting(): Aborting {
  const both = rig()
  const stop = new AbortController()
  const seen = recorder()
  const tickets = memoryStore()
  both.lb.occupy(web1)
  const policy: Policy = {
    clock: both.clock,
    timeout: '10m',
    onAbort: 'restore',
    signal: stop.signal,
    onEvent: seen.onEvent,
    tickets,
    id: 'one',
  }
  return { ...both, stop, reason: new Error('enough'), policy, seen, tickets }
}

/** Aborts a drain of web1 that is in force, after `prepare`; its report. */
async function abortAfter(rig: Aborting, prepare: () => void): Promise<DrainReport> {
  const { clock, lb, stop, reason, policy } = rig
  await using run = startDrain(lb, web1, policy)
  await clock.advance(2_000)
  expect(lb.state(web1)).toBe('drain')
  prepare()
  stop.abort(reason)
  return await clock.runUntil(run.done, 120_000)
}

// Fault 10
describe("an abort with onAbort: 'restore'", () => {
  test('opens the member after one look that fails', async () => {
    const rig = aborting()
    const report = await abortAfter(rig, () => rig.lb.failNext('throw', { verb: 'observe' }))
    expect(report.outcome).toBe('aborted')
    expect(only(report).error).toBeUndefined()
    expect(rig.lb.state(web1)).toBe('ready')
    expect(rig.tickets.map.has('one')).toBe(false)
  })

  test('sends no hold that still waits for its ticket', async () => {
    const { clock, lb, stop, reason, policy, tickets } = aborting()
    let write: () => void = () => undefined
    const slow = new Promise<void>((resolve) => (write = resolve))
    const set = tickets.set.bind(tickets)
    tickets.set = async (key, value) => {
      await slow
      return set(key, value)
    }
    const sent = recordChanges(lb, clock)
    await using run = startDrain(lb, web1, policy)
    await clock.advance(500)
    stop.abort(reason)
    await clock.advance(100)
    write()
    const report = await clock.runUntil(run.done, 120_000)
    expect(report.outcome).toBe('aborted')
    expect(sent).toEqual([])
    expect(lb.state(web1)).toBe('ready')
  })

  test('opens the member after one change that is lost', async () => {
    const rig = aborting()
    await abortAfter(rig, () => rig.lb.failNext('throw', { verb: 'apply' }))
    expect(rig.lb.state(web1)).toBe('ready')
  })

  test('still rejects with the reason after a look that fails', async () => {
    const { clock, lb, stop, reason, policy } = aborting()
    const caught = thrown(drain(lb, web1, policy))
    await clock.advance(2_000)
    lb.failNext('throw', { verb: 'observe' })
    stop.abort(reason)
    expect(await clock.runUntil(caught, 120_000)).toBe(reason)
    expect(lb.state(web1)).toBe('ready')
    await clock.advance(0)
    expect(clock.pending).toBe(0)
  })
})

const REFUSED = new DrainableError('FORBIDDEN', 'no rights to enable it')

// Fault 10
describe("an abort with onAbort: 'restore' that fails", () => {
  const failures: readonly (readonly [string, string, (rig: Aborting) => void])[] = [
    ['the balancer stays away', 'UNREACHABLE', ({ lb }) => lb.disconnect()],
    [
      'the balancer refuses it',
      'FORBIDDEN',
      ({ lb }) => lb.failNext('reject', { verb: 'apply', error: REFUSED, times: 1_000 }),
    ],
    ['another client closed it further', 'CONFLICT', ({ lb }) => lb.setBehind(web1, 'maint')],
  ]

  test.each(failures)('names the error in the report: %s', async (_, code, prepare) => {
    const rig = aborting()
    const report = await abortAfter(rig, () => prepare(rig))
    expect(only(report).error).toMatchObject({ code })
  })

  test.each(failures)('reports a fault: %s', async (_, code, prepare) => {
    const rig = aborting()
    await abortAfter(rig, () => prepare(rig))
    expect(rig.seen.of('fault')).toContainEqual(
      expect.objectContaining({ ref: web1, error: expect.objectContaining({ code }) as unknown }),
    )
  })

  test.each(failures)('keeps the ticket: %s', async (_, __, prepare) => {
    const rig = aborting()
    await abortAfter(rig, () => prepare(rig))
    expect(rig.tickets.map.has('one')).toBe(true)
  })

  test.each(failures)('rejects with the reason in time: %s', async (_, __, prepare) => {
    const rig = aborting()
    const { clock, lb, stop, reason, policy } = rig
    const caught = thrown(drain(lb, web1, policy))
    await clock.advance(2_000)
    prepare(rig)
    stop.abort(reason)
    expect(await clock.runUntil(caught, 60_000)).toBe(reason)
    await clock.advance(0)
    expect(clock.pending).toBe(0)
  })

  test('waits no longer for a hanging change than for a late one', async () => {
    const rig = aborting()
    const { clock, lb, stop, reason, policy, tickets } = rig
    await using run = startDrain(lb, web1, policy)
    await clock.advance(2_000)
    lb.failNext('hang', { verb: 'apply' })
    stop.abort(reason)
    const report = await clock.runUntil(run.done, 5_100)
    expect(report.outcome).toBe('aborted')
    expect(only(report).error).toMatchObject({ code: 'CONFLICT' })
    expect(only(report).error?.message).toContain('may still be carried out until')
    expect(tickets.map.has('one')).toBe(true)
    await clock.advance(0)
    expect(clock.pending).toBe(0)
  })

  test('opens the other members, and names only the failed one', async () => {
    const rig = aborting()
    const { clock, lb, stop, reason, policy } = rig
    lb.occupy(web2)
    const apply = lb.apply.bind(lb)
    await using run = startDrain(lb, [web1, web2], policy)
    await clock.advance(2_000)
    lb.apply = async (changes, ctx) => {
      const allowed = changes.filter(({ ref }) => ref.member !== 'web1')
      const results = await apply(allowed, { signal: ctx.signal, clock: ctx.clock })
      return changes.map(({ ref }) => {
        if (ref.member === 'web1') return { ref, status: 'rejected' as const, error: REFUSED }
        return results[allowed.findIndex((change) => change.ref.member === ref.member)]!
      })
    }
    stop.abort(reason)
    const report = await clock.runUntil(run.done, 120_000)
    expect(report.members.map(({ error }) => error?.code)).toEqual(['FORBIDDEN', undefined])
    expect([lb.state(web1), lb.state(web2)]).toEqual(['drain', 'ready'])
  })
})

// Fault 10: what must stay so
describe('an abort with nothing to undo', () => {
  test('changes nothing while the drain is preparing', async () => {
    const { clock, lb, stop, reason, policy } = aborting()
    lb.failNext('hang', { verb: 'observe', times: 1_000 })
    const sent = recordChanges(lb, clock)
    const caught = thrown(drain(lb, web1, policy))
    await clock.advance(1_000)
    stop.abort(reason)
    expect(await clock.runUntil(caught, 1_000)).toBe(reason)
    expect(sent).toEqual([])
    await clock.advance(0)
    expect(clock.pending).toBe(0)
  })

  test("leaves the member drained under onAbort: 'leave'", async () => {
    const rig = aborting()
    const leaving = { ...rig, policy: { ...rig.policy, onAbort: 'leave' as const } }
    const report = await abortAfter(leaving, () => undefined)
    expect(report.outcome).toBe('aborted')
    expect(rig.lb.state(web1)).toBe('drain')
    expect(rig.tickets.map.has('one')).toBe(true)
  })

  test('reports no fault and no error if the undo worked', async () => {
    const rig = aborting()
    const report = await abortAfter(rig, () => undefined)
    expect(only(report).error).toBeUndefined()
    expect(rig.seen.of('fault')).toEqual([])
    expect(rig.tickets.map.has('one')).toBe(false)
  })

  test('leaves alone what another client opened', async () => {
    const rig = aborting()
    const sent = recordChanges(rig.lb, rig.clock)
    await abortAfter(rig, () => rig.lb.setBehind(web1, 'ready'))
    expect(sent.filter(({ change }) => change.kind === 'restore')).toEqual([])
    expect(rig.lb.state(web1)).toBe('ready')
  })
})
