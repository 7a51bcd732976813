import { describe, expect, test } from 'vitest'
import { held, started, type MemberRun } from '../member-run.js'

const ID = '10.0.0.1:80'

describe('a change whose time to come late is over', () => {
  test.each([
    ['contradicts itself', { own: 'unknown' as const }],
    ['shows another member', { identity: 'x', own: 'ready' as const }],
  ])('is not ruled out by a look that %s', (_, shown) => {
    const run = started({ lateBound: 700 }).look().lose().open().look()
    run.set(shown).look({ after: 800 })
    expect(run.state.hold.late).toHaveLength(1)
    expect(run.outcome).toBe(null)
    expect(run.set({ identity: ID, own: 'drain' }).look().look().sent).toBe(
      'restore drain to ready',
    )
  })

  test('is not ruled out by a look with the member absent', () => {
    const run = started({ lateBound: 700 }).look().lose().open().look()
    run.vanish().look({ after: 800 })
    expect(run.state.hold.late).toHaveLength(1)
    expect(run.outcome).toBe(null)
    expect(run.set({ own: 'drain' }).look().look().sent).toBe('restore drain to ready')
  })

  test('is not taken for carried out by the state of another member', () => {
    const run = started({ lateBound: 700 }).look().lose()
    run.set({ identity: 'x', own: 'drain' }).look()
    expect(run.state.hold.changes).toEqual([])
  })

  test('is not seen to be missing on another member', () => {
    const run = started({ own: 'drain', lateBound: 700 }).look().lose()
    run.set({ identity: 'x', own: 'ready' }).look()
    expect(run.state.hold.late).toMatchObject([{ lackedAt: null }])
  })
})

describe('an undo that was applied', () => {
  const late = [
    {
      change: { kind: 'hold' as const, to: 'drain' as const, ref: { pool: 'web', member: 'web1' } },
      lostAt: 900,
      until: null,
      lackedAt: null,
    },
  ]

  test('shows that a late hold was not in place: a later one is ours', () => {
    const run = held({ lateBound: 9_000 }).look().put({ type: 'inherit', late }).open().look()
    run.answer('applied').set({ own: 'drain' }).look().look()
    expect(run.sent).toBe('restore drain to ready')
  })

  test('says nothing of a late hold to the same state', () => {
    const run = held({ own: 'drain', hold: 'maint', lateBound: 9_000 }).look()
    run.put({ type: 'inherit', late }).open().look().answer('applied')
    expect(run.own).toBe('drain')
    expect(run.state.hold.late).toMatchObject([{ lackedAt: null }])
  })
})

describe('a hold under way that a look does not show', () => {
  const drained = (): MemberRun => started({ own: 'drain', lateBound: 9_000 }).look()

  test('is ours if it shows after its answer was lost', () => {
    const run = drained().set({ own: 'ready' }).look().lose('done').look()
    expect(run.state.hold.changes).toMatchObject([{ state: 'applied' }])
    expect(run.state.found?.own).toBe('ready')
  })

  test('has an unknown owner if it was never seen to be missing', () => {
    expect(drained().look().lose('done').look().state.hold.changes).toEqual([])
  })

  test('leads back to the state read last, if that is maint', () => {
    const run = started({ own: 'drain', hold: 'maint', lateBound: 9_000 }).look()
    run.set({ own: 'ready' }).look().lose('done').look()
    expect(run.state.found?.own).toBe('ready')
  })
})

test('a lost hold leads back to the state read last before it showed', () => {
  const run = started({ own: 'drain', hold: 'maint', onOverrule: 'reapply' }).look().lose()
  run.look().set({ own: 'ready' }).look({ after: 300 })
  expect(run.set({ own: 'maint' }).look().state.found?.own).toBe('ready')
})
