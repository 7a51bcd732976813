import { describe, expect, test } from 'vitest'
import { failure, held, idle, started, type RunOptions } from '../member-run.js'

const busy: RunOptions = { escalateAfter: 500, scopes: { w1: { active: 1 } } }

describe('escalateAfter', () => {
  test('raises a drain to maint that long after the start', () => {
    const run = held(busy)
    expect(run.look({ after: 1_499 - run.now }).sent).toBe(null)
    expect(run.look({ after: 1 }).sent).toBe('hold maint')
  })

  test('raises it once', () => {
    const run = held(busy).looks(600).answer().looks(5_000)
    expect(run.sentSoFar).toEqual(['hold drain', 'hold maint'])
  })

  test('is off by default', () => {
    expect(held({ ...busy, escalateAfter: null }).looks(5_000).sentSoFar).toEqual(['hold drain'])
  })

  test('does not raise an idle member', () => {
    expect(idle({ escalateAfter: 2_000 }).looks(3_000).sentSoFar).toEqual(['hold drain'])
  })

  test('does not raise an idle member that waits for its removal', () => {
    const run = started({ until: 'removed', lateBound: 9_000, escalateAfter: 2_000 }).look().lose()
    run.look().answer().looks(3_000)
    expect(run.phase).toBe('idle')
    expect(run.sentSoFar).toEqual(['hold drain', 'hold drain'])
  })

  test('is followed by the whole rule if it is off for an idle member', () => {
    const run = idle({ escalateAfter: 60_000 }).scope('w1', { arrivals: 101 }).look()
    expect(run.said).toContain('idle-lost')
  })

  test('is followed by the whole rule in a look that may not raise', () => {
    const run = held({ escalateAfter: 1_010, maint: 'cuts' }).lookAt(500).lookAt(1_000)
    expect(run.phase).toBe('idle')
  })

  test('is followed by the whole rule if the member is in maint', () => {
    const run = started({ own: 'maint', escalateAfter: 1_010 }).look().answer('unchanged').mark()
    expect(run.lookAt(500).lookAt(1_000).phase).toBe('idle')
  })

  test('is followed by the whole rule if the raise was refused as a seal', () => {
    const run = held({ seal: 'gentle', escalateAfter: 1_500 }).lookAt(100).lookAt(1_000)
    run.refuse(failure('FORBIDDEN')).scope('w1', { arrivals: 101 }).lookAt(1_100).looks(3_000)
    expect(run.phase).toBe('idle')
    expect(run.sentSoFar).toEqual(['hold drain', 'hold maint'])
  })

  test('is followed by the whole rule in the look in which the raise is due', () => {
    const run = held({ seal: 'gentle', escalateAfter: 2_110 }).lookAt(100).lookAt(1_000)
    run.refuse(failure('FORBIDDEN')).scope('w1', { arrivals: 101 }).lookAt(1_100).lookAt(1_500)
    expect(run.lookAt(2_100).phase).toBe('idle')
  })

  test('refused for good is not tried again as a seal', () => {
    const run = held({ ...busy, seal: 'gentle' })
      .looks(600)
      .refuse(failure('FORBIDDEN'))
    expect(run.scope('w1', { active: 0 }).idle().sentSoFar).toEqual(['hold drain', 'hold maint'])
    expect(run.state.proof.sealed).toBe(false)
  })

  test('starts the rule anew after a seal that was not found', () => {
    const run = held({ seal: 'gentle', escalateAfter: 2_110 }).lookAt(100).lookAt(1_000)
    run.refuse(failure('NOT_FOUND')).lookAt(2_110)
    expect(run.sent).toBe('hold maint')
    expect(run.answer().look().phase).toBe('draining')
  })

  test('refused for good is not tried again after a put-back', () => {
    const run = held(busy).looks(500).refuse(failure('FORBIDDEN')).look({ after: 300 })
    run.set({ own: 'ready' }).scope('w1', { incarnation: 'w1.2' }).look().answer().looks(2_000)
    expect(run.sentSoFar).toEqual(['hold drain', 'hold maint', 'hold drain'])
  })

  test('that succeeded is not asked for again after a refused cut', () => {
    const run = held({ ...busy, timeout: 3_000, onTimeout: 'terminate' })
      .looks(600)
      .answer()
    run.look().look({ after: 4_000 }).refuse(failure('CONFLICT', true))
    expect(run.state.hold.escalated).toBe(true)
  })

  test('does not raise after the end', () => {
    const run = held({ ...busy, escalateAfter: 2_000, timeout: 1_500 }).looks(5_000)
    expect(run.outcome).toBe('timeout')
    expect(run.sentSoFar).toEqual(['hold drain'])
  })

  test('does not raise a member in maint', () => {
    const run = started({ ...busy, own: 'maint' })
      .look()
      .answer('unchanged')
      .looks(5_000)
    expect(run.sentSoFar).toEqual(['hold drain'])
  })

  test('does not raise a member that is sealed', () => {
    const run = held({ ...busy, present: { sealed: true } }).looks(5_000)
    expect(run.sentSoFar).toEqual(['hold drain'])
  })

  test('does not raise if maint cuts', () => {
    expect(held({ ...busy, maint: 'cuts' }).looks(5_000).sentSoFar).toEqual(['hold drain'])
  })

  test("raises if maint cuts on the caller's word", () => {
    const run = held({ ...busy, maint: 'cuts', onTimeout: 'terminate' }).looks(600)
    expect(run.sent ?? run.sentSoFar.at(-1)).toBe('hold maint')
  })

  test('does not raise without a maint', () => {
    const run = held({ ...busy, ladder: ['ready', 'drain'], onTimeout: 'terminate' }).looks(5_000)
    expect(run.sentSoFar).toEqual(['hold drain'])
  })

  test('waits while a pause is on', () => {
    const run = held(busy).looks(500).refuse(failure('CONFLICT', true))
    expect(run.look({ after: 200 }).sent).toBe(null)
    expect(run.state.hold.wish).toBe('drain')
    expect(run.look({ after: 50 }).sent).toBe('hold maint')
  })

  test('starts the proof anew', () => {
    const run = held(busy).lookAt(500).answer().mark().scope('w1', { active: 0 })
    run.lookAt(100).lookAt(999)
    expect(run.phase).toBe('draining')
    expect(run.lookAt(1_000).phase).toBe('idle')
  })

  test('drops a verdict that waits for its seal', () => {
    const run = held({ escalateAfter: 1_500, seal: 'gentle' }).lookAt(100).lookAt(1_000)
    run.refuse(failure('CONFLICT', true)).look({ after: 600 })
    expect(run.sentSoFar.filter((sent) => sent === 'hold maint')).toHaveLength(2)
    expect(run.state.proof.verdict).toBe(null)
  })

  test('does not raise an old state that came back', () => {
    const run = held(busy).look().set({ own: 'ready' }).scope('w1', { incarnation: 'w1.2' })
    expect(run.look({ after: 600 }).sent).toBe('hold drain')
  })
})

