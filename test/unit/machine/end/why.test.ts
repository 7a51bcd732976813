import { openGoal } from 'drainable/machine'
import { describe, expect, test } from 'vitest'
import { failure, held, idle, started } from '../member-run.js'

describe('why() of a drain names', () => {
  test('work in flight, and how much', () => {
    const run = held({ scopes: { w1: { active: 2 } } }).look()
    expect(run.why).toMatchObject([
      { code: 'in-flight', scope: 'w1', count: 2, ref: run.state.ref },
    ])
  })

  test('queued work, and how much', () => {
    expect(held({ scopes: { w1: { queued: 3 } } }).look().why).toMatchObject([
      { code: 'queued', scope: 'w1', count: 3 },
    ])
  })

  test('clients that came after the hold took effect', () => {
    const run = held({ scopes: { w1: { active: 1 } } })
      .look()
      .scope('w1', { arrivals: 102 })
      .look()
    expect(run.why).toMatchObject([{ code: 'persistence', count: 2 }, { code: 'in-flight' }])
  })

  test('clients that came, but not beside queued work', () => {
    const run = held({ scopes: { w1: { queued: 1 } } })
      .look()
      .scope('w1', { arrivals: 102 })
      .look()
    expect(run.codes).toEqual(['queued'])
  })

  test('no clients that came if arrivals fell', () => {
    const run = held({ scopes: { w1: { active: 1 } } })
      .look()
      .scope('w1', { arrivals: 90 })
      .look()
    expect(run.codes).toEqual(['in-flight'])
  })

  test('work unchanged for a minute', () => {
    const run = held({ scopes: { w1: { active: 1 } } }).look({ after: 59_999 })
    expect(run.codes).toEqual(['in-flight'])
    expect(run.look({ after: 1 }).codes).toEqual(['in-flight', 'long-lived'])
  })

  test('work whose age the product tells', () => {
    const one = held({ scopes: { w1: { active: 1, oldest: 30_000 } } }).look()
    expect(one.why).toMatchObject([{ code: 'in-flight', oldest: 30_000 }])
    expect(one.why[0]?.text).toBe('1 in flight, for 30 s')
    const three = held({ scopes: { w1: { active: 3, oldest: 7_440_000 } } }).look()
    expect(three.codes).toEqual(['in-flight', 'long-lived'])
    expect(three.why[0]?.text).toBe('3 in flight, the oldest for 2 h 4 m')
    expect(three.why[0]?.hint).toContain("onTimeout: 'terminate'")
  })

  test('the age of work on a process that was replaced', () => {
    const run = held({ scopes: { w1: { active: 2, old: true, oldest: 61_000 } } }).look()
    expect(run.why).toMatchObject([{ code: 'old-scope', oldest: 61_000 }])
    expect(run.why[0]?.text).toContain('the oldest for 1 m 1 s')
  })

  test('work on a process that was replaced', () => {
    const run = held({ scopes: { w1: { active: 2, old: true } } }).look()
    expect(run.why).toMatchObject([{ code: 'old-scope', scope: 'w1', count: 2 }])
  })

  test('a process that can not be read, and what it says', () => {
    const run = held({ scopes: { w2: { state: 'unread', note: 'no socket' } } }).look()
    expect(run.why).toMatchObject([{ code: 'unreadable', scope: 'w2' }])
    expect(run.why[0]?.text).toContain('(no socket)')
  })

  test('a process that has not taken the drain', () => {
    const run = held({ scopes: { w1: { inForce: false } } }).look()
    expect(run.why).toMatchObject([{ code: 'not-in-force', scope: 'w1' }])
    expect(run.why[0]?.text).toContain('has not taken the drain')
  })

  test('a process that is at another state', () => {
    const run = held({ hold: 'maint', scopes: { w1: { admin: 'drain' } } }).look()
    expect(run.why[0]?.text).toContain('w1 is at drain')
  })

  test('a replaced process that has not taken it', () => {
    const run = held({ scopes: { w1: { admin: 'ready', old: true } } }).look()
    expect(run.why).toMatchObject([{ code: 'old-scope', scope: 'w1' }])
  })

  test('no process before a hold was confirmed', () => {
    expect(started({ scopes: { w1: { inForce: false } } }).look().codes).not.toContain(
      'not-in-force:w1',
    )
    expect(started({ scopes: { w1: { inForce: false } } }).look().why).toMatchObject([
      { code: 'not-in-force', text: 'web/web1 has not taken the drain yet' },
    ])
  })

  test('a replaced process before a hold was confirmed', () => {
    const run = started({ scopes: { w1: { admin: 'ready', old: true } } }).look()
    expect(run.why[0]).toMatchObject({ code: 'old-scope', scope: 'w1' })
  })

  test('the hold that is not in force yet', () => {
    expect(started({ hold: 'maint' }).look().why[0]?.text).toContain('has not taken the maint yet')
  })

  test('nothing before the first look', () => {
    expect(started().why).toEqual([])
  })

  test('a state that contradicts itself', () => {
    const run = held()
      .set({ own: 'unknown', hints: ['two answers'] })
      .look()
    expect(run.why[0]).toMatchObject({ code: 'unreadable' })
    expect(run.why[0]?.text).toContain(
      'contradicts itself about the state of this member (two answers)',
    )
  })

  test('a balancer that can not be read', () => {
    const run = held().look().fail(failure('CONNECTION_LOST'))
    expect(run.why[0]).toMatchObject({ code: 'unreadable' })
    expect(run.why[0]?.text).toContain('the balancer says CONNECTION_LOST')
  })

  test('the quiet time and what is left of it', () => {
    const run = held().lookAt(400)
    expect(run.why).toMatchObject([{ code: 'settling', scope: 'w1' }])
    expect(run.why[0]?.text).toContain('for another 600 ms')
  })

  test('the second sample and when it is due', () => {
    const run = held({ freshness: 400, scopes: { w1: { active: 1 } } }).lookAt(1_500)
    run.scope('w1', { active: 0 }).lookAt(2_000)
    expect(run.why).toMatchObject([{ code: 'freshness', scope: 'w1' }])
    expect(run.why[0]?.text).toContain('due in 400 ms')
  })

  test('a product without counts', () => {
    expect(held({ counts: 'none' }).look().why).toMatchObject([{ code: 'no-counts', scope: 'w1' }])
  })

  test('the hints of the product, with the first reason', () => {
    const run = held({ scopes: { w1: { active: 1 } }, present: { hints: ['3 records'] } }).look()
    expect(run.why).toMatchObject([{ code: 'in-flight' }, { code: 'in-flight', text: '3 records' }])
  })

  test('only the processes that lack something', () => {
    const run = held({ scopes: { w2: {} } })
      .lookAt(500)
      .scope('w1', { arrivals: 101 })
      .lookAt(1_010)
    expect(run.why.map(({ scope }) => scope)).toEqual(['w1'])
  })

  test('a process without a note', () => {
    const run = held({ scopes: { w2: { state: 'unread' } } }).look()
    expect(run.why[0]?.text).toContain("w2 can't be read: its load")
  })

  test('no lost hold once it is in place', () => {
    const run = started({ lateBound: 9_000 }).look().lose().look().answer().lookAt(500)
    expect(run.state.hold.late).toHaveLength(1)
    expect(run.codes).toEqual(['settling'])
  })

  test('a lost undo, even while the hold is in place', () => {
    const change = {
      kind: 'restore' as const,
      ref: { pool: 'web', member: 'web1' },
      expect: 'drain' as const,
      to: 'ready' as const,
    }
    const late = [{ change, lostAt: 900, until: null, lackedAt: 900 }]
    const run = started({ own: 'drain', lateBound: 9_000 }).put({ type: 'inherit', late })
    run.look().answer().look()
    expect(run.codes).toContain('not-in-force')
  })

  test('a lost raise while the drain is in place', () => {
    const run = held({ escalateAfter: 100, lateBound: 9_000, scopes: { w1: { active: 1 } } })
    run.look({ after: 200 }).lose().look({ after: 10 })
    expect(run.codes).not.toContain('overruled')
  })

  test('the floor and the state that was wished when it refused', () => {
    const run = started({ onMinimum: 'wait', hold: 'maint', present: { maint: 'cuts' } }).look()
    expect(run.why[0]?.text).toContain('has not taken the drain yet')
  })

  test('the state wished by the policy, before any wish', () => {
    const run = started({ hold: 'maint' }).unlist('w1').set({ own: 'unknown' }).look()
    expect(run.codes).toEqual(['unreadable'])
  })

  test('no hold after an end without one', () => {
    const run = started().look().put({ type: 'end', outcome: 'aborted' })
    expect(run.why).toEqual([])
  })

  test('no missing process once all have ended', () => {
    const run = held({ seal: 'gentle' }).scope('w1', { state: 'ended' }).look()
    expect(run.sent).toBe('hold maint')
    expect(run.codes).not.toContain('unreadable')
  })

  test('no hints without a reason', () => {
    expect(idle({ present: { hints: ['3 records'] } }).why).toEqual([])
  })

  test('nothing if it is idle', () => {
    expect(idle().why).toEqual([])
  })

  test('no hints while only the floor is to be decided', () => {
    const floor = { floor: failure('POOL_AT_MINIMUM'), random: 1 }
    const run = held({ settle: 0, onMinimum: 'wait', present: { hints: ['3 records'] } })
    run.look(floor).look({ ...floor, after: 100 })
    expect(run.phase).toBe('draining')
    expect(run.codes).toEqual(['pool-at-minimum'])
    expect(run.why[0]?.text).toBe(
      'web/web1: since it was held, too few other members serve; it will be opened again unless that changes',
    )
  })

  test('hints with the code of the first reason', () => {
    const hints = ['3 records', '2 sessions']
    const run = held({ present: { hints }, scopes: { w1: { queued: 1 } } }).look()
    expect(run.codes).toEqual(['queued', 'queued', 'queued'])
  })

  test('a failed look before there was a reading', () => {
    expect(started().fail().codes).toEqual(['unreadable'])
  })

  test('a replaced process that tells no state and has not taken it', () => {
    const run = held({ scopes: { w2: { old: true, inForce: false } } }).look()
    expect(run.codes).toEqual(['not-in-force'])
  })

  test('no work of a process that can not be read', () => {
    const run = held({ scopes: { w1: { active: 1 } } }).look()
    expect(run.scope('w1', { state: 'unread' }).look().codes).toEqual(['unreadable'])
  })

  test('a hold without an answer on a member that was there already', () => {
    const run = started({ own: 'drain' }).look()
    expect(run.codes).toEqual(['not-in-force'])
    expect(run.why[0]?.text).toContain('has not taken the drain yet')
  })

  test('the quiet time, before the first sample that counts', () => {
    const run = held({ own: 'drain' })
    expect(run.why[0]?.text).toBe('0 in flight; the next look decides')
  })

  test('only unreleased processes if nothing is counted', () => {
    const run = held({ counts: 'none', scopes: { w1: { released: true }, w2: {} } }).look()
    expect(run.why).toMatchObject([{ code: 'no-counts', scope: 'w2' }])
  })

  test('no missing process once the last has ended', () => {
    const run = held({ onMinimum: 'wait' }).scope('w1', { state: 'ended' })
    run.look({ floor: failure('POOL_AT_MINIMUM'), random: 1 })
    expect(run.codes).toEqual(['pool-at-minimum'])
  })

  test('no missing process of an absent member', () => {
    const run = started().vanish().unlist('w1').look()
    expect(run.why.map(({ text }) => text)).toEqual([
      'web/web1 is absent in the newest look; a later look decides whether it is gone',
    ])
  })

  test('one client that came after the hold took effect', () => {
    const run = held().look().scope('w1', { arrivals: 101 }).look()
    expect(run.why).toMatchObject([{ code: 'persistence', count: 1 }])
  })

  test('a current process at another state', () => {
    const run = held({ scopes: { w1: { admin: 'ready' } } }).look()
    expect(run.codes).toEqual(['not-in-force'])
  })

  test('what a drain waits for, before its first look in another step', () => {
    const run = held().look()
    run.state = { ...run.state, last: null }
    expect(run.why).toEqual([])
  })

  test('what prevents a second idle', () => {
    expect(idle().settle().scope('w1', { active: 1 }).look().codes).toEqual(['in-flight'])
  })
})

