import { describe, expect, test } from 'vitest'
import { held, type MemberRun } from '../member-run.js'

/** An undo that was answered, and that so many processes beside the first have not taken. */
function opened(count: number, until?: number): MemberRun {
  const names = Array.from({ length: count }, (_, i) => `w${i + 2}`)
  const scopes = Object.fromEntries(names.map((name) => [name, { inForce: true }]))
  const run = held({ scopes }).look()
  run
    .open(until === undefined ? {} : { until: run.now + until })
    .look()
    .answer()
  for (const name of names) run.scope(name, { inForce: false })
  return run.look()
}

describe('an undo that processes do not take', () => {
  test('ends after 30 s, and not a moment earlier', () => {
    const run = opened(1)
    const begun = run.now
    run.look({ after: 29_999 })
    expect(run.outcome).toBe(null)
    run.look({ after: 1 })
    expect(run.now - begun).toBe(30_000)
    expect(run.outcome).toBe('unreachable')
  })

  test('ends with its own limit where that is nearer', () => {
    const run = opened(1, 2_000)
    run.look({ after: 500 })
    expect(run.outcome).toBe(null)
    run.look({ after: 1_500 })
    expect(run.outcome).toBe('unreachable')
  })

  test('has 30 s anew for a process that lost it after all had taken it', () => {
    const run = held({ scopes: { w2: { inForce: true } } }).look()
    run
      .open({ until: run.now + 600_000, mustBeHealthy: true })
      .look()
      .answer()
      .set({ health: 'down' })
    run.scope('w2', { inForce: false }).look()
    run.scope('w2', { inForce: true }).look({ after: 5_000 })
    run.scope('w2', { inForce: false }).look({ after: 30_000 })
    expect(run.outcome).toBe(null)
    run.look({ after: 29_999 })
    expect(run.outcome).toBe(null)
    run.look({ after: 1 })
    expect(run.outcome).toBe('unreachable')
  })

  test('has 30 s anew after a reload, once it is opened again', () => {
    const run = held({ scopes: { w2: { inForce: true } } }).look()
    run
      .open({ of: 'anybody', until: run.now + 600_000 })
      .look()
      .answer()
    run.scope('w2', { inForce: false }).look()
    run.set({ own: 'drain' }).scope('w1', { incarnation: 'w1.2' }).look({ after: 20_000 }).answer()
    run.look({ after: 10 })
    const again = run.now
    run.look({ after: 29_999 })
    expect(run.outcome).toBe(null)
    run.look({ after: 1 })
    expect([run.outcome, run.now - again]).toEqual(['unreachable', 30_000])
  })

  test('names three processes', () => {
    const run = opened(3).look({ after: 30_000 })
    expect(run.error?.message).toContain(
      'w2 has not taken it; w3 has not taken it; w4 has not taken it; they may keep it drained',
    )
  })

  test('names three of five, and how many more there are', () => {
    const run = opened(5).look({ after: 30_000 })
    expect(run.error?.message).toContain(
      'w4 has not taken it; and 2 more; they may keep it drained',
    )
  })
})
