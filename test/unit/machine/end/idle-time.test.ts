import { expect, test } from 'vitest'
import { idleTime, isUnseenIdle } from '../../../../src/core/runner/idle-time.js'
import { held, idle, type MemberRun } from '../member-run.js'

/** A member whose work was cut at the deadline, and which is idle since. */
function cut(): MemberRun {
  const run = held({ timeout: 1_000, onTimeout: 'terminate', scopes: { w1: { active: 2 } } })
  run.look({ after: 2_000 }).answer('applied', { terminated: 2 }).scope('w1', { active: 0 })
  return run.looks(500)
}

test.each([
  ['idle', idle()],
  ['terminated', cut()],
])('of a member that ended as %s is since its proof, seen by its last look', (outcome, run) => {
  expect([run.phase, run.outcome]).toEqual(['idle', outcome])
  const first = run.state.proof.proof?.samples[0]?.scopes[0]?.sampledAt
  expect(idleTime([run.state])).toEqual({ from: first, seen: run.state.last?.askedAt })
  expect(isUnseenIdle(run.state)).toBe(false)
})

test.each([
  ['idle', idle()],
  ['terminated', cut()],
])('of a member that ended as %s and can not be read is not seen', (_, run) => {
  run.fail()
  expect(idleTime([run.state])?.seen).toBe(-Infinity)
  expect(isUnseenIdle(run.state)).toBe(true)
  expect(isUnseenIdle(run.settle().state)).toBe(false)
})

test('is none where the outcome does not rest on idle', () => {
  const run = held({ timeout: 1_000, onTimeout: 'terminate', scopes: { w1: { active: 2 } } })
  run.look({ after: 2_000 }).answer('applied', { terminated: 2 })
  run.scope('w1', { active: 0, inForce: false }).looks(8_000)
  expect([run.phase, run.outcome]).toEqual(['draining', 'terminated'])
  expect(idleTime([run.state])).toBe(null)
  expect(isUnseenIdle(run.fail().state)).toBe(false)
})
