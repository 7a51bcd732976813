import { describe, expect, test } from 'vitest'
import { ready, restore, startDrain, type Ticket } from 'drainable'
import type { FakeClock, FakeProvider, FakeScope } from 'drainable/testing'
import { only, thrown, web1 } from '../set-up.js'
import { json, memoryStore, rig } from '../rig.js'

const NAMES = ['one', 'two', 'three']

/** Three processes, of which the last is as told. */
function processes(lb: FakeProvider, last: Omit<FakeScope, 'scope'> = {}): void {
  lb.setScopes(NAMES.map((scope) => (scope === 'three' ? { scope, ...last } : { scope })))
}

/** A member that is drained and held, with its ticket in a store. */
async function held() {
  const { clock, lb } = rig({ scopes: NAMES })
  const tickets = memoryStore()
  const run = startDrain(lb, web1, { clock, tickets, id: 'job', timeout: '10m' })
  await clock.runUntil(run.done)
  return { clock, lb, tickets, run }
}

/** When a promise settles, by the clock, from now on. */
function settling(clock: FakeClock, promise: Promise<unknown>): () => number | undefined {
  const from = clock.now()
  let after: number | undefined
  const note = (): void => void (after = clock.now() - from)
  promise.then(note, note)
  return () => after
}

describe('an undo with a process that has not taken it', () => {
  test('is over once that one has, and the ticket goes last', async () => {
    const { clock, lb, tickets, run } = await held()
    processes(lb, { inForce: false })
    const undone = run.restore()
    const after = settling(clock, undone)
    await clock.advance(10_000)
    expect(lb.state(web1)).toBe('ready')
    expect([after(), tickets.map.has('job')]).toEqual([undefined, true])
    processes(lb)
    expect(only(await clock.runUntil(undone)).outcome).toBe('restored')
    expect(tickets.map.has('job')).toBe(false)
  })

  test('says which one it waits for', async () => {
    const { clock, lb, run } = await held()
    processes(lb, { inForce: false, note: 'it has not asked for the set' })
    const undone = run.restore()
    await clock.advance(1_000)
    expect(run.why()).toMatchObject([
      {
        code: 'not-in-force',
        scope: 'three',
        text: 'three has not taken it (it has not asked for the set): it may still keep the member drained',
      },
    ])
    processes(lb)
    await clock.runUntil(undone)
  })

  test('is unreachable after 30 s, names it, and keeps the ticket', async () => {
    const { clock, lb, tickets, run } = await held()
    processes(lb, { inForce: false })
    const undone = run.restore()
    const after = settling(clock, undone)
    const { outcome, error } = only(await clock.runUntil(undone))
    expect([outcome, error?.code, tickets.map.has('job')]).toEqual([
      'unreachable',
      'UNREACHABLE',
      true,
    ])
    expect(error?.message).toContain(
      'web/web1 is open, but not every process has taken that: three',
    )
    expect(error?.message).not.toMatch(/: (one|two)/)
    expect(after()).toBeGreaterThanOrEqual(30_000)
    expect(after()).toBeLessThan(32_000)
  })

  test('names a few of many, and counts the others', async () => {
    const { clock, lb, run } = await held()
    const many = ['one', 'two', 'three', 'four', 'five']
    lb.setScopes(many.map((scope) => ({ scope, inForce: false })))
    const { error } = only(await clock.runUntil(run.restore()))
    expect(error?.message).toMatch(/: one .*; two .*; three .*; and 2 more; they may keep it/)
  })

  test('is over by the same ticket in another process later', async () => {
    const { clock, lb, tickets, run } = await held()
    processes(lb, { inForce: false })
    await clock.runUntil(run.restore())
    const ticket = json((await tickets.get('job')) as Ticket)
    processes(lb)
    const report = await clock.runUntil(restore(lb, ticket, { clock, tickets }))
    expect([only(report).outcome, tickets.map.has('job')]).toEqual(['restored', false])
  })

  test('waits for one that can not be read', async () => {
    const { clock, lb, run } = await held()
    processes(lb, { state: 'unread' })
    const { outcome, error } = only(await clock.runUntil(run.restore()))
    expect(outcome).toBe('unreachable')
    expect(error?.message).toContain("three can't be read")
  })

  test('does not wait for an old one', async () => {
    const { clock, lb, run } = await held()
    processes(lb, { inForce: false, old: true })
    const undone = run.restore()
    const after = settling(clock, undone)
    expect(only(await clock.runUntil(undone)).outcome).toBe('restored')
    expect(after()).toBeLessThan(1_000)
  })

  test('does not wait for a state that is not its own', async () => {
    const { clock, lb, run } = await held()
    lb.setInherited(web1, 'drain')
    expect(only(await clock.runUntil(run.restore())).outcome).toBe('restored')
  })

  test('ends after 5 s on an abort, and keeps the ticket', async () => {
    const { clock, lb } = rig({ scopes: NAMES })
    const tickets = memoryStore()
    const stop = new AbortController()
    lb.occupy(web1)
    const options = { clock, tickets, id: 'job', signal: stop.signal, onAbort: 'restore' } as const
    const run = startDrain(lb, web1, options)
    await clock.advance(2_000)
    processes(lb, { inForce: false })
    stop.abort(new Error('enough'))
    const after = settling(clock, run.done)
    const { outcome, error } = only(await clock.runUntil(run.done))
    expect([outcome, error?.code, tickets.map.has('job')]).toEqual(['aborted', 'UNREACHABLE', true])
    expect(after()).toBeLessThan(7_500)
  })
})

describe('ready() with a process that has not taken it', () => {
  test('resolves once that one has', async () => {
    const { clock, lb, tickets, run } = await held()
    await clock.runUntil(run.release())
    processes(lb, { inForce: false })
    const opened = ready(lb, web1, { clock })
    const after = settling(clock, opened)
    await clock.advance(10_000)
    expect([after(), tickets.map.has('job')]).toEqual([undefined, true])
    processes(lb)
    await clock.runUntil(opened)
    expect(tickets.map.has('job')).toBe(false)
  })

  test('rejects after 30 s, even without a limit of its own', async () => {
    const { clock, lb, tickets, run } = await held()
    await clock.runUntil(run.release())
    processes(lb, { inForce: false })
    const opened = thrown(ready(lb, web1, { clock, timeout: Infinity }))
    const after = settling(clock, opened)
    expect(await clock.runUntil(opened)).toMatchObject({ code: 'UNREACHABLE', ref: web1 })
    expect(after()).toBeLessThan(32_000)
    expect(tickets.map.has('job')).toBe(true)
  })
})
