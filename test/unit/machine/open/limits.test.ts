import { openGoal } from 'drainable/machine'
import { describe, expect, test } from 'vitest'
import { failure, held, started, type MemberRun } from '../member-run.js'

function overdue(run: MemberRun): MemberRun {
  return run.put({ type: 'overdue', error: failure('CALL_TIMEOUT'), silent: true })
}

/** Open again, and one hold of ours may still be carried out. */
function waiting(lateUntil: number | null, until: number | null = null): MemberRun {
  const run = started({ lateBound: 9_000 }).look().lose()
  return run.open({ until, lateUntil }).look()
}

describe('an undo that arrived, and waits for a late change', () => {
  test('ends at its limit after a failed look and a missing one', () => {
    const run = waiting(3_000).fail()
    expect(overdue(run.wait(2_999 - run.now)).outcome).toBe(null)
    expect(overdue(run.wait(1)).outcome).toBe('refused')
    expect(run.error?.message).toContain('may still be carried out until')
  })

  test('is not unreachable past its time while the balancer answers', () => {
    const run = waiting(null, 2_000)
    run.look({ after: 2_000 - run.now })
    expect(overdue(run.wait(50)).outcome).toBe(null)
  })

  test('is unreachable past its time if the newest look failed', () => {
    const run = waiting(null, 2_000)
    run.look({ after: 2_000 - run.now }).fail()
    expect(overdue(run.wait(50)).outcome).toBe('unreachable')
  })

  test('waits for its time only, if the balancer contradicts itself', () => {
    const run = waiting(null, 2_000).set({ own: 'unknown' })
    expect(run.looks(8_000).outcome).toBe(null)
    expect(run.looks(3_000).outcome).toBe('refused')
    expect(run.error?.message).toContain('contradicts itself')
  })

  test('is unreachable past its time before the first look of another process', () => {
    const run = waiting(null, 2_000)
    run.state = { ...run.state, last: null }
    expect(overdue(run.wait(2_000)).outcome).toBe('unreachable')
  })

  test('is unreachable past its time if no look was asked for since', () => {
    const run = waiting(null, 2_000)
    run.look({ after: 1_999 - run.now })
    expect(overdue(run.wait(50)).outcome).toBe('unreachable')
  })
})

describe('an undo that has not arrived', () => {
  test('is unreachable past its time, though the balancer answered', () => {
    const run = held({ lateBound: 9_000 }).look()
    run
      .open({ until: run.now + 100 })
      .look()
      .lose()
      .wait(50)
    expect(overdue(run.wait(100)).outcome).toBe('unreachable')
  })

  test('is unreachable past its time while a step is under way', () => {
    const run = held().look()
    run
      .open({ until: run.now + 100 })
      .look()
      .look({ after: 200 })
    expect(overdue(run.wait(50)).outcome).toBe('unreachable')
  })

  test('does not end for the limit of a late change', () => {
    const run = held({ lateBound: 9_000 }).look()
    run
      .open({ lateUntil: run.now + 100 })
      .look()
      .lose()
    expect(overdue(run.wait(1_000)).outcome).toBe(null)
  })

  test('ends at the limit of an abort while its change has no answer', () => {
    const run = held({ lateBound: 9_000 }).look()
    run.open({ lateUntil: run.now + 100 }).look()
    expect(overdue(run.wait(50)).outcome).toBe(null)
    expect(overdue(run.wait(100)).outcome).toBe('refused')
    expect(run.error?.message).toContain('has no answer yet')
  })

  test('does not end at the limit if nothing is late', () => {
    const run = held().look()
    run
      .open({ lateUntil: run.now + 100 })
      .look()
      .answer()
    expect(overdue(run.wait(1_000)).outcome).toBe(null)
  })
})

describe('a lost hold that comes after the undo of its repeat', () => {
  test('is opened again', () => {
    const run = started({ lateBound: 9_000 }).look().lose().look().answer().look()
    run.open().look().answer().look()
    expect(run.own).toBe('ready')
    run.set({ own: 'drain' }).look().look()
    expect(run.sent).toBe('restore drain to ready')
    expect(run.outcome).toBe(null)
  })
})

test('a late change without a look since may come until lateBound from now', () => {
  const run = held({ lateBound: 9_000 }).look()
  run
    .open({ lateUntil: run.now + 100 })
    .look()
    .answer()
  const incarnation = { incarnation: 'w1.2' }
  run.set({ own: 'drain' }).scope('w1', incarnation).look({ after: 200 })
  expect(run.sent).toBe('restore drain to ready')
  run.lose()
  expect(run.outcome).toBe('refused')
  expect(run.error?.message).toContain(`until ${run.iso(run.now + 9_000)}`)
})

