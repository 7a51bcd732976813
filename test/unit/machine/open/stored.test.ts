import { openGoal } from 'drainable/machine'
import type { PresentReading } from 'drainable/provider'
import { describe, expect, test } from 'vitest'
import { failure, started, type MemberRun } from '../member-run.js'

const FREE = { stored: undefined, native: { weight: 7 } } as unknown as Partial<PresentReading>
const MARKED = { stored: 'maint', native: { weight: 7, mark: true } } as const

/** A member whose stored configuration keeps it away at the next reload, and that runs as ready. */
function readied(): MemberRun {
  const goal = openGoal({ of: 'anybody', until: null, lateUntil: null })
  return started({ own: 'ready', goal, present: MARKED })
}

/** A member that our drain found without a mark and then marked, and that another client opened at run time. */
function openedBehind(): MemberRun {
  const run = started({ own: 'ready', present: FREE }).look().answer()
  run.set({ own: 'drain', stored: 'drain', native: { weight: 0, mark: true } }).look()
  return run.set({ own: 'ready', stored: 'drain', native: { weight: 7, mark: true } })
}

describe('a mark stored beside a ready member', () => {
  test('is taken back by ready() before it is done', () => {
    const run = readied().look()
    expect(run.sent).toBe('restore ready to ready')
    expect(run.outcome).toBe(null)
    run.answer().set(FREE).look()
    expect(run.outcome).toBe('restored')
  })

  test('is taken back by an undo if a hold of ours may have stored it', () => {
    const run = openedBehind().open({ of: 'ours' }).look()
    expect(run.sent).toBe('restore ready to ready')
    expect(run.answer().set(FREE).look().outcome).toBe('restored')
  })

  test('is left to its owner by an undo of a lower hold', () => {
    const run = openedBehind().set(MARKED).open({ of: 'ours' }).look()
    expect(run.sent).toBe(null)
    expect(run.outcome).toBe('overruled')
    expect(run.error?.message).toContain("makes it 'maint' at the next reload")
  })

  test('is left alone by an undo if the drain found it so', () => {
    const run = started({ own: 'ready', present: MARKED }).look().answer()
    run.set({ own: 'drain', native: { weight: 7, mark: true, own: 'drain' } }).look()
    run.open({ of: 'ours' }).look()
    expect(run.sent).toBe('restore drain to ready')
    expect(
      run
        .answer()
        .set({ own: 'ready', ...MARKED })
        .look().outcome,
    ).toBe('restored')
  })

  test('ends as overruled when it comes back each time', () => {
    const run = readied()
    for (let i = 0; i < 40 && run.outcome === null; i++) {
      run.look()
      if (run.sent !== null) run.answer()
    }
    expect(run.outcome).toBe('overruled')
    expect(run.error?.message).toContain(
      "makes it 'maint' at the next reload, even after it was made 'ready' 12 times: find out which client writes it",
    )
  })

  test('does not affect the proof of a drain', () => {
    const run = started({ own: 'drain', present: { stored: 'maint' } }).look()
    expect(run.sent).toBe('hold drain')
    run.answer()
    for (let i = 0; i < 5; i++) run.look({ after: 600 })
    expect(run.outcome).toBe('idle')
  })
})

