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

describe('a hold answered with unchanged, decided on a lower state', () => {
  test('has an unknown owner if nothing of ours was there', () => {
    expect(newest(started().look().answer('unchanged'))).toBe('hold drain intended')
  })

  test("is another client's if a drain of ours was there", () => {
    expect(newest(raising().set({ own: 'maint' }).answer('unchanged'))).toBe('hold maint unchanged')
  })

  test('has an unknown owner if a twin of it has no answer', () => {
    const run = raising().lose().look()
    expect(run.sent).toBe('hold maint')
    expect(newest(run.set({ own: 'maint' }).answer('unchanged'))).toBe('hold maint intended')
  })

  test('has an unknown owner if the ledger has the same as intended', () => {
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

  test("is another client's if the ledger found the same before", () => {
    const run = raising()
    const { hold } = run.state
    const was = { kind: 'hold', to: 'maint', state: 'unchanged', at: run.now } as const
    run.state = { ...run.state, hold: { ...hold, changes: [was, ...hold.changes] } }
    expect(newest(run.set({ own: 'maint' }).answer('unchanged'))).toBe('hold maint unchanged')
  })

  test('has an unknown owner if the drain below was found', () => {
    const run = started({ own: 'drain', seal: 'gentle' }).look().answer('unchanged').mark()
    run.lookAt(100).lookAt(1_100)
    expect(run.sent).toBe('hold maint')
    expect(newest(run.set({ own: 'maint' }).answer('unchanged'))).toBe('hold maint intended')
  })

  test('leaves the drain below for us to undo', () => {
    const run = raising().set({ own: 'maint' }).answer('unchanged')
    run.open().set({ own: 'drain' }).look()
    expect(run.sent).toBe('restore drain to ready')
  })

  test('belongs to the earlier client if it was read in place', () => {
    expect(newest(started({ own: 'drain' }).look().answer('unchanged'))).toBe(
      'hold drain unchanged',
    )
  })
})

test('a refused hold may be half made if its state shows', () => {
  const run = started().look().refuse(failure('CONFLICT', true))
  expect(newest(run.set({ own: 'drain' }).look())).toBe('hold drain intended')
})

describe('the state that an undo goes back to', () => {
  const found = ({ state }: MemberRun): string | undefined => state.found?.own

  test('is lower if others opened what a hold had found drained', () => {
    const run = started({ own: 'drain' }).look().answer('unchanged').look()
    expect(found(run.set({ own: 'ready' }).look())).toBe('ready')
  })

  test('stays if a hold of ours was over it', () => {
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

  test('stays if others lowered it no further than it was found', () => {
    const run = started({ own: 'maint', hold: 'maint' }).look().answer('unchanged').look()
    expect(found(run.set({ own: 'maint' }).look())).toBe('maint')
  })
})

test('a raise has an unknown owner after only an undo of ours', () => {
  const run = started()
    .put({ type: 'inherit', late: [unanswered(undoOf('drain', 'ready'))] })
    .look()
    .look()
  expect(run.state.hold.changes).toMatchObject([{ kind: 'restore', state: 'applied' }])
  run.answer('unchanged')
  expect(run.state.hold.changes.at(-1)).toMatchObject({ kind: 'hold', state: 'intended' })
})