describe('the health check of an undo', () => {
  const options = { until: null, lateUntil: null, mustBeHealthy: true, check: 'due' as const }

  test('is not asked for if there is nothing of ours to undo', () => {
    const run = started({ goal: openGoal({ of: 'ours', ...options }) }).look()
    expect(run.outcome).toBe('restored')
    expect(run.effects.filter(({ type }) => type === 'check')).toEqual([])
  })

  test('is noted as running, and asked for once', () => {
    const run = started({ goal: openGoal({ of: 'anybody', ...options }) }).look()
    expect(run.effects.filter(({ type }) => type === 'check')).toHaveLength(1)
    expect(run.state.goal).toMatchObject({ check: 'running' })
    expect(run.look().effects.filter(({ type }) => type === 'check')).toEqual([])
  })

  test('is named in the error if it gives no answer in time', () => {
    const goal = openGoal({ of: 'anybody', ...options, until: 2_000 })
    const run = started({ goal }).look().look({ after: 2_000 })
    expect([run.outcome, run.error?.code]).toEqual(['refused', 'HEALTH_TIMEOUT'])
    expect(run.error?.message).toContain("the caller's health check gave no answer within 2 s")
  })
})

describe('an undo that goes on', () => {
  /** Undone because too few would serve, and the drain waits. */
  function again(run: MemberRun): MemberRun {
    return run.open({ then: 'wait' })
  }

  test('asks the floor anew', () => {
    const run = again(held().look()).look().answer().look()
    expect(run.state.goal.kind).toBe('drain')
    run.look({ after: 300 })
    expect(run.effects.find(({ type }) => type === 'apply')).toMatchObject({ first: true })
  })

  test('forgets the refusal of a hold that was under way', () => {
    const run = again(started().look()).refuse(failure('FORBIDDEN')).look()
    expect(run.state.goal.kind).toBe('drain')
    expect(run.codes).not.toContain('refused')
  })

  test('forgets what processes had taken', () => {
    const run = again(held().look()).look().answer().look()
    expect(run.state.hold.incarnations).toBe(null)
  })

  test('names no client for a state from before', () => {
    const run = held({ onOverrule: 'reapply' }).set({ own: 'ready' }).look()
    expect(run.state.hold.overruled).toBe(true)
    again(run).look()
    expect(run.state.goal.kind).toBe('drain')
    expect(run.state.hold.overruled).toBe(false)
    expect(run.codes).not.toContain('overruled')
  })
})

describe('an undone member whose run waits for others', () => {
  const taken = () => held().look().open().look().answer().look()

  test('is opened again if another process brings the drain back', () => {
    const run = taken()
    expect(run.outcome).toBe('restored')
    run.set({ own: 'drain' }).scope('w1', { incarnation: 'w1.2' }).look()
    expect(run.sent).toBe('restore drain to ready')
    expect(run.outcome).toBe(null)
    expect(run.answer().look().outcome).toBe('restored')
  })

  test('is opened again by ready() too', () => {
    const run = started({ own: 'drain' }).open({ of: 'anybody' }).look().answer().look()
    expect(run.outcome).toBe('restored')
    run.set({ own: 'drain' }).scope('w1', { incarnation: 'w1.2' }).look()
    expect(run.sent).toBe('restore drain to ready')
  })

  test.each([
    ['in the same process', 'w1.1', {}],
    ['on another member', 'w1.2', { identity: 'x' }],
    ['that cannot be read', 'w1.2', { own: 'unknown' as const }],
  ])('is left alone in a state %s', (_, incarnation, shown) => {
    const run = taken()
      .set({ own: 'drain', ...shown })
      .scope('w1', { incarnation })
      .look()
    expect(run.sent).toBe(null)
    expect(run.outcome).toBe('restored')
  })

  test('is left alone if it was found open in that process', () => {
    const run = taken().scope('w1', { incarnation: 'w1.2' }).look().set({ own: 'drain' }).look()
    expect(run.sent).toBe(null)
    expect(run.outcome).toBe('restored')
  })

  test('is left alone after the end of its run', () => {
    const run = taken().settle().set({ own: 'drain' }).scope('w1', { incarnation: 'w1.2' }).look()
    expect(run.sent).toBe(null)
    expect(run.state.hold.changes).toEqual([])
  })

  test('is left to a later call', () => {
    const run = taken().put({ type: 'yield', error: failure('DRAIN_OVERRULED') })
    run.set({ own: 'drain' }).scope('w1', { incarnation: 'w1.2' }).look()
    expect(run.sent).toBe(null)
    expect(run.outcome).toBe('restored')
  })
})
