import { describe, expect, test } from 'vitest'
import { openGoal } from 'drainable/machine'
import { failure, held, started, type MemberRun } from '../member-run.js'

/** Taken back, while the run still waits for other members. */
function restored(): MemberRun {
  const run = held().look().open().look().answer().look()
  expect(run.outcome).toBe('restored')
  return run
}

/** A new process, as it comes out of a state file. */
const another = (run: MemberRun): MemberRun => run.scope('w1', { incarnation: 'w1.2' })

describe('an undone member while the run goes on', () => {
  test('is undone again if another process brought the drain back', () => {
    const run = another(restored()).set({ own: 'drain' }).look()
    expect(run.sent).toBe('restore drain to ready')
    expect(run.outcome).toBe(null)
    expect(run.answer().look().outcome).toBe('restored')
  })

  test('stays undone if another process has nothing of it', () => {
    const run = another(restored()).look()
    expect(run.state.ending.ended).toMatchObject({ outcome: 'restored' })
    expect(run.sent).toBe(null)
    // A later state in that process was set by another client.
    run.set({ own: 'drain' }).look()
    expect(run.sent).toBe(null)
    expect(run.outcome).toBe('restored')
  })

  test('keeps the moment of its first end', () => {
    const run = restored()
    const { at } = run.state.ending.ended!
    expect(another(run).look().look().state.ending.ended).toMatchObject({ at })
  })

  test('stays undone if another process tells no state', () => {
    const run = another(restored()).set({ own: 'unknown' }).look()
    expect(run.outcome).toBe('restored')
    expect(run.set({ own: 'drain' }).look().sent).toBe('restore drain to ready')
  })

  test('stays undone while nothing can be read', () => {
    const run = another(restored()).set({ own: 'drain' })
    expect(run.fail().outcome).toBe('restored')
  })

  test('is not judged by a look asked for before its end', () => {
    const run = restored()
    const { at } = run.state.ending.ended!
    another(run).set({ own: 'drain' }).look({ asked: at })
    expect(run.outcome).toBe('restored')
    expect(run.look().sent).toBe('restore drain to ready')
  })

  test('stays as it ended where it was never looked at', () => {
    const run = started().open()
    expect(run.outcome).toBe('restored')
    run.put({ type: 'inherit', late: [] })
    expect(run.outcome).toBe('restored')
    expect(run.put({ type: 'checked', error: null }).outcome).toBe('restored')
  })

  test('stays so if a process brings back less than the undo left', () => {
    const run = held({ own: 'drain', hold: 'maint' }).look().open().look().answer().look()
    expect(run.outcome).toBe('restored')
    another(run).set({ own: 'ready' }).look()
    expect(run.outcome).toBe('restored')
    expect(run.sent).toBe(null)
  })

  test('stays so if nothing of ours was there and nothing is known of it', () => {
    const run = started({ present: { own: 'unknown' } })
      .look()
      .open()
    expect(run.outcome).toBe('restored')
    another(run).set({ own: 'drain' }).look()
    expect(run.outcome).toBe('restored')
  })

  test('is left alone once another call takes the member', () => {
    const run = restored().put({ type: 'yield', error: failure('DRAIN_OVERRULED') })
    expect(run.state.ending).toMatchObject({ holding: false, ended: { outcome: 'restored' } })
    expect(another(run).set({ own: 'drain' }).look().sent).toBe(null)
  })
})

describe('ready() of a member that inherits a drain', () => {
  test('ends as overruled, whatever its health', () => {
    const goal = openGoal({ of: 'anybody', until: null, lateUntil: null, mustBeHealthy: true })
    const present = { inherited: 'drain' as const, health: 'down' as const, hints: ['by its node'] }
    const run = started({ goal, own: 'ready', present }).look()
    expect(run.outcome).toBe('overruled')
    expect(run.error?.message).toContain("inherits 'drain': by its node")
  })

  test('keeps its ledger without undoing anything', () => {
    const goal = openGoal({ of: 'anybody', until: null, lateUntil: null, then: 'refuse' })
    const run = started({ goal, own: 'maint', present: { inherited: 'drain' } })
      .look()
      .answer()
      .look()
    expect(run.outcome).toBe('overruled')
    expect(run.state.hold.changes).toHaveLength(1)
  })
})

