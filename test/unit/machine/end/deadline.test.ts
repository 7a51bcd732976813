import { describe, expect, test } from 'vitest'
import { failure, held, idle, started, type MemberRun, type RunOptions } from '../member-run.js'

/** A run that holds a busy member, ten seconds before its deadline. */
function busy(options: RunOptions = {}): MemberRun {
  return held({ timeout: 10_000, scopes: { w1: { active: 2 } }, ...options }).look()
}

/** The first look after its deadline. */
function past(options: RunOptions = {}): MemberRun {
  const run = busy(options)
  return run.look({ after: 11_000 - run.now })
}

const overdue = (silent: boolean) => ({
  type: 'overdue' as const,
  error: failure('CALL_TIMEOUT'),
  silent,
})

describe('the deadline', () => {
  test('ends the drain with a look asked for at it', () => {
    expect(past().outcome).toBe('timeout')
    expect(past().error).toBe(null)
  })

  test('does not end it by the look that puts the hold back', () => {
    const run = busy().set({ own: 'ready' }).scope('w1', { incarnation: 'w1.2' })
    run.look({ after: 11_000 - run.now })
    expect(run.sent).toBe('hold drain')
    expect(run.outcome).toBe(null)
    expect(run.answer().look().outcome).toBe('timeout')
  })

  test('does not end it by the look that undoes a hold which left too few', () => {
    const run = held({ timeout: 50, onMinimum: 'wait' })
    const floor = failure('POOL_AT_MINIMUM')
    run.look({ floor, random: 0 }).look({ after: 100, floor })
    expect(run.state.goal.kind).toBe('open')
    expect(run.outcome).toBe(null)
  })

  test('is a timeout for a drain that was denied and found drained', () => {
    const run = started({ timeout: 500, onMinimum: 'wait', scopes: { w1: { active: 1 } } }).look()
    run
      .put({ type: 'denied', error: failure('POOL_AT_MINIMUM'), isFinal: true })
      .set({ own: 'drain' })
      .look()
      .answer('unchanged')
    expect(run.look({ after: 600 }).outcome).toBe('timeout')
  })

  test('is a timeout for a drain never held and never refused', () => {
    const run = started({ timeout: 500 }).set({ own: 'unknown' }).look({ after: 600 })
    expect(run.outcome).toBe('timeout')
    expect(run.error).toBe(null)
  })

  test('is a timeout with the error of a refused put-back', () => {
    const refusal = failure('CONFLICT', true)
    const run = busy().set({ own: 'ready' }).scope('w1', { incarnation: 'w1.2' }).look()
    run
      .refuse(refusal)
      .set({ own: 'unknown' })
      .look({ after: 11_000 - run.now })
    expect(run.outcome).toBe('timeout')
    expect(run.error).toBe(refusal)
  })

  test('is a timeout with the error of a lost only hold', () => {
    const run = started({ timeout: 500 }).look().lose().set({ own: 'unknown' }).look({ after: 600 })
    expect(run.outcome).toBe('timeout')
    expect(run.error?.code).toBe('CALL_TIMEOUT')
  })

  test('is a timeout without the error of a lost put-back', () => {
    const run = busy().set({ own: 'ready' }).scope('w1', { incarnation: 'w1.2' }).look().lose()
    run.set({ own: 'unknown' }).look({ after: 11_000 - run.now })
    expect(run.outcome).toBe('timeout')
    expect(run.error).toBe(null)
  })

  test('reports the refusal of a held drain that can not be read', () => {
    const refusal = failure('CONFLICT', true)
    const run = busy().set({ own: 'ready' }).scope('w1', { incarnation: 'w1.2' }).look()
    run.refuse(refusal).fail(failure('CONNECTION_LOST'), 11_000 - run.now)
    expect(run.outcome).toBe('unreachable')
    expect(run.error).toBe(refusal)
  })

  test('cuts nothing after it of a member that was idle before', () => {
    const run = idle({ timeout: 10_000, onTimeout: 'terminate' }).settle()
    run.scope('w1', { active: 1 }).look({ after: 11_000 - run.now })
    expect(run.sent).toBe(null)
  })

  test('does not end it before', () => {
    const run = busy()
    expect(run.look({ after: 10_999 - run.now }).outcome).toBe(null)
  })

  test('does not end it by a look asked for before it', () => {
    const run = busy()
    expect(run.look({ after: 10_999 - run.now, took: 50 }).outcome).toBe(null)
    expect(run.look().outcome).toBe('timeout')
  })

  test('does not end it by a look from before our last change', () => {
    const run = started({ timeout: 500 }).look().wait(1_000).answer()
    run.look({ asked: run.now - 100 })
    expect(run.outcome).toBe(null)
    expect(run.look().outcome).toBe('timeout')
  })

  test('does not end it while a change is under way', () => {
    const run = started({ timeout: 500 }).look().look({ after: 1_000 })
    expect(run.outcome).toBe(null)
  })

  test('does not exist without a timeout', () => {
    expect(held({ scopes: { w1: { active: 1 } } }).look({ after: 1e9 }).outcome).toBe(null)
  })

  test('takes the idle that the last look shows', () => {
    const run = held({ timeout: 10_000 }).lookAt(500)
    expect(run.look({ after: 11_000 - run.now }).outcome).toBe('idle')
  })

  test('leaves the hold in place, and keeps it up', () => {
    const run = past()
    expect(run.own).toBe('drain')
    expect(run.state.ending.holding).toBe(true)
    run.set({ own: 'ready' }).scope('w1', { incarnation: 'w1.2' }).look()
    expect(run.sent).toBe('hold drain')
  })

  test('proceeds under onTimeout proceed', () => {
    expect(past({ onTimeout: 'proceed' }).outcome).toBe('proceeded')
  })

  test('takes back a doubtful idle if no look succeeds', () => {
    const run = idle({ timeout: 10_000 }).fail().put({ type: 'doubt' })
    expect(run.phase).toBe('idle')
    run.fail(failure('CONNECTION_LOST'), 11_000 - run.now)
    expect([run.outcome, run.phase]).toEqual(['unreachable', 'draining'])
  })

  test('takes it back even if the drain proceeds', () => {
    const run = idle({ timeout: 10_000, onTimeout: 'proceed' }).fail().put({ type: 'doubt' })
    run.fail(failure('CONNECTION_LOST'), 11_000 - run.now)
    expect([run.outcome, run.phase]).toEqual(['proceeded', 'draining'])
  })

  test('leaves the idle of a drain that waits for its removal', () => {
    const refusal = failure('CONFLICT', true)
    const run = idle({ timeout: 10_000, until: 'removed' }).refuse(refusal)
    run
      .look({ after: 11_000 - run.now })
      .refuse(refusal)
      .look()
    expect([run.outcome, run.phase]).toEqual(['timeout', 'idle'])
  })

  test('ends with a failed look asked for at it', () => {
    const run = busy()
    run.fail(failure('CONNECTION_LOST'), 11_000 - run.now)
    expect(run.outcome).toBe('unreachable')
    expect(run.error?.code).toBe('CONNECTION_LOST')
  })

  test('does not end with a failed look asked for before it', () => {
    const run = busy()
    run.fail(failure('CONNECTION_LOST'), 10_999 - run.now)
    expect(run.outcome).toBe(null)
  })

  test('proceeds with a failed look under onTimeout proceed', () => {
    const run = busy({ onTimeout: 'proceed' })
    run.fail(failure('CONNECTION_LOST'), 11_000 - run.now)
    expect(run.outcome).toBe('proceeded')
  })

  test('reports the refusal rather than the failed look', () => {
    const refusal = failure('CONFLICT', true)
    const run = started({ timeout: 500 }).look().refuse(refusal)
    expect(run.fail(failure('CONNECTION_LOST'), 600).outcome).toBe('refused')
    expect(run.error).toBe(refusal)
  })
})

