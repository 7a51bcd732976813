import { describe, expect, test } from 'vitest'
import { failure, held, idle, started, type MemberRun, type RunOptions } from '../member-run.js'

/** A run that held, and whose undo is under way. */
function undoing(options: RunOptions = {}): MemberRun {
  return held(options).look().open().look()
}

describe('a refused restore', () => {
  test('for good ends as refused', () => {
    const no = failure('FORBIDDEN')
    const run = undoing().refuse(no).look({ after: 300 })
    expect(run.outcome).toBe('refused')
    expect(run.error).toBe(no)
    expect(run.sent).toBe(null)
    expect(run.state.hold.changes).toHaveLength(1)
  })

  test('for now is retried after 250 ms', () => {
    const run = undoing().refuse(failure('CONFLICT', true))
    expect(run.look({ after: 249 }).sent).toBe(null)
    expect(run.look({ after: 1 }).sent).toBe('restore drain to ready')
  })

  test('for now until its time is over ends as refused', () => {
    const later = failure('CONFLICT', true)
    const run = held().look()
    run
      .open({ until: run.now + 210 })
      .look()
      .refuse(later)
      .look({ after: 199 })
    expect(run.outcome).toBe(null)
    expect(run.look({ after: 1 }).outcome).toBe('refused')
    expect(run.error).toBe(later)
  })
})

describe('an undo that takes too long', () => {
  test('ends as unreachable if the balancer can not be read', () => {
    const run = held().look()
    run
      .fail()
      .open({ until: run.now + 500 })
      .fail(failure('CONNECTION_LOST'), 499)
    expect(run.outcome).toBe(null)
    run.fail(failure('CONNECTION_LOST'), 1)
    expect(run.outcome).toBe('unreachable')
    expect(run.error?.code).toBe('CONNECTION_LOST')
  })

  test('ends as unreachable if no look comes back', () => {
    const run = held().look().fail()
    run.open({ until: run.now + 500 }).wait(499)
    run.put({ type: 'overdue', error: failure('CALL_TIMEOUT'), silent: true })
    expect(run.outcome).toBe(null)
    run.wait(1).put({ type: 'overdue', error: failure('CALL_TIMEOUT'), silent: true })
    expect(run.outcome).toBe('unreachable')
    expect(run.error?.code).toBe('CALL_TIMEOUT')
  })

  test('does not end without a look before its time', () => {
    const run = held().look().open().wait(1e6)
    run.put({ type: 'overdue', error: failure('CALL_TIMEOUT'), silent: true })
    expect(run.outcome).toBe(null)
  })

  test('does not end while a late change has no limit', () => {
    const run = started({ lateBound: 9_000 }).look().lose().open().look().wait(1_000)
    run.put({ type: 'overdue', error: failure('CALL_TIMEOUT'), silent: true })
    expect(run.outcome).toBe(null)
  })

  test('ends for a late change at its limit, and not before', () => {
    const run = started({ lateBound: 9_000 }).look().lose()
    run
      .open({ lateUntil: run.now + 500 })
      .look()
      .wait(489)
    run.put({ type: 'overdue', error: failure('CALL_TIMEOUT'), silent: true })
    expect(run.outcome).toBe(null)
    run.wait(1).put({ type: 'overdue', error: failure('CALL_TIMEOUT'), silent: true })
    expect(run.outcome).toBe('refused')
  })

  test('does not end at the limit of a late change that it does not wait for', () => {
    const run = held().look().fail()
    run.open({ lateUntil: run.now + 500 }).wait(1_000)
    run.put({ type: 'overdue', error: failure('CALL_TIMEOUT'), silent: true })
    expect(run.outcome).toBe(null)
  })

  test('reports its refusal if no look comes back', () => {
    const later = failure('CONFLICT', true)
    const run = held().look()
    run
      .open({ until: run.now + 200 })
      .look()
      .refuse(later)
      .wait(300)
    run.put({ type: 'overdue', error: failure('CALL_TIMEOUT'), silent: true })
    expect(run.outcome).toBe('unreachable')
    expect(run.error).toBe(later)
  })

  test('ends as refused if the state stays unknown', () => {
    const run = held().set({ own: 'unknown' }).look()
    run.open({ until: run.now + 500 }).look({ after: 500 })
    expect(run.outcome).toBe('refused')
    expect(run.error?.message).toContain('contradicts itself')
  })

  test('is never given up without a limit', () => {
    expect(held().set({ own: 'unknown' }).look().open().look({ after: 1e9 }).outcome).toBe(null)
  })

  test('reports the refusal rather than the failed look', () => {
    const later = failure('CONFLICT', true)
    const run = held().look()
    run
      .open({ until: run.now + 200 })
      .look()
      .refuse(later)
      .fail(failure('CONNECTION_LOST'), 300)
    expect(run.outcome).toBe('unreachable')
    expect(run.error).toBe(later)
  })
})