describe('hold maint', () => {
  test('holds at maint if it is gentle', () => {
    expect(started({ hold: 'maint' }).look().sent).toBe('hold maint')
  })

  test('holds at drain if maint cuts', () => {
    expect(started({ hold: 'maint', maint: 'cuts' }).look().sent).toBe('hold drain')
  })

  test("holds at maint if it cuts, on the caller's word", () => {
    const run = started({ hold: 'maint', maint: 'cuts', onTimeout: 'terminate' }).look()
    expect(run.sent).toBe('hold maint')
  })

  test('that cuts counts what was there as an upper bound', () => {
    const run = started({
      hold: 'maint',
      maint: 'cuts',
      onTimeout: 'terminate',
      scopes: { w1: { active: 1, queued: 1 } },
    })
    run.look().answer()
    expect(run.all('terminated')).toMatchObject([{ count: 2 }])
    expect(run.state.ending.terminatedAtMost).toBe(true)
  })

  test('that cut counts what was there before a look found the member absent', () => {
    const run = started({
      hold: 'maint',
      maint: 'cuts',
      onTimeout: 'terminate',
      scopes: { w1: { active: 1 } },
    })
    run.look().vanish().look().answer()
    expect(run.all('terminated')).toMatchObject([{ count: 1 }])
  })

  test('that found the member in maint cut nothing', () => {
    const run = started({
      hold: 'maint',
      maint: 'cuts',
      own: 'maint',
      onTimeout: 'terminate',
      scopes: { w1: { active: 1 } },
    })
    expect(run.look().answer('unchanged').all('terminated')).toEqual([])
  })

  test('holds at drain if only this reading says that maint cuts', () => {
    expect(started({ hold: 'maint', present: { maint: 'cuts' } }).look().sent).toBe('hold drain')
  })
})
