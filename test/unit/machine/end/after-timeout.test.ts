import { initialState } from 'drainable/machine'
import { describe, expect, test } from 'vitest'
import { held, started, WEB1, type MemberRun } from '../member-run.js'

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

  test('and is idle since stays so where a process is unread for a moment', () => {
    const run = timedOut().scope('w1', { active: 0 }).idle().settle()
    run.scope('w2', { state: 'unread' }).look()
    expect(run.phase).toBe('idle')
    expect(run.fail().codes).toEqual(['unreadable', 'unreadable'])
  })
})

test('what is cut where nothing is counted is explained no further', () => {
  const options = { counts: 'none', timeout: 500, onTimeout: 'terminate' } as const
  const run = held({ ...options, scopes: { w1: { active: 1 } } }).look({ after: 600 })
  run.answer().scope('w1', { active: 0 }).looks(7_000)
  expect(run.outcome).toBe('terminated')
  expect(run.why).toEqual([])
})

describe('a member that nobody has looked at', () => {
  test('is to be drained, unless another goal is given', () => {
    expect(initialState(WEB1, 0, null).goal).toEqual({ kind: 'drain' })
  })

  test('is in force nowhere', () => {
    expect(started().state.proof.inForce).toBe(false)
  })
})
