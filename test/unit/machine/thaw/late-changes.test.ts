import { brokenInvariants, openGoal } from 'drainable/machine'
import { expect, test } from 'vitest'
import { freezeMember } from '../../../../src/core/tickets/freeze.js'
import { thawMember, type Gap } from '../../../../src/core/tickets/thaw.js'
import { failure, held, started, type MemberRun } from '../member-run.js'

/**
 * The same run in another process, from its ticket, as an undo.
 *
 * @param after - milliseconds by the clock on the wall
 * @param gap - what of it counts
 */
function undone(run: MemberRun, after = 0, gap: Gap = { ms: after, foreign: true }): MemberRun {
  const frozen = freezeMember(run.state, 0)
  const saved = { wall: run.now, boot: 'one', uptime: run.now / 1_000 }
  run.wait(after)
  const goal = openGoal({ of: 'ours', until: run.now + 30_000, lateUntil: null })
  const options = { now: run.now, wallOffset: 0, goal, deadline: null, since: { saved, gap } }
  const state = thawMember(frozen, options)
  run.state = { ...state, hold: { ...state.hold, wish: 'none', confirmed: 'none' } }
  return run
}

const LONG = { lateBound: 60_000 }

test('a refused hold of a ticket is settled by the next look', () => {
  const run = undone(started(LONG).look().refuse(failure('CONFLICT', true)))
  expect(brokenInvariants(run.state)).toEqual([])
  expect(run.look().outcome).toBe('restored')
})

test('a lost hold of a ticket is waited for', () => {
  const run = undone(started(LONG).look().lose()).look()
  expect(run.outcome).toBe(null)
  expect(run.look({ after: 60_000 }).outcome).toBe('restored')
})

test.each([
  ['the whole of it has passed', 70_000, { ms: 70_000, foreign: false }, 0],
  ['half of it has passed', 30_000, { ms: 30_000, foreign: false }, 30_000],
  ['the wall clock jumped', 70_000, { ms: 0, foreign: false }, 60_000],
  ['another boot wrote the ticket', 70_000, { ms: 70_000, foreign: true }, 60_000],
])('a lost hold is waited for no longer than it may come: %s', (...row) => {
  const [, after, gap, left] = row
  const lost = started(LONG).look().lose().put({ type: 'end', outcome: 'aborted' }).look()
  const run = undone(lost, after, gap).look()
  if (left > 0) {
    expect(run.outcome).toBe(null)
    expect(run.look({ after: left - 1_000 }).outcome).toBe(null)
    run.look({ after: 1_000 })
  }
  expect(run.outcome).toBe('restored')
})

test('what a cut without an answer may have cut is told by the process that goes on', () => {
  const cut = { ...LONG, onTimeout: 'terminate', scopes: { w1: { active: 2 } } } as const
  const past = (): MemberRun => held({ ...cut, timeout: 1_000 }).look({ after: 2_000 })
  expect(undone(past().lose()).scope('w1', { active: 0 }).state.ending.cutting).toBe(2)
  const run = undone(past()).scope('w1', { active: 0 }).look()
  run.answer().look()
  expect(run.outcome).toBe('restored')
  expect(run.state.ending).toMatchObject({ terminated: 2, terminatedAtMost: true, cutting: 0 })
})

test('a ticket says nothing of cuts where none is open', () => {
  expect(freezeMember(held().state, 0).state).not.toHaveProperty('cutting')
})
