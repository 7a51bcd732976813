import { describe, expect, test } from 'vitest'
import { failure, held, started, type MemberRun, type RunOptions } from '../member-run.js'

/** A run that held, and whose undo is under way. */
function undoing(options: RunOptions = {}): MemberRun {
  return held(options).look().open().look()
}

describe('the undo of a hold', () => {
  test('opens a put-back that was answered after the undo had begun', () => {
    const run = held().look().set({ own: 'ready' }).scope('w1', { incarnation: 'w1.2' }).look()
    expect(run.sent).toBe('hold drain')
    run.open().answer().look()
    expect(run.sent).toBe('restore drain to ready')
    expect(run.answer().look().outcome).toBe('restored')
  })

  test('goes back to what was found', () => {
    expect(undoing().sent).toBe('restore drain to ready')
  })

  test('waits for a new look', () => {
    const run = held().look().open()
    expect(run.sent).toBe(null)
    run.look({ asked: run.now })
    expect(run.sent).toBe(null)
    expect(run.look().sent).toBe('restore drain to ready')
  })

  test('waits for a look after a failed one', () => {
    const run = held().look().fail().open()
    expect(run.sent).toBe(null)
    expect(run.look().sent).toBe('restore drain to ready')
  })

  test('carries the identity and the native words of the adapter', () => {
    const run = undoing({ present: { native: { weight: 7 } } })
    expect(run.change).toMatchObject({ identity: '10.0.0.1:80', native: { weight: 7 } })
  })

  test('is done once a look shows it', () => {
    const run = undoing().answer()
    expect(run.outcome).toBe(null)
    run.look()
    expect(run.outcome).toBe('restored')
    expect(run.said).toEqual(['phase'])
    expect(run.phase).toBe('active')
    run.settle()
    expect(run.state.hold.changes).toEqual([])
    expect(run.state.ending.holding).toBe(false)
  })

  test('is not done by a look from before its answer', () => {
    const run = undoing().wait(50).answer()
    run.look({ asked: run.now - 10 })
    expect(run.outcome).toBe(null)
  })

  test('of nothing is done at once, without a look', () => {
    const run = started().open()
    expect(run.outcome).toBe('restored')
    expect(run.changes).toEqual([])
  })

  test('of a hold that found it drained is done at once', () => {
    const run = started({ own: 'drain' }).look().answer('unchanged').open()
    expect(run.outcome).toBe('restored')
    expect(run.own).toBe('drain')
  })

  test('of a hold over a drain goes back to the drain', () => {
    const run = started({ own: 'drain', hold: 'maint' }).look().answer().look().open().look()
    expect(run.sent).toBe('restore maint to drain')
    expect(run.answer().look().outcome).toBe('restored')
  })

  test('waits while the state is unknown', () => {
    const run = held().set({ own: 'unknown' }).look().open()
    expect(run.sent).toBe(null)
    expect(run.set({ own: 'drain' }).look().sent).toBe('restore drain to ready')
  })

  test('of a member that is gone ends as gone', () => {
    const run = held().open().vanish().look().look({ after: 20 })
    expect(run.outcome).toBe('gone')
    expect(run.sentSoFar).toEqual(['hold drain'])
  })

  test('of a replaced member ends as gone', () => {
    const run = held().open().set({ identity: 'x' }).look().look({ after: 20 })
    expect(run.outcome).toBe('gone')
    expect(run.sentSoFar).toEqual(['hold drain'])
  })

  test('waits for the answer under way, even past its time', () => {
    const run = held().look()
    run
      .open({ until: run.now + 50 })
      .look()
      .look({ after: 100 })
    expect(run.outcome).toBe(null)
  })

  test('sends nothing after its end', () => {
    const run = undoing().answer().look().set({ own: 'drain' }).look()
    expect(run.sentSoFar).toEqual(['hold drain', 'restore drain to ready'])
  })

  test('leaves a member alone whose earlier state is unknown', () => {
    const found = { identity: '10.0.0.1:80', own: 'unknown' as const, serves: true, native: null }
    const changes = [
      { kind: 'hold' as const, to: 'drain' as const, state: 'applied' as const, at: 1 },
    ]
    const run = started({ own: 'drain' }).put({
      type: 'inherit',
      late: [],
      owned: { found, changes },
    })
    run.open().look()
    expect(run.outcome).toBe('overruled')
    expect(run.error?.message).toContain('its state before the drain is not known')
    expect(run.error?.retryable).toBe(false)
    expect(run.sent).toBe(null)
  })

  test('carries no native words if the adapter gave none', () => {
    expect(undoing().change).not.toHaveProperty('native')
  })

  test('ignores an inherited drain', () => {
    const run = undoing({ present: { inherited: 'drain' } })
      .answer()
      .look()
    expect(run.outcome).toBe('restored')
  })

  test('to maint counts nothing as cut', () => {
    const run = started({ own: 'maint', maint: 'cuts', scopes: { w1: { active: 1 } } })
    run.look().answer('unchanged').look().set({ own: 'ready' })
    run.scope('w1', { incarnation: 'w1.2' }).look().answer().look().open().look()
    expect(run.sent).toBe('restore drain to maint')
    expect(run.answer().all('terminated')).toEqual([])
  })

  test('notes that it found it so already', () => {
    const run = started({ own: 'maint' }).look().answer('unchanged').look().set({ own: 'ready' })
    run.scope('w1', { incarnation: 'w1.2' }).look().answer().look().open().look()
    run.set({ own: 'maint' }).answer('unchanged')
    expect(run.state.hold.changes.at(-1)).toMatchObject({ kind: 'restore', state: 'unchanged' })
  })

  test('is one try with all its repeats', () => {
    const run = undoing({ lateBound: 1e9 }).lose().look().refuse(failure('CONFLICT', true))
    run.look({ after: 250 })
    expect(run.sent).toBe('restore drain to ready')
    expect(run.state.goal).toMatchObject({ tries: 1 })
  })

  test('does not count while the member is absent', () => {
    const run = held().open().vanish().look()
    expect(run.state.proof.effectiveSince).toBe(null)
  })

  test('of a member absent once goes on', () => {
    const run = held().open().vanish().look().set({}).look()
    expect(run.sent).toBe('restore drain to ready')
  })
})

