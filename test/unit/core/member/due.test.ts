import { describe, expect, test } from 'vitest'
import { dueIn } from '../../../../src/core/member/time/deadline.js'
import { failure, held, idle, started, type MemberRun } from './member-run.js'

/** Milliseconds until something can change by time alone. */
function due(run: MemberRun): number | null {
  return dueIn(run.claimed, run.now)
}

describe('what time alone can change', () => {
  test('is nothing before the first look', () => {
    expect(due(started())).toBe(null)
  })

  test('is the deadline', () => {
    expect(due(started({ timeout: 700 }).wait(300))).toBe(400)
  })

  test('is not a deadline that has passed', () => {
    expect(due(started({ timeout: 700 }).wait(700))).toBe(null)
  })

  test('is not a deadline after the end, nor under another goal', () => {
    expect(due(started({ timeout: 700 }).end('aborted'))).toBe(null)
    expect(due(started({ timeout: 700, goal: { kind: 'watch' } }))).toBe(null)
  })

  test('is an escalation that is to come', () => {
    const run = held({ escalateAfter: 700, scopes: { w1: { active: 1 } } }).look()
    expect(due(run)).toBe(1_700 - run.now)
    expect(due(run.look({ after: 700 }).answer().look())).toBe(null)
  })

  test('is now if an escalation is late', () => {
    expect(due(started({ escalateAfter: 700 }).wait(800))).toBe(0)
  })

  test('is a pause before the next try', () => {
    const run = started().look().refuse(failure('CONFLICT', true)).look()
    expect(due(run)).toBe(240)
    expect(due(run.wait(240))).toBe(null)
  })

  test('is the end of the wait for a cut to show', () => {
    const run = held({ timeout: 100, onTimeout: 'terminate', scopes: { w1: { active: 1 } } })
    run.look({ after: 200 }).answer().scope('w1', { active: 0, inForce: false })
    expect(due(run.look({ after: 200 }))).toBe(run.claim.ending.terminateUntil! - run.now)
  })

  test('is the moment when a hold that left too few is undone', () => {
    const run = held({ onMinimum: 'wait' })
    run.look({ floor: failure('POOL_AT_MINIMUM'), random: 0.5 })
    expect(due(run)).toBe(500)
  })

  test('is not a second look at a gone member with a process at work', () => {
    const run = held({ scopes: { w1: { active: 1 } } })
      .look()
      .vanish()
      .look()
    expect(due(run)).toBe(20)
    expect(due(run.look({ after: 10 }))).toBe(10)
    expect(due(run.look({ after: 10 }))).toBe(null)
  })

  test('is not an escalation that a look could not act on', () => {
    const run = held({ escalateAfter: 700, settle: 0, until: 'removed' }).idle()
    expect(run.answer('applied').outcome).toBe('removed')
    const waits = held({ escalateAfter: 700, settle: 0, until: 'removed' }).idle().lose('not done')
    expect(waits.look({ after: 900 }).phase).toBe('idle')
    expect(due(waits)).not.toBe(0)
  })

  test('is not the bound of a late change beside a contradiction', () => {
    const run = started({ lateBound: 90 }).look().lose().set({ own: 'unknown' }).look()
    expect(due(run)).toBe(90)
    expect(due(run.look({ after: 90 }))).toBe(null)
  })

  test('is the bound of a change that may be late', () => {
    const run = started({ lateBound: 90 }).look().lose().look()
    expect(due(run)).toBe(90)
  })

  test('is the second look at a member absent once', () => {
    expect(due(held().vanish().look({ took: 5 }))).toBe(15)
    expect(due(held({ freshness: 80 }).vanish().look())).toBe(80)
  })

  test('is the limit of an undo', () => {
    const run = held().set({ own: 'unknown' }).look()
    expect(due(run.open({ until: run.now + 70 }))).toBe(70)
    expect(due(run.open({ lateUntil: run.now + 60 }))).toBe(60)
    expect(due(run.wait(60).open({ lateUntil: run.now }))).toBe(null)
  })

  test('is the nearest of them', () => {
    expect(due(started({ timeout: 700, escalateAfter: 500 }))).toBe(500)
  })
})