describe('why() of an unverified idle names', () => {
  test('a process that ended with work', () => {
    const run = held({ scopes: { w2: { active: 2 } } })
      .scope('w2', { state: 'ended' })
      .idle()
    expect(run.why).toMatchObject([{ code: 'old-scope', scope: 'w2', count: 2 }])
  })

  test('the hints of the provider', () => {
    const run = idle({ present: { unverified: 'no stats socket' } })
    expect(run.why).toMatchObject([{ code: 'unreadable', text: 'no stats socket' }])
  })

  test('a product without counts', () => {
    const run = held({ counts: 'none' }).scope('w1', { released: true }).look()
    expect(run.why[0]?.text).toContain('does not count work')
  })

  test('nothing for a removed member', () => {
    const run = held({ until: 'removed' }).lookAt(100).lookAt(1_000).answer()
    expect(run.why).toEqual([])
  })

  test('also the balancer that can not be read now', () => {
    expect(idle().fail().codes).toEqual([])
    expect(idle().settle().fail().put({ type: 'release' }).codes).toEqual([])
  })
})

describe('why() of a member that is not open names', () => {
  test('its state and its health, with since when', () => {
    const goal = openGoal({ of: 'anybody', until: null, lateUntil: null, mustBeHealthy: true })
    const run = started({ goal, own: 'drain', present: { health: 'down' } }).look()
    expect(run.why).toMatchObject([{ code: 'settling' }])
    expect(run.why[0]?.text).toBe("web/web1 is 'drain', health down, for 10 ms")
  })

  test('only the lost change if it is open already', () => {
    const run = started({ lateBound: 9_000 }).look().lose().open().look()
    expect(run.codes).toEqual(['not-in-force'])
  })

  test('its health if it is ready', () => {
    const goal = openGoal({ of: 'anybody', until: null, lateUntil: null, mustBeHealthy: true })
    const run = started({ goal, own: 'ready', present: { health: 'down' } }).look()
    expect(run.why[0]?.text).toContain("is 'ready', health down")
  })

  test('a state that contradicts itself', () => {
    expect(held().set({ own: 'unknown' }).look().open().look().codes).toEqual(['unreadable'])
  })

  test('a balancer that can not be read', () => {
    expect(held().look().open().fail().codes).toEqual(['unreadable'])
  })

  test('nothing once it is restored', () => {
    expect(held().look().open().look().answer().look().why).toEqual([])
  })

  test('no processes', () => {
    const run = held({ scopes: { w2: { state: 'unread', active: 2 } } })
      .look()
      .open()
      .look()
    expect(run.codes).toEqual(['settling'])
  })
})

test('why() names a process that is not listed any more, and what to do', () => {
  const run = held({ scopes: { w2: { active: 4, note: 'was replaced' } } })
    .look()
    .unlist('w2')
    .look()
  const [why] = run.why
  expect(why).toMatchObject({ code: 'unreadable', scope: 'w2' })
  expect(why?.text).toContain('nothing reported its end')
  expect(why?.text).not.toContain('was replaced')
  expect(why?.hint).toContain('connect to an endpoint that shows every process')
  run.scope('w2', { state: 'unread', note: 'no route' }).look()
  expect(run.why[0]?.hint).toBe('make it readable, or wait until it has ended')
})