describe('a change of the goal', () => {
  test('drops the proof and keeps the ledger', () => {
    const run = idle({ seal: 'gentle' })
    const { changes } = run.state.hold
    run.put({ type: 'unreadable', error: failure('CONNECTION_LOST'), askedAt: run.now }).open()
    expect(run.state.proof).toMatchObject({ verdict: null, proof: null, sealed: false })
    expect(run.state.hold.changes).toEqual(changes)
    expect(run.outcome).toBe(null)
  })

  test('from idle leaves idle, which nothing proves any more', () => {
    const run = idle().open()
    expect(run.said).toEqual(['phase'])
    expect(run.phase).toBe('draining')
  })

  test('forgets the samples taken so far', () => {
    const run = held().look().open()
    expect(run.state.proof.scopes.get('w1')?.zeros).toBe(null)
  })

  test('takes the answer to a hold under way as no drain', () => {
    const run = started().look().open().answer()
    expect(run.phase).toBe('active')
    expect(run.state.proof.effectiveSince).toBe(null)
  })

  test('of a removed member has nothing to open', () => {
    const run = held({ until: 'removed' }).lookAt(100).lookAt(1_000).answer().open()
    expect(run.outcome).toBe('gone')
    expect(run.error?.code).toBe('MEMBER_GONE')
  })

  test('leaves a change under way alone until its answer', () => {
    const run = started().look().open()
    expect(run.sent).toBe(null)
    expect(run.answer().look().sent).toBe('restore drain to ready')
  })

  test('over a lost change under way waits for it', () => {
    const run = started({ lateBound: 500 }).look().open().lose().look()
    expect(run.outcome).toBe(null)
    expect(run.looks(600).outcome).toBe('restored')
  })

  test('over a refused change under way has nothing to undo', () => {
    const run = started().look().open().refuse()
    expect(run.outcome).toBe(null)
    expect(run.look().outcome).toBe('restored')
  })

  test('ends a pause', () => {
    const run = held().look().set({ own: 'ready' }).scope('w1', { incarnation: 'w1.2' }).look()
    run.refuse(failure('CONFLICT', true)).set({ own: 'drain' }).look().open().look()
    expect(run.sent).toBe('restore drain to ready')
  })

  test('starts counting refusals and losses anew', () => {
    const run = started().look().lose().look().refuse(failure('CONFLICT', true)).open()
    expect(run.state.hold).toMatchObject({ refusals: 0, losses: 0, refusal: null })
  })

  test('takes up a run that has ended', () => {
    const run = held({ timeout: 100, scopes: { w1: { active: 1 } } }).looks(300)
    expect(run.outcome).toBe('timeout')
    run.settle().put({ type: 'release' }).open()
    expect(run.state.ending).toMatchObject({ settled: false, holding: true, marks: null })
    expect(run.look().sent).toBe('restore drain to ready')
  })

  test('keeps what is known of processes', () => {
    const run = held({ scopes: { w2: { active: 3 } } })
      .scope('w2', { state: 'ended' })
      .look()
      .open()
    expect(run.state.proof.ended).toBe(1)
    expect(run.state.proof.lost).toHaveLength(1)
    expect([...run.state.proof.scopes.keys()]).toEqual(['w1'])
  })

  test('does not replace the undo by a hold', () => {
    const run = undoing().answer().set({ own: 'ready' }).look().looks(2_000)
    expect(run.sentSoFar).toEqual(['hold drain', 'restore drain to ready'])
  })
})

test('an undo emits no load', () => {
  const run = undoing()
  const { length } = run.all('load')
  expect(run.look().answer().look().all('load')).toHaveLength(length)
})
