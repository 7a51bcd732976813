import { initialState } from 'drainable/machine'
import { describe, expect, test } from 'vitest'
import { held, idle, started, WEB1, type MemberRun } from '../member-run.js'

/** Timed out with work left, and still held. */
function timedOut(): MemberRun {
  const run = held({ timeout: 500, scopes: { w1: { active: 1 }, w2: {} } }).look({ after: 600 })
  expect(run.outcome).toBe('timeout')
  return run
}

describe('a drain that timed out', () => {
  test('loses no idle that was never said', () => {
    const run = timedOut().settle().look()
    expect(run.effects.filter(({ type }) => type === 'lost')).toEqual([])
    expect(run.state.ending).toMatchObject({ marks: null, lossSaid: false })
  })

  test('and is idle since stays so while a process is unread for a moment', () => {
    const run = timedOut().scope('w1', { active: 0 }).idle().settle()
    run.scope('w2', { state: 'unread' }).look()
    expect(run.phase).toBe('idle')
    expect(run.fail().codes).toEqual(['unreadable', 'unreadable'])
  })
})

test('a cut of uncounted work is not explained any further', () => {
  const options = { counts: 'none', timeout: 500, onTimeout: 'terminate' } as const
  const run = held({ ...options, scopes: { w1: { active: 1 } } }).look({ after: 600 })
  run.answer().scope('w1', { active: 0 }).looks(7_000)
  expect(run.outcome).toBe('terminated')
  expect(run.why).toEqual([])
})

describe('a member that was not looked at', () => {
  test('is to be drained unless another goal is given', () => {
    expect(initialState(WEB1, 0, null).goal).toEqual({ kind: 'drain' })
  })

  test('is in force nowhere', () => {
    expect(started().state.proof.inForce).toBe(false)
  })
})

describe('an idle that only holds, of a product without counters', () => {
  const none = { arrivals: undefined as never }

  test('is not lost if nothing is seen', () => {
    const run = idle({ scopes: { w1: none } })
      .settle()
      .look()
      .look({ after: 500 })
    expect(run.all('idle-lost')).toEqual([])
  })

  test('is not lost if its process is replaced by one without counters', () => {
    const run = idle()
      .settle()
      .scope('w1', { incarnation: 'w1.2', ...none })
      .scope('w2', none)
      .look()
    expect(run.all('idle-lost')).toEqual([])
  })

  test('is not lost if the start of its counters is not told any more', () => {
    const run = idle({ scopes: { w1: { countersFrom: 'a' } } }).settle()
    run.scope('w1', { countersFrom: undefined as never }).look()
    expect(run.all('idle-lost')).toEqual([])
  })

  test('is lost if a restarted process had one client', () => {
    const run = idle().settle().scope('w1', { incarnation: 'w1.2', arrivals: 1 }).look()
    expect(run.all('idle-lost')).toHaveLength(1)
    const none = idle().settle().scope('w1', { incarnation: 'w1.2', arrivals: 0 }).look()
    expect(none.all('idle-lost')).toEqual([])
  })

  test('is lost if restarted counters have one client', () => {
    const from = (arrivals: number) =>
      idle({ scopes: { w1: { countersFrom: 'a' } } })
        .settle()
        .scope('w1', { countersFrom: 'b', arrivals })
        .look()
    expect(from(1).all('idle-lost')).toHaveLength(1)
    expect(from(0).all('idle-lost')).toEqual([])
  })

  test('is lost if it counts clients now and has one', () => {
    const from = (arrivals: number) =>
      idle({ scopes: { w1: none } })
        .settle()
        .scope('w1', { arrivals })
        .look()
    expect(from(1).all('idle-lost')).toHaveLength(1)
    expect(from(0).all('idle-lost')).toEqual([])
  })
})