describe('a look at a product whose numbers are old when they are read', () => {
  const stale = { stale: 400, took: 30 }

  test('is due when they can be from after the hold', () => {
    const run = held({ freshness: 400 }).lookAt(10, stale)
    expect(run.now - run.origin).toBe(40)
    expect(due(run)).toBe(400 + 1 - 40)
  })

  test('is due when they can be a second sample', () => {
    const run = held({ freshness: 400, settle: 100 }).lookAt(10, stale).lookAt(410, stale)
    expect(due(run)).toBe(10 + 400 + 400 + 1 - 440)
    expect(run.lookAt(811, stale).phase).toBe('idle')
  })

  test('is due when they can be from after the seal', () => {
    const run = held({ freshness: 400, settle: 100, seal: 'gentle' })
    run.lookAt(10, stale).lookAt(410, stale).lookAt(811, stale)
    expect(run.sent).toBe('hold maint')
    const sealed = run.answer().now
    run.lookAt(900, stale)
    expect(run.phase).toBe('draining')
    const again = run.now + due(run)!
    expect(again).toBe(sealed + 400 + 1)
    expect(run.lookAt(again - run.origin, stale).phase).toBe('idle')
  })
})

describe('the earliest moment the rule can be satisfied', () => {
  function quiet(run: MemberRun): number | null {
    const wait = due(run)
    return wait === null ? null : run.now + wait - run.origin
  }

  test('is the end of the quiet time', () => {
    expect(quiet(held().lookAt(400))).toBe(1_000)
    expect(due(held().lookAt(400))).toBe(600)
  })

  test('is the end of the last quiet time of several processes', () => {
    const run = held({ scopes: { w2: {} } })
      .lookAt(100)
      .scope('w1', { arrivals: 101 })
      .lookAt(300)
    expect(quiet(run)).toBe(1_300)
    run.scope('w2', { arrivals: 101 }).lookAt(500)
    expect(quiet(run)).toBe(1_500)
  })

  test('is the second sample', () => {
    const run = held({ freshness: 400, scopes: { w1: { active: 1 } } }).lookAt(1_500)
    expect(quiet(run.scope('w1', { active: 0 }).lookAt(2_000))).toBe(2_400)
  })

  test('is the second sample, counted from when the first is from', () => {
    const run = held({ freshness: 400, scopes: { w1: { active: 1 } } }).lookAt(1_500)
    run.scope('w1', { active: 0 }).lookAt(2_000, { stale: 100 })
    // A look shows it once numbers that are 100 ms old are from that moment.
    expect(quiet(run)).toBe(2_300 + 100 + 1)
  })

  test('is a moment later if only the clock of the product is behind', () => {
    const run = held({ blind: 1_100, scopes: { w1: { lived: 0 } } })
      .lookAt(100)
      .lookAt(2_000)
    expect(quiet(run)).toBe(2_001)
  })

  test('is the end of 3 s if arrivals are not counted', () => {
    const run = held({ scopes: { w1: { arrivals: undefined as never } } })
      .lookAt(100)
      .lookAt(400)
    expect(quiet(run)).toBe(3_100)
  })

  test('is a moment later without arrivals, if only that clock is behind', () => {
    const scopes = { w1: { arrivals: undefined as never, lived: 0 } }
    expect(quiet(held({ blind: 1_100, scopes }).lookAt(100).lookAt(4_000))).toBe(4_001)
  })

  test('is not known while work is in flight', () => {
    expect(quiet(held({ scopes: { w1: { active: 1 } } }).lookAt(400))).toBe(null)
  })

  test('is unknown while one process is not in force, or not read', () => {
    expect(quiet(held({ scopes: { w2: { inForce: false } } }).lookAt(400))).toBe(null)
    expect(quiet(held({ scopes: { w2: { state: 'unread' } } }).lookAt(400))).toBe(null)
  })

  test('is unknown while the product has not said that it is released', () => {
    expect(quiet(held({ counts: 'none' }).lookAt(400))).toBe(null)
  })

  test('is unknown without a hold', () => {
    expect(quiet(started().look())).toBe(null)
  })

  test('does not exist for an idle member', () => {
    expect(quiet(idle())).toBe(null)
    expect(quiet(idle({ seal: 'gentle' }))).toBe(null)
  })

  test('is that of the processes that lack something', () => {
    const run = held({ scopes: { w2: {} } })
      .lookAt(500)
      .scope('w2', { arrivals: 101 })
      .lookAt(1_010)
    expect(quiet(run)).toBe(2_010)
  })
})
