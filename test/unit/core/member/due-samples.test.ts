import { describe, expect, test } from 'vitest'
import { dueIn } from '../../../../src/core/member/time/deadline.js'
import { held, idle, started, type MemberRun } from './member-run.js'

/** Milliseconds until something can change by time alone. */
function due(run: MemberRun): number | null {
  return dueIn(run.claimed, run.now)
}

describe('the next sample that can count', () => {
  test('is due at once after the hold took effect', () => {
    expect(due(held())).toBe(1)
    expect(due(held({ freshness: 400 }))).toBe(1)
  })

  test('is due when the quiet time is over', () => {
    expect(due(held({ freshness: 400 }).lookAt(10))).toBe(990)
  })

  test('is due for the process that needs it last', () => {
    const run = held({ scopes: { w2: {} } })
      .lookAt(500)
      .scope('w1', { arrivals: 101 })
      .lookAt(510)
    expect(due(run)).toBe(1_000)
    const other = held({ scopes: { w2: {} } })
      .lookAt(500)
      .scope('w2', { arrivals: 101 })
      .lookAt(510)
    expect(due(other)).toBe(1_000)
  })

  test('is not due for a process that lacks nothing', () => {
    const run = held({ scopes: { w2: {} } })
      .lookAt(500)
      .scope('w2', { arrivals: 101 })
      .lookAt(1_010)
    expect(due(run)).toBe(1_000)
  })

  test('is asked for later by as much as numbers are old', () => {
    const run = held({ freshness: 400 }).lookAt(500, { stale: 100 })
    expect(due(run)).toBe(500 + 100 + 1)
  })

  test('is asked for later even with numbers 1 ms old', () => {
    expect(due(held({ freshness: 400 }).lookAt(500, { stale: 1 }))).toBe(500 + 1 + 1)
  })

  test('is not needed from a product that says that it is released', () => {
    const scopes = { w1: { released: true } }
    expect(due(held({ settle: 300, freshness: 400, scopes }).lookAt(10))).toBe(290)
  })

  test('is asked for later by the freshness at most', () => {
    const run = held({ freshness: 400 }).lookAt(900, { stale: 700 })
    expect(due(run)).toBe(100 + 400 + 1)
  })

  test('is not due while work is in flight, whatever the moment', () => {
    const scopes = { w1: { active: 2 }, w2: { active: 1, queued: 1 } }
    expect(due(held({ scopes }))).toBe(null)
    expect(due(held({ scopes: { w1: { active: 1, queued: 1 } } }))).toBe(null)
  })

  test('does not exist for an idle member', () => {
    expect(due(idle())).toBe(null)
    expect(due(idle({ seal: 'gentle' }))).toBe(null)
  })

  test('does not exist before the first look, nor without a hold', () => {
    expect(due(started())).toBe(null)
    expect(due(started({ goal: { kind: 'watch' }, own: 'drain' }).fail())).toBe(null)
  })
})

describe('the sample that a sealed verdict waits for', () => {
  /** Sealed by us, in the moment of a look. */
  const sealed = (stale = 0): MemberRun => {
    const run = held({ seal: 'gentle', freshness: 400 }).lookAt(100, { stale })
    run.lookAt(2_000, { stale })
    expect(run.sent).toBe('hold maint')
    return run.answer()
  }

  test('is due at once', () => {
    expect(due(sealed())).toBe(1)
  })

  test('is asked for later by as much as numbers are old', () => {
    expect(due(sealed(90))).toBe(90 + 1)
  })

  test('must be from after the seal', () => {
    const run = sealed().look({ stale: 50 })
    expect(run.phase).toBe('draining')
    expect(due(run)).toBe(41)
    expect(run.look({ stale: 5 }).phase).toBe('idle')
  })
})