describe('an undo whose member is not as it left it', () => {
  test('names the client that the product names', () => {
    const run = held()
      .look()
      .open()
      .look()
      .answer()
      .set({ own: 'drain', setBy: 'its agent' })
      .look()
    expect(run.error?.message).toContain("made 'ready': its agent, or another client sets it back")
  })

  test('names another client if the product names none', () => {
    const run = held().look().open().look().answer().set({ own: 'drain' }).look()
    expect(run.error?.message).toContain("made 'ready': another client sets it back")
  })

  test('continues if a lost hold of ours may be the cause', () => {
    const run = held({ lateBound: 9_000 }).look().open().look().answer()
    const change = { kind: 'hold' as const, to: 'drain' as const, ref: run.state.ref }
    const late = [{ change, lostAt: run.now, until: null, lackedAt: run.now, shared: true }]
    run.put({ type: 'inherit', late }).look()
    expect(run.outcome).toBe(null)
    run.set({ own: 'drain' }).look()
    expect(run.look().sent).toBe('restore drain to ready')
  })
})

describe('an undo that waited for a lost change', () => {
  test('reports at its end that the member was opened', () => {
    const lateUntil = 1_500
    const run = started({ lateBound: 9_000 }).look().lose().open({ lateUntil }).look().looks(600)
    expect(run.outcome).toBe('refused')
    expect(run.error?.message).toContain('was opened, but a change of ours whose answer was lost')
  })

  test('reports that it was not seen opened if the change has no answer', () => {
    const run = held({ lateBound: 9_000 }).look().open({ lateUntil: 1_500 }).look().wait(600)
    run.put({ type: 'overdue', error: failure('CALL_TIMEOUT'), silent: false })
    expect(run.outcome).toBe('refused')
    expect(run.error?.message).toContain('was not seen opened')
  })

  test('does not end while neither its time nor the state is known', () => {
    const run = started({ lateBound: 9_000 }).look().lose().look().answer()
    run.open({ of: 'anybody', until: 1_400, lateUntil: 30_000 }).look().answer().look()
    run.set({ own: 'unknown' }).looks(2_000)
    expect(run.outcome).toBe(null)
  })

  describe('in an unknown state', () => {
    /** Opened before a hold of ours came; then the balancer contradicts itself. */
    const opened = (): MemberRun => {
      const run = started({ lateBound: 1_000 }).look().lose()
      run.open({ of: 'anybody', until: 1_200, lateUntil: 90_000 }).look()
      return run.set({ own: 'unknown' })
    }
    const timeOf = (run: MemberRun) => run.state.hold.late[0]!.until!

    test('is waited for until its time is over', () => {
      const run = opened()
      run.look({ after: timeOf(run) - 1 - run.now })
      expect(run.outcome).toBe(null)
      expect(run.look({ after: 1 }).outcome).toBe('refused')
    })

    test('is waited for while one of several may come', () => {
      const run = opened()
      const [entry] = run.state.hold.late
      run.put({ type: 'inherit', late: [{ ...entry!, change: { ...entry!.change } }] })
      const late = [{ ...entry!, change: { ...entry!.change }, until: 9_000 }]
      run.put({ type: 'inherit', late }).look({ after: 2_000 })
      expect(run.outcome).toBe(null)
      expect(run.look({ after: 7_000 }).outcome).toBe('refused')
    })

    test('is waited for while its call goes on', () => {
      const run = started({ lateBound: 1_000 }).look()
      const error = failure('CALL_TIMEOUT')
      const result = { ref: run.state.ref, status: 'unknown' as const, error }
      run.put({ type: 'result', change: run.change, givenUp: true, result })
      run.open({ of: 'anybody', until: 1_200, lateUntil: 90_000 }).look()
      run.set({ own: 'unknown' }).look({ after: 5_000 })
      expect(run.outcome).toBe(null)
    })
  })

  test('in a known state is waited for past its time', () => {
    const run = started({ lateBound: 1_000 }).look().lose()
    run.open({ of: 'anybody', until: 1_200, lateUntil: 90_000 }).look().wait(3_000)
    run.put({ type: 'checked', error: null })
    expect(run.outcome).toBe(null)
  })
})
