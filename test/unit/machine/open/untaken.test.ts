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
