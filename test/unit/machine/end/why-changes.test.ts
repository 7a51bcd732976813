import { openGoal } from 'drainable/machine'
import { describe, expect, test } from 'vitest'
import { failure, held, idle, started, WEB1 } from '../member-run.js'

describe('why() of a hold whose answer was lost', () => {
  test('says only that it is not in force, if the member was there already', () => {
    const run = started({ own: 'drain' }).look().lose()
    expect(run.codes).toEqual(['not-in-force'])
    expect(run.why[0]?.text).toContain('has not taken the drain yet')
  })

  test('says nothing if the member is higher', () => {
    const run = started({ own: 'maint', lateBound: 9_000, scopes: { w1: { active: 1 } } })
    run.look().lose().look()
    expect(run.state.hold.late).toHaveLength(1)
    expect(run.codes).toEqual(['in-flight'])
  })

  test('says the state wished by the policy, in the look that shows it', () => {
    const change = { kind: 'hold' as const, ref: WEB1, to: 'maint' as const }
    const late = [{ change, lostAt: 900, until: null, lackedAt: 900 }]
    const run = started({ own: 'maint' }).put({ type: 'inherit', late }).look()
    expect(run.why[0]?.text).toContain('has not taken the drain yet')
  })

  test('says until when it may come, once it is to be undone', () => {
    const run = started({ own: 'maint', hold: 'maint', lateBound: 9_000 }).look().lose().open()
    expect(run.codes).toContain('not-in-force')
    expect(run.why[0]?.text).toContain("the answer to 'hold' was lost")
  })
})

describe('why() of an idle member', () => {
  test('says the lost removal, and the hints', () => {
    const run = idle({ until: 'removed', lateBound: 9_000, present: { unverified: 'set x' } })
    run.lose()
    expect(run.codes).toEqual(['not-in-force', 'unreadable'])
    expect(run.why[1]?.text).toBe('set x')
  })
})

describe('why() after the end', () => {
  test('says nothing of a lost removal that came', () => {
    const run = idle({ until: 'removed', lateBound: 9_000 }).lose('done').look().look({ after: 20 })
    expect(run.outcome).toBe('removed')
    expect(run.why).toEqual([])
  })

  test('says nothing of a refusal if what was left was cut', () => {
    const run = held({ timeout: 500, onTimeout: 'terminate', scopes: { w1: { active: 1 } } })
    run.look({ after: 600 }).answer('applied', { terminated: 1 }).scope('w1', { active: 0 })
    run.idle()
    expect(run.outcome).toBe('terminated')
    expect(run.why).toEqual([])
  })

  test('says nothing of a process that was lost before the undo', () => {
    const run = held({ scopes: { w2: { active: 3 } } }).look()
    run.scope('w2', { state: 'ended' }).look().open().look().answer().look()
    expect(run.outcome).toBe('restored')
    expect(run.state.proof.lost).toHaveLength(1)
    expect(run.why).toEqual([])
  })
})

test('the hints are said while only the floor is to be decided', () => {
  const floor = { floor: failure('POOL_AT_MINIMUM'), random: 1 }
  const run = held({ settle: 0, onMinimum: 'wait', present: { unverified: 'set x' } })
  run.look(floor).look({ ...floor, after: 100 })
  expect(run.why).toMatchObject([
    { code: 'pool-at-minimum' },
    { code: 'unreadable', text: 'set x' },
  ])
})

describe('why() of an undo', () => {
  test('says nothing before the first look', () => {
    const goal = openGoal({ of: 'anybody', until: null, lateUntil: null })
    expect(started({ goal }).why).toEqual([])
  })

  test('says the state too, beside the lost step', () => {
    const run = held({ lateBound: 9_000 }).look().open().look().lose()
    expect(run.codes).toEqual(['not-in-force', 'settling'])
  })
})

describe('another client is not named', () => {
  test('beside an unknown state', () => {
    const run = held({ onOverrule: 'reapply' }).set({ own: 'ready' }).look()
    expect(run.codes).toContain('overruled')
    expect(run.set({ own: 'unknown' }).look().codes).toEqual(['unreadable'])
  })

  test('if the state is as wished, for another member', () => {
    const run = held({ onOverrule: 'reapply' }).set({ own: 'ready' }).look()
    run.set({ own: 'drain', identity: 'another' }).look()
    expect(run.state.hold.overruled).toBe(true)
    expect(run.codes).not.toContain('overruled')
  })

  test('if a reload forgot the hold', () => {
    const run = held().set({ own: 'ready' }).scope('w1', { incarnation: 'w1.2' }).look()
    run.refuse(failure('CONFLICT', true)).look()
    expect(run.state.hold.pending).toBe(null)
    expect(run.codes).not.toContain('overruled')
  })

  test('by a look asked for at the moment of our own change', () => {
    const run = held({ onOverrule: 'reapply' }).set({ own: 'ready' }).look()
    run.look({ after: 250 }).lose()
    expect(run.state.last?.askedAt).toBe(run.state.hold.confirmedAt)
    expect(run.state.hold.overruled).toBe(true)
    expect(run.codes).not.toContain('overruled')
  })
})

describe('a watch says', () => {
  const goal = { kind: 'watch' as const }

  test('nothing of a missing hold', () => {
    expect(started({ goal }).look().why).toEqual([])
  })

  test('nothing of an unknown state', () => {
    expect(started({ goal }).set({ own: 'unknown' }).look().why).toEqual([])
  })
})
