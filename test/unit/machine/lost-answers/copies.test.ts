import { describe, expect, test } from 'vitest'
import { started, type MemberRun } from '../member-run.js'

/** A maint whose answer was lost, sent again and confirmed, then undone: the lost one may still come. */
function undone(lateBound = 9_000): MemberRun {
  const run = started({ hold: 'maint', lateBound, present: { health: 'up' } })
  run.look().lose().look().answer().look()
  expect(run.sentSoFar).toEqual(['hold maint', 'hold maint'])
  run.open().look().answer().look().answer().look()
  expect(run.own).toBe('ready')
  return run
}

describe('a late copy of a hold that was sent twice, after the undo', () => {
  test('is ours in the ledger', () => {
    const run = undone().set({ own: 'maint' }).look()
    expect(run.outcome).toBe(null)
    expect(run.state.hold.changes.at(-1)).toMatchObject({ to: 'maint', state: 'applied' })
  })

  test('is opened again entirely, by way of drain', () => {
    const run = undone().set({ own: 'maint' }).look().look()
    expect(run.sent).toBe('restore maint to drain')
    run.answer().look()
    expect(run.sent).toBe('restore drain to ready')
    expect(run.answer().looks(10_000).outcome).toBe('restored')
  })

  test('is ours if the first look after its time shows it', () => {
    const run = undone(700).set({ own: 'maint' }).look({ after: 800 }).look()
    expect(run.sent).toBe('restore maint to drain')
  })

  test('is opened again even after the whole time of the undo', () => {
    const run = started({ lateBound: 9_000 }).look().lose().look().answer().look()
    run
      .open({ until: run.now + 5_000 })
      .look()
      .answer()
      .looks(6_000)
    run.set({ own: 'drain' }).look().look()
    expect(run.sent).toBe('restore drain to ready')
  })

  test('is not recognised by a look from before the undo', () => {
    const run = undone()
    const { changes } = run.state.hold
    run.set({ own: 'maint' }).look({ asked: run.now - 15 })
    expect(run.state.hold.changes).toEqual(changes)
  })
})

describe('a hold that was sent twice', () => {
  test('is in the ledger once if one was confirmed', () => {
    const run = started().look().lose().look().answer().look()
    expect(run.state.hold.changes).toMatchObject([{ to: 'drain', state: 'applied' }])
    expect(run.state.hold.late).toHaveLength(1)
  })

  test('leaves one to come if both were lost', () => {
    const run = started().look().lose().look().lose().look({ after: 500 })
    run.refuse().set({ own: 'drain' }).look()
    expect(run.state.hold.changes).toMatchObject([{ to: 'drain', state: 'applied' }])
    expect(run.state.hold.late.length).toBeGreaterThan(0)
  })
})