describe('a mark stored beside a drained member', () => {
  /** Drained by us, with a mark in the file; then its state or its mark is another. */
  const drained = (): MemberRun => {
    const run = started({ own: 'ready', present: FREE }).look().answer()
    return run.set({ stored: 'drain', native: { weight: 0, mark: true } }).look()
  }

  test('of ours is taken back if the mark is higher than what runs', () => {
    const run = started({ hold: 'maint', own: 'ready', present: FREE }).look().answer()
    run.set({ own: 'drain', stored: 'maint', native: { weight: 0, mark: true } }).look()
    expect(run.open({ of: 'ours' }).look().sent).toBe('restore drain to ready')
  })

  test('says nothing about a state higher than the mark', () => {
    const run = drained().set({ own: 'maint' }).open({ of: 'ours' }).look()
    expect(run.sent).toBe(null)
    expect(run.outcome).toBe('overruled')
    expect(run.error?.message).toContain("it is 'maint', set by another client")
  })

  test('says nothing about a state equal to the mark', () => {
    const run = started({ own: 'ready', present: FREE }).look().answer('unchanged').look()
    run
      .set({ own: 'maint', stored: 'maint', native: { mark: true } })
      .open({ of: 'ours' })
      .look()
    expect(run.outcome).toBe('overruled')
  })

  test('of another client says nothing about what that client set', () => {
    const run = started({ own: 'ready', present: FREE }).look().answer().look()
    run
      .set({ own: 'ready', stored: 'maint', native: { mark: true } })
      .open({ of: 'ours' })
      .look()
    expect(run.outcome).toBe('overruled')
    expect(run.error?.message).toContain("makes it 'maint' at the next reload")
  })

  test('does not matter to an undo that goes back to drain', () => {
    const run = started({ own: 'drain', hold: 'maint', present: FREE }).look().answer()
    run
      .set({ stored: 'maint', native: { mark: true } })
      .open({ of: 'ours' })
      .look()
      .answer()
    expect(run.look().outcome).toBe('restored')
  })

  test('may be from a hold without an answer', () => {
    const run = started({ own: 'ready', present: FREE, lateBound: 9_000 }).look().lose()
    run
      .set({ stored: 'drain', native: { mark: true } })
      .open({ of: 'ours' })
      .look()
    expect(run.sent).toBe('restore ready to ready')
  })

  test('is not from a change that was only intended, nor from an undo', () => {
    const run = started({ own: 'ready', present: FREE }).look().answer().look()
    run.open({ of: 'ours' }).look().answer()
    run.set({ stored: 'maint', native: { mark: true } }).look()
    expect(run.outcome).toBe('overruled')
  })

  test('is compared with nothing if nothing was found', () => {
    const run = started({ own: 'ready' }).look().answer()
    run.set({ own: 'ready', stored: 'drain', native: null })
    expect(run.open({ of: 'ours' }).look().outcome).toBe('restored')
  })

  test('is not from a hold whose outcome is unknown', () => {
    const run = started({ own: 'ready', present: FREE }).look().answer('unchanged')
    expect(run.state.hold.changes).toMatchObject([{ to: 'drain', state: 'intended' }])
    run.look().set({ own: 'ready', stored: 'drain', native: { mark: true } })
    expect(run.open({ of: 'ours' }).look().outcome).toBe('overruled')
  })

  test('may be from a hold that came and went', () => {
    const run = started({ own: 'ready', present: FREE, lateBound: 9_000 }).look()
    run.set({ own: 'drain' }).look().set({ own: 'ready' }).look().lose()
    run
      .set({ stored: 'drain', native: { mark: true } })
      .open({ of: 'ours' })
      .look()
    expect(run.sent).toBe('restore ready to ready')
  })

  test('of ours says nothing about what others run', () => {
    const run = drained().open({ of: 'ours' }).look().answer()
    run.set({ own: 'ready', stored: 'drain' }).look()
    expect(run.sent).toBe('restore ready to ready')
    run.answer().set({ own: 'drain' }).look()
    expect(run.outcome).toBe('overruled')
  })

  test('of others, higher than what runs, does not explain it', () => {
    const run = started({ own: 'ready', present: FREE }).look().refuse(failure('CONFLICT', true))
    run
      .set({ own: 'drain', stored: 'maint', native: { mark: true } })
      .open({ of: 'ours' })
      .look()
    expect(run.sent).toBe(null)
    expect(run.outcome).toBe('overruled')
  })

  test('of ours does not excuse a client that closes it after ready()', () => {
    const run = started({ own: 'ready', hold: 'maint', present: { ...FREE, health: 'up' } })
    run.look().answer().look().open({ of: 'anybody', mustBeHealthy: true }).look().answer()
    run.look().answer().set({ health: 'down' }).look()
    expect(run.state.goal).toMatchObject({ reached: expect.anything() as unknown })
    run.set({ own: 'drain', stored: 'maint', native: { mark: true } }).look()
    expect(run.outcome).toBe('overruled')
  })

  test('is left alone if the product tells nothing of its own', () => {
    const run = started({ own: 'ready' }).look().set({ stored: 'maint' }).lose()
    run.open({ of: 'ours' }).look()
    expect(run.state.goal).toMatchObject({ reached: expect.anything() as unknown })
  })
})