describe('leaving maint', () => {
  const maint: RunOptions = { hold: 'maint', present: { health: 'up' } }

  test('goes by way of drain if checks run', () => {
    const run = undoing(maint)
    expect(run.sent).toBe('restore maint to drain')
    run.set({ health: 'unknown' }).answer().look()
    expect(run.sent).toBe(null)
    expect(run.set({ health: 'up' }).look().sent).toBe('restore drain to ready')
    expect(run.answer().look().outcome).toBe('restored')
  })

  test('opens a member that is down if its health is not asked for', () => {
    const run = undoing(maint).answer().set({ health: 'down' }).look()
    expect(run.sent).toBe('restore drain to ready')
  })

  test('goes straight if nothing is checked', () => {
    expect(undoing({ hold: 'maint' }).sent).toBe('restore maint to ready')
  })

  test('goes straight if the product has no drain', () => {
    const run = undoing({ ...maint, ladder: ['ready', 'maint'] })
    expect(run.sent).toBe('restore maint to ready')
  })

  test('goes straight to a drain that was there before', () => {
    const run = started({ ...maint, own: 'drain' })
      .look()
      .answer()
      .look()
      .open()
      .look()
    expect(run.sent).toBe('restore maint to drain')
    expect(run.answer().look().outcome).toBe('restored')
  })

  test('is ours in both steps', () => {
    const run = undoing(maint).answer().look()
    expect(run.state.hold.changes.map(({ to, state }) => [to, state])).toEqual([
      ['maint', 'applied'],
      ['drain', 'applied'],
    ])
  })

  test('is ours after the answer to its first step was lost', () => {
    const run = undoing(maint).lose('done').look()
    expect(run.look().sent).toBe('restore drain to ready')
  })
})

describe('a state found by an undo', () => {
  test('is left alone as overruled if it is not ours', () => {
    const run = held().look().set({ own: 'maint' }).open().look()
    expect(run.outcome).toBe('overruled')
    expect(run.error?.code).toBe('CONFLICT')
    expect(run.error?.message).toContain("'maint', set by another client")
    expect(run.sentSoFar).toEqual(['hold drain'])
  })

  test('is ours if another process brought back our hold', () => {
    const run = undoing({ hold: 'maint' })
    run.answer().set({ own: 'maint' }).scope('w1', { incarnation: 'w1.2' }).look()
    expect(run.sent).toBe('restore maint to ready')
  })

  test('is not ours if it is an earlier one in the same process', () => {
    const run = held({ seal: 'gentle' }).idle().set({ own: 'drain' }).open().look()
    expect(run.outcome).toBe('overruled')
  })

  test('is ours if it is an earlier one in another process', () => {
    const run = held({ seal: 'gentle' }).idle()
    run.set({ own: 'drain' }).scope('w1', { incarnation: 'w1.2' }).open().look()
    expect(run.sent).toBe('restore drain to ready')
  })

  test('has an unknown owner if the hold was only intended', () => {
    const run = started().look().set({ own: 'drain' }).answer('unchanged').open().look()
    expect(run.outcome).toBe('overruled')
    expect(run.error?.message).toContain('was only intended')
  })

  test('is not ours if it was set after our first step in the same process', () => {
    const run = started({ own: 'drain', hold: 'maint' }).look().answer().look().open().look()
    run.answer().set({ own: 'maint' }).look()
    expect(run.outcome).toBe('overruled')
    expect(run.error?.message).toContain("'maint' again after it was made 'drain'")
  })

  test('ends the undo if it is the wished one', () => {
    const run = held().look().set({ own: 'ready' }).open().look()
    expect(run.outcome).toBe('restored')
    expect(run.sentSoFar).toEqual(['hold drain'])
  })

  test('is not ours if it was set after our undo in the same process', () => {
    const run = undoing({ lateBound: 1_000 }).answer().set({ own: 'drain' }).look()
    expect(run.outcome).toBe('overruled')
    expect(run.error?.message).toContain("'drain' again after it was made 'ready'")
  })

  test('is opened again if another process brought it back after our undo', () => {
    const run = undoing().answer().set({ own: 'drain' }).scope('w1', { incarnation: 'w1.2' }).look()
    expect(run.sent).toBe('restore drain to ready')
  })

  test('is ours, either way, after a lost raise over our own hold', () => {
    const sealing = (): MemberRun => held({ seal: 'gentle' }).lookAt(100).lookAt(1_000)
    expect(sealing().lose().open().look().sent).toBe('restore drain to ready')
    expect(sealing().lose('done').open().look().outcome).toBe(null)
    expect(sealing().lose('done').open().look().look().sent).toBe('restore maint to ready')
  })
})
