import { describe, expect, test } from 'vitest'
import { openGoal } from 'drainable/machine'
import {
  failure,
  held,
  started,
  unanswered,
  WEB1,
  type MemberRun,
  type RunOptions,
} from '../member-run.js'

/** A run that held, and whose undo is under way. */
function undoing(options: RunOptions = {}): MemberRun {
  return held(options).look().open().look()
}

describe('a hold whose answer was lost', () => {
  test('that is there is ours', () => {
    const run = started().look().lose('done').open().look().look()
    expect(run.sent).toBe('restore drain to ready')
  })

  test('that is not there is waited for until it can not come any more', () => {
    const run = started({ lateBound: 700 }).look().lose().open().look()
    expect(run.outcome).toBe(null)
    expect(run.looks(690).outcome).toBe(null)
    expect(run.look().outcome).toBe('restored')
    expect(run.changes).toHaveLength(1)
  })

  test('that comes late is opened', () => {
    const run = started({ lateBound: 700 }).look().lose().open().look().looks(300)
    run.set({ own: 'drain' }).look().look()
    expect(run.sent).toBe('restore drain to ready')
    expect(run.answer().looks(1_000).outcome).toBe('restored')
  })

  test('that is not there is over with a look asked for at its bound', () => {
    const run = started({ lateBound: 300 }).look().lose().open().look().mark()
    expect(run.lookAt(290, { took: 20 }).outcome).toBe(null)
    expect(run.look().outcome).toBe('restored')
  })

  test('is named by why() with its bound', () => {
    const run = started({ lateBound: 700 }).look().lose().open().look()
    expect(run.why[0]).toMatchObject({ code: 'not-in-force' })
    expect(run.why[0]?.text).toContain(`until ${run.iso(run.now + 700)}`)
  })

  test('is waited for up to lateUntil, and then reported', () => {
    const run = started({ lateBound: 9_000 }).look().lose()
    run
      .open({ lateUntil: run.now + 500 })
      .look()
      .looks(480)
    expect(run.outcome).toBe(null)
    run.look()
    expect(run.outcome).toBe('refused')
    expect(run.error?.code).toBe('CONFLICT')
    expect(run.error?.message).toContain('may still be carried out until')
    expect(run.state.hold.late).toHaveLength(1)
  })

  test('is waited for past the time of the undo itself', () => {
    const run = started({ lateBound: 9_000 }).look().lose()
    run
      .open({ until: run.now + 300 })
      .look()
      .look({ after: 1_000 })
    expect(run.outcome).toBe(null)
  })

  test('does not lengthen an undo that waits for something else', () => {
    const run = held({ seal: 'gentle', lateBound: 9_000 }).lookAt(100).lookAt(1_000).lose()
    run.set({ health: 'unknown' })
    run
      .open({ until: run.now + 300 })
      .look()
      .look({ after: 1_000 })
    expect(run.outcome).toBe('refused')
    expect(run.error?.code).toBe('HEALTH_TIMEOUT')
  })

  test('and repeated with success is not waited for', () => {
    const run = undoing({ lateBound: 9_000 }).lose().look().answer().look()
    expect(run.outcome).toBe('restored')
  })

  test('is not waited for if it was a cut', () => {
    const run = held({ timeout: 50, onTimeout: 'terminate', lateBound: 9_000 })
    run.scope('w1', { active: 1 }).look({ after: 100 }).lose().look().open().look().answer().look()
    expect(run.outcome).toBe('restored')
  })

  test('is reported with the later of two bounds', () => {
    const run = started({ lateBound: 9_000 }).look().lose().look().lose()
    run
      .open({ lateUntil: run.now + 500 })
      .look({ after: 300 })
      .look({ after: 300 })
    const bounds = run.state.hold.late.map(({ until }) => until!)
    expect(bounds[0]).toBeLessThan(bounds[1]!)
    expect(run.error?.message).toContain(`until ${run.iso(bounds[1]!)}`)
  })

  test('is not given up for a failed look', () => {
    const run = started({ lateBound: 9_000 }).look().lose()
    run
      .open({ lateUntil: run.now + 500 })
      .look()
      .fail(failure(), 1_000)
    expect(run.outcome).toBe(null)
  })

  test('is given up if no look comes any more', () => {
    const run = started({ lateBound: 9_000 }).look().lose()
    run
      .open({ lateUntil: run.now + 500 })
      .look()
      .wait(600)
    run.put({ type: 'overdue', error: failure('CALL_TIMEOUT'), silent: false })
    expect(run.outcome).toBe('refused')
    expect(run.error?.code).toBe('CONFLICT')
  })
})

describe('the lost answer to an undo', () => {
  test('is followed by a repeat if a look shows that it is not there', () => {
    expect(undoing().lose().look().sent).toBe('restore drain to ready')
  })

  test('is replaced by a look that shows it, once nothing may be late', () => {
    const run = undoing().lose('done').look()
    expect(run.state.hold.late).toEqual([])
    expect(run.look().outcome).toBe('restored')
  })

  test('and its repeat count as one try', () => {
    const run = undoing({ lateBound: 1e9 })
    for (let i = 0; i < 20; i += 1) run.lose().look({ after: 5_000 })
    expect(run.outcome).toBe(null)
  })

  test('a second time is followed by a repeat after 250 ms', () => {
    const run = undoing().lose().look().lose()
    expect(run.look({ after: 249 }).sent).toBe(null)
    expect(run.look({ after: 1 }).sent).toBe('restore drain to ready')
  })

  test('is the reason if its time is over', () => {
    const run = held().look()
    run
      .open({ until: run.now + 100 })
      .look()
      .lose()
      .look()
      .lose()
      .look({ after: 80 })
    expect(run.outcome).toBe('refused')
    expect(run.error?.code).toBe('CALL_TIMEOUT')
  })

  test('of a hold is not replaced by a look at a higher state', () => {
    const run = started().look().lose().open().set({ own: 'maint' }).look()
    expect(run.outcome).toBe('overruled')
  })

  test('is not replaced by a look at a higher state than wished', () => {
    const run = started({ own: 'drain', hold: 'maint' }).look().answer().look().open().look()
    run.lose().set({ own: 'maint' }).look()
    expect(run.sent).toBe('restore maint to drain')
  })
})

test('a state left as uncertain stays to be undone after its time', () => {
  const goal = openGoal({ of: 'ours', until: null, lateUntil: null })
  const run = started({ goal, own: 'drain', lateBound: 300 })
  const { found } = started().look().state
  const entry = unanswered({ kind: 'hold', ref: WEB1, to: 'drain' }, { lackedAt: null })
  run.state = { ...run.state, found, hold: { ...run.state.hold, late: [entry] } }
  expect(run.look().error?.message).toContain('was only intended')
  run.looks(400) // its run goes on for another member
  expect(run.state.hold).toMatchObject({ late: [], changes: [{ kind: 'hold', state: 'intended' }] })
})
