import { openGoal } from 'drainable/machine'
import { describe, expect, test } from 'vitest'
import { failure, held, idle, started, WEB1 } from '../member-run.js'

describe('what is said of a hold whose answer was lost', () => {
  test('is only that it is not taken, where the member was there already', () => {
    const run = started({ own: 'drain' }).look().lose()
    expect(run.codes).toEqual(['not-in-force'])
    expect(run.why[0]?.text).toContain('has not taken the drain yet')
  })

  test('is nothing, where the member is higher than it', () => {
    const run = started({ own: 'maint', lateBound: 9_000, scopes: { w1: { active: 1 } } })
    run.look().lose().look()
    expect(run.state.hold.late).toHaveLength(1)
    expect(run.codes).toEqual(['in-flight'])
  })

  test('is the state that the policy wishes, in the look that shows it', () => {
    const change = { kind: 'hold' as const, ref: WEB1, to: 'maint' as const }
    const late = [{ change, lostAt: 900, until: null, lackedAt: 900 }]
    const run = started({ own: 'maint' }).put({ type: 'inherit', late }).look()
    expect(run.why[0]?.text).toContain('has not taken the drain yet')
  })

  test('is until when it may come, once it is to be undone', () => {
    const run = started({ own: 'maint', hold: 'maint', lateBound: 9_000 }).look().lose().open()
    expect(run.codes).toContain('not-in-force')
    expect(run.why[0]?.text).toContain("the answer to 'hold' was lost")
  })
})

describe('what is said of an idle member', () => {
  test('is the lost removal, and what is not seen of it', () => {
    const run = idle({ until: 'removed', lateBound: 9_000, present: { unverified: 'set x' } })
    run.lose()
    expect(run.codes).toEqual(['not-in-force', 'unreadable'])
    expect(run.why[1]?.text).toBe('set x')
  })
})

describe('what is said once it is over', () => {
  test('is nothing of a lost removal that has come', () => {
    const run = idle({ until: 'removed', lateBound: 9_000 }).lose('done').look().look({ after: 20 })
    expect(run.outcome).toBe('removed')
    expect(run.why).toEqual([])
  })

  test('is nothing of a refusal, where what was left was cut', () => {
    const run = held({ timeout: 500, onTimeout: 'terminate', scopes: { w1: { active: 1 } } })
    run.look({ after: 600 }).answer('applied', { terminated: 1 }).scope('w1', { active: 0 })
    run.idle()
    expect(run.outcome).toBe('terminated')
    expect(run.why).toEqual([])
  })

  test('is nothing of a process that was lost before the undo', () => {
    const run = held({ scopes: { w2: { active: 3 } } }).look()
    run.scope('w2', { state: 'ended' }).look().open().look().answer().look()
    expect(run.outcome).toBe('restored')
    expect(run.state.proof.lost).toHaveLength(1)
    expect(run.why).toEqual([])
  })
})

test('what is not seen is said while only the floor is to be decided', () => {
  const floor = { floor: failure('POOL_AT_MINIMUM'), random: 1 }
  const run = held({ settle: 0, onMinimum: 'wait', present: { unverified: 'set x' } })
  run.look(floor).look({ ...floor, after: 100 })
  expect(run.why).toMatchObject([
    { code: 'pool-at-minimum' },
    { code: 'unreadable', text: 'set x' },
  ])
})

describe('what is said of an undo', () => {
  test('is nothing before the first look', () => {
    const goal = openGoal({ of: 'anybody', until: null, lateUntil: null })
    expect(started({ goal }).why).toEqual([])
  })

  test('is its state too, beside the step that was lost', () => {
    const run = held({ lateBound: 9_000 }).look().open().look().lose()
    expect(run.codes).toEqual(['not-in-force', 'settling'])
  })
})

describe('another client is named', () => {
  test('not beside a state that is not known', () => {
    const run = held({ onOverrule: 'reapply' }).set({ own: 'ready' }).look()
    expect(run.codes).toContain('overruled')
    expect(run.set({ own: 'unknown' }).look().codes).toEqual(['unreadable'])
  })

  test('not where the state is as wished, as another member', () => {
    const run = held({ onOverrule: 'reapply' }).set({ own: 'ready' }).look()
    run.set({ own: 'drain', identity: 'another' }).look()
    expect(run.state.hold.overruled).toBe(true)
    expect(run.codes).not.toContain('overruled')
  })

  test('not where a reload forgot the hold', () => {
    const run = held().set({ own: 'ready' }).scope('w1', { incarnation: 'w1.2' }).look()
    run.refuse(failure('CONFLICT', true)).look()
    expect(run.state.hold.pending).toBe(null)
    expect(run.codes).not.toContain('overruled')
  })

  test('not by a look asked for in the moment of our own change', () => {
    const run = held({ onOverrule: 'reapply' }).set({ own: 'ready' }).look()
    run.look({ after: 250 }).lose()
    expect(run.state.last?.askedAt).toBe(run.state.hold.confirmedAt)
    expect(run.state.hold.overruled).toBe(true)
    expect(run.codes).not.toContain('overruled')
  })
})

describe('a watch says', () => {
  const goal = { kind: 'watch' as const }

  test('nothing of a hold that is not there', () => {
    expect(started({ goal }).look().why).toEqual([])
  })

  test('nothing of a state that is not known', () => {
    expect(started({ goal }).set({ own: 'unknown' }).look().why).toEqual([])
  })
})