describe('a last look that does not come in time', () => {
  test('is a timeout if the balancer answered all along', () => {
    const run = busy().wait(10_000).put(overdue(false))
    expect(run.outcome).toBe('timeout')
  })

  test('is unreachable if the balancer was silent for long', () => {
    const run = busy().wait(10_000).put(overdue(true))
    expect(run.outcome).toBe('unreachable')
    expect(run.error?.code).toBe('CALL_TIMEOUT')
  })

  test('is unreachable with the error of a failed look', () => {
    const run = busy().fail(failure('CONNECTION_LOST')).wait(10_000).put(overdue(false))
    expect(run.outcome).toBe('unreachable')
    expect(run.error?.code).toBe('CONNECTION_LOST')
  })

  test('reports the refusal of our own change first', () => {
    const refusal = failure('CONFLICT', true)
    const run = started({ timeout: 500 }).look().refuse(refusal).wait(600).put(overdue(true))
    expect(run.error).toBe(refusal)
  })

  test('reports the refusal of a held drain first', () => {
    const refusal = failure('CONFLICT', true)
    const run = busy().set({ own: 'ready' }).scope('w1', { incarnation: 'w1.2' }).look()
    expect(run.refuse(refusal).wait(10_000).put(overdue(true)).outcome).toBe('unreachable')
    expect(run.error).toBe(refusal)
  })

  test('is proceeded under onTimeout proceed', () => {
    expect(busy({ onTimeout: 'proceed' }).wait(1e4).put(overdue(true)).outcome).toBe('proceeded')
  })

  test('changes nothing after an end', () => {
    const run = idle({ timeout: 10_000 })
    const { ended } = run.state.ending
    expect(run.wait(10_000).put(overdue(true)).state.ending.ended).toBe(ended)
  })

  test('changes nothing under goal watch', () => {
    const run = started({ goal: { kind: 'watch' } })
      .look()
      .put(overdue(true))
    expect(run.outcome).toBe(null)
  })

  test('waits for a cut to show', () => {
    const run = past({ onTimeout: 'terminate' })
    expect(run.answer().wait(5_999).put(overdue(false)).outcome).toBe(null)
    expect(run.wait(1).put(overdue(false)).outcome).toBe('timeout')
  })
})
