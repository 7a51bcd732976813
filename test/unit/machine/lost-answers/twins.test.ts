import { isTwin, sentChange } from '../../../../src/core/machine/ledger/changes.js'
import { shareHolds } from '../../../../src/core/machine/ledger/late.js'
import { describe, expect, test } from 'vitest'
import { held, started } from '../member-run.js'

describe('two changes to one state', () => {
  const ref = { pool: 'web', member: 'web1' }
  const drain = { kind: 'hold', ref, to: 'drain' } as const
  const back = { kind: 'restore', ref, expect: 'maint', to: 'drain' } as const

  test('are twins if both are holds', () => {
    expect(isTwin(drain, { ...drain })).toBe(true)
    expect(isTwin(drain, { ...drain, to: 'maint' })).toBe(false)
    for (const [one, other] of [
      [drain, back],
      [back, drain],
      [back, { ...back }],
    ] as const)
      expect(isTwin(one, other)).toBe(false)
  })

  test('are told apart by an undo, whatever is late', () => {
    const late = { change: drain, lostAt: 1, until: null, lackedAt: null }
    expect(sentChange(back, 'maint', [late]).shared).toBeUndefined()
    expect(sentChange({ ...drain }, 'ready', [late]).shared).toBe(true)
  })

  test('are shared with other runs, even under way, but undos are not', () => {
    const { hold } = shareHolds(started().look().state)
    expect(hold.pending).toMatchObject({ change: { kind: 'hold' }, shared: true })
    const undo = shareHolds(held().look().open().look().lose().state)
    expect(undo.hold.late).toMatchObject([{ change: { kind: 'restore' } }])
    expect(undo.hold.late[0]?.shared).toBeUndefined()
  })
})

describe('a lost hold beside another to the same state', () => {
  /** Another process than the one that took it: our drain is forgotten. */
  function forget(run: ReturnType<typeof held>, n: number): void {
    run.set({ own: 'ready' }).scope('w1', { incarnation: `w1.${n}` })
  }

  test('is not settled by an effect of either', () => {
    const run = held({ lateBound: 1_000 }).look()
    forget(run, 2)
    run.look().lose().look().answer().look()
    forget(run, 3)
    run.look() // a third one goes out, and the first is carried out late
    run.set({ own: 'drain' }).looks(1_500)
    run.lose().look()
    expect(run.state.hold.late).toMatchObject([{ shared: true }])
    run.open().look().answer().looks(500)
    expect(run.outcome).toBe(null)
    run.set({ own: 'drain' }).look().look()
    expect(run.sent).toBe('restore drain to ready')
    run.answer().looks(1_200)
    expect(run.outcome).toBe('restored')
  })

  test('stays while the other is under way', () => {
    const run = started({ lateBound: 9_000 }).look().lose().look()
    run.set({ own: 'drain' }).look()
    expect(run.state.hold.late).toMatchObject([{ lackedAt: null }])
  })

  test('of another run is ours, and an undo waits for it', () => {
    const run = started({ lateBound: 1_000 }).look().lose()
    run.state = shareHolds(run.state)
    run.set({ own: 'drain' }).look()
    expect(run.state.hold.changes).toMatchObject([{ to: 'drain', state: 'applied' }])
    run.open().look().answer().looks(500)
    expect(run.outcome).toBe(null)
    expect(run.looks(600).outcome).toBe('restored')
  })
})
