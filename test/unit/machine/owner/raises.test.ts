import { describe, expect, test } from 'vitest'
import { failure, held, started, unanswered, undoOf, type MemberRun } from '../member-run.js'

/** The newest entry of the ledger, in words. */
function newest({ state }: MemberRun): string {
  const { kind, to, state: how } = state.hold.changes.at(-1)!
  return `${kind} ${String(to)} ${how}`
}

/** A drain of ours, and a raise to maint under way. */
function raising(): MemberRun {
  const run = held({ seal: 'gentle' }).lookAt(100).lookAt(1_100)
  expect(run.sent).toBe('hold maint')
  return run
}

describe('a hold that finds its state in place, and was decided on a lower one', () => {
  test('is of unknown owner, where nothing of ours was there', () => {
    expect(newest(started().look().answer('unchanged'))).toBe('hold drain intended')
  })

  test('is of another client, where a drain of ours was there', () => {
    expect(newest(raising().set({ own: 'maint' }).answer('unchanged'))).toBe('hold maint unchanged')
  })

  test('is of unknown owner, where a twin of it has no answer', () => {
    const run = raising().lose().look()
    expect(run.sent).toBe('hold maint')
    expect(newest(run.set({ own: 'maint' }).answer('unchanged'))).toBe('hold maint intended')
  })

  test('is of unknown owner, where the ledger has the same as intended', () => {
    for (const [to, owner] of [
      ['maint', 'intended'],
      ['drain', 'unchanged'],
    ] as const) {
      const run = raising()
      const { hold } = run.state
      const intended = { kind: 'hold', to, state: 'intended', at: run.now } as const
      run.state = { ...run.state, hold: { ...hold, changes: [intended, ...hold.changes] } }
      expect(newest(run.set({ own: 'maint' }).answer('unchanged'))).toBe(`hold maint ${owner}`)
    }
  })

  test('is of another client, where the ledger has the same as found before', () => {
    const run = raising()
    const { hold } = run.state
    const was = { kind: 'hold', to: 'maint', state: 'unchanged', at: run.now } as const
    run.state = { ...run.state, hold: { ...hold, changes: [was, ...hold.changes] } }
    expect(newest(run.set({ own: 'maint' }).answer('unchanged'))).toBe('hold maint unchanged')
  })

  test('is of unknown owner, where the drain below was found, not ours', () => {
    const run = started({ own: 'drain', seal: 'gentle' }).look().answer('unchanged').mark()
    run.lookAt(100).lookAt(1_100)
    expect(run.sent).toBe('hold maint')
    expect(newest(run.set({ own: 'maint' }).answer('unchanged'))).toBe('hold maint intended')
  })

  test('leaves the drain below ours to undo', () => {
    const run = raising().set({ own: 'maint' }).answer('unchanged')
    run.open().set({ own: 'drain' }).look()
    expect(run.sent).toBe('restore drain to ready')
  })

  test('is of the one who was there before, where it was read in place', () => {
    expect(newest(started({ own: 'drain' }).look().answer('unchanged'))).toBe(
      'hold drain unchanged',
    )
  })
})

test('a refused hold may be half done, where its state shows', () => {
  const run = started().look().refuse(failure('CONFLICT', true))
  expect(newest(run.set({ own: 'drain' }).look())).toBe('hold drain intended')
})

describe('what an undo goes back to', () => {
  const found = ({ state }: MemberRun): string | undefined => state.found?.own

  test('is lower where others opened what a hold had found drained', () => {
    const run = started({ own: 'drain' }).look().answer('unchanged').look()
    expect(found(run.set({ own: 'ready' }).look())).toBe('ready')
  })

  test('stays where a hold of ours was over it', () => {
    for (const own of ['ready', 'drain'] as const) {
      const run = started({ own: 'drain', hold: 'maint' }).look().answer().look()
      expect(found(run.set({ own }).look())).toBe('drain')
    }
  })

  test('stays below what others lowered it to', () => {
    const run = started({ hold: 'maint' }).look().set({ own: 'maint' }).answer('unchanged').look()
    run.set({ own: 'drain' }).look()
    expect([run.outcome, found(run)]).toEqual(['overruled', 'ready'])
  })

  test('stays where others lowered it no further than it was found', () => {
    const run = started({ own: 'maint', hold: 'maint' }).look().answer('unchanged').look()
    expect(found(run.set({ own: 'maint' }).look())).toBe('maint')
  })
})

test('a raise is of unknown owner after only an undo of ours', () => {
  const run = started()
    .put({ type: 'inherit', late: [unanswered(undoOf('drain', 'ready'))] })
    .look()
    .look()
  expect(run.state.hold.changes).toMatchObject([{ kind: 'restore', state: 'applied' }])
  run.answer('unchanged')
  expect(run.state.hold.changes.at(-1)).toMatchObject({ kind: 'hold', state: 'intended' })
})
