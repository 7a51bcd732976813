import { describe, expect, test } from 'vitest'
import { started, type MemberRun } from './member-run.js'

/** A maint whose answer was lost, sent again and confirmed, then undone: the lost one may still come. */
function undone(): MemberRun {
  const run = started({ hold: 'maint' }).look().lose().look().answer().look()
  expect(run.sentSoFar).toEqual(['hold maint', 'hold maint'])
  run.open().look().answer().look()
  expect(run.own).toBe('ready')
  return run
}

describe('a hold that was sent twice, and is carried out again after its undo', () => {
  test('is ours', () => {
    const run = undone().set({ own: 'maint' }).look().look()
    expect(run.outcome).toBe(null)
    expect(run.sent).toBe('restore maint to ready')
  })

  test('is opened again whole, by way of drain', () => {
    const run = started({ hold: 'maint', present: { health: 'up' } })
      .look()
      .lose()
      .look()
      .answer()
    run.look().open().look().answer().look().answer().look()
    expect(run.own).toBe('ready')
    run.set({ own: 'maint' }).look().look().answer().look()
    expect(run.sent).toBe('restore drain to ready')
    run.answer().looks(2_000)
    expect(run.outcome).toBe('restored')
  })

  test('is not told by a look from before the undo', () => {
    const run = undone()
    const { changes } = run.state.hold
    run.set({ own: 'maint' }).look({ asked: run.now - 15 })
    expect(run.state.hold.changes).toEqual(changes)
  })
})

describe('a hold that was sent twice', () => {
  test('is entered once, where one was confirmed', () => {
    const run = started().look().lose().look().answer().look()
    expect(run.state.hold.changes).toMatchObject([{ to: 'drain', state: 'applied' }])
    expect(run.state.hold.late).toHaveLength(1)
  })

  test('leaves one to come, where both were lost', () => {
    const run = started().look().lose().look().lose().look({ after: 500 })
    run.put({
      type: 'result',
      change: run.change,
      result: { ref: run.state.ref, status: 'rejected', error: run.state.hold.loss! },
    })
    run.set({ own: 'drain' }).look()
    expect(run.state.hold.changes).toMatchObject([{ to: 'drain', state: 'applied' }])
    expect(run.state.hold.late.length).toBeGreaterThan(0)
  })
})
