import { describe, expect, test } from 'vitest'
import { failure, held, idle, started, type MemberRun, type RunOptions } from '../member-run.js'

/** A run that held, and whose undo is under way. */
function undoing(options: RunOptions = {}): MemberRun {
  return held(options).look().open().look()
}

describe('the undo of a hold', () => {
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

  test('waits for a look after one that failed', () => {
    const run = held().look().fail().open()
    expect(run.sent).toBe(null)
    expect(run.look().sent).toBe('restore drain to ready')
  })

  test('carries the identity and the words of the adapter', () => {
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

  test('of a member that is another one ends as gone', () => {
    const run = held().open().set({ identity: 'x' }).look().look({ after: 20 })
    expect(run.outcome).toBe('gone')
    expect(run.sentSoFar).toEqual(['hold drain'])
  })

  test('waits for the answer to what is under way, also past its time', () => {
    const run = held().look()
    run
      .open({ until: run.now + 50 })
      .look()
      .look({ after: 100 })
    expect(run.outcome).toBe(null)
  })

  test('sends nothing once it is over', () => {
    const run = undoing().answer().look().set({ own: 'drain' }).look()
    expect(run.sentSoFar).toEqual(['hold drain', 'restore drain to ready'])
  })

  test('of a member whose state before is not known leaves it alone', () => {
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
    expect(run.error?.message).toContain('its state before the drain was not known')
    expect(run.error?.retryable).toBe(false)
    expect(run.sent).toBe(null)
  })

  test('without words of the adapter carries none', () => {
    expect(undoing().change).not.toHaveProperty('native')
  })

  test('does not mind that the member inherits a drain', () => {
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

  test('that finds it so already notes that', () => {
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

describe('the way out of maint', () => {
  const maint: RunOptions = { hold: 'maint', present: { health: 'up' } }

  test('goes by way of drain where checks run', () => {
    const run = undoing(maint)
    expect(run.sent).toBe('restore maint to drain')
    run.set({ health: 'unknown' }).answer().look()
    expect(run.sent).toBe(null)
    expect(run.set({ health: 'up' }).look().sent).toBe('restore drain to ready')
    expect(run.answer().look().outcome).toBe('restored')
  })

  test('opens a member that is down, where nobody asks for its health', () => {
    const run = undoing(maint).answer().set({ health: 'down' }).look()
    expect(run.sent).toBe('restore drain to ready')
  })

  test('goes straight where nothing is checked', () => {
    expect(undoing({ hold: 'maint' }).sent).toBe('restore maint to ready')
  })

  test('goes straight where the product has no drain', () => {
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

describe('a state that is not ours', () => {
  test('is left alone: overruled', () => {
    const run = held().look().set({ own: 'maint' }).open().look()
    expect(run.outcome).toBe('overruled')
    expect(run.error?.code).toBe('CONFLICT')
    expect(run.error?.message).toContain("'maint', set so by somebody else")
    expect(run.sentSoFar).toEqual(['hold drain'])
  })

  test('is one of ours that another process brought back', () => {
    const run = undoing({ hold: 'maint' })
    run.answer().set({ own: 'maint' }).scope('w1', { incarnation: 'w1.2' }).look()
    expect(run.sent).toBe('restore maint to ready')
  })

  test('is one of ours before that in the same process', () => {
    const run = held({ seal: 'gentle' }).idle().set({ own: 'drain' }).open().look()
    expect(run.outcome).toBe('overruled')
  })

  test('is ours before that in another process', () => {
    const run = held({ seal: 'gentle' }).idle()
    run.set({ own: 'drain' }).scope('w1', { incarnation: 'w1.2' }).open().look()
    expect(run.sent).toBe('restore drain to ready')
  })

  test('is nobody knows whose where the hold was only intended', () => {
    const run = started().look().set({ own: 'drain' }).answer('unchanged').open().look()
    expect(run.outcome).toBe('overruled')
    expect(run.error?.message).toContain('was only intended')
  })

  test('set after our first step in the same process is theirs', () => {
    const run = started({ own: 'drain', hold: 'maint' }).look().answer().look().open().look()
    run.answer().set({ own: 'maint' }).look()
    expect(run.outcome).toBe('overruled')
    expect(run.error?.message).toContain("'maint' again after it was made 'drain'")
  })

  test('that is as wished already is done', () => {
    const run = held().look().set({ own: 'ready' }).open().look()
    expect(run.outcome).toBe('restored')
    expect(run.sentSoFar).toEqual(['hold drain'])
  })

  test('set after our undo in the same process is theirs', () => {
    const run = undoing({ lateBound: 1_000 }).answer().set({ own: 'drain' }).look()
    expect(run.outcome).toBe('overruled')
    expect(run.error?.message).toContain("'drain' again after it was made 'ready'")
  })

  test('brought back after our undo by another process is opened again', () => {
    const run = undoing().answer().set({ own: 'drain' }).scope('w1', { incarnation: 'w1.2' }).look()
    expect(run.sent).toBe('restore drain to ready')
  })

  test('a raise over our own whose answer was lost is ours in either state', () => {
    const sealing = (): MemberRun => held({ seal: 'gentle' }).lookAt(100).lookAt(1_000)
    expect(sealing().lose().open().look().sent).toBe('restore drain to ready')
    expect(sealing().lose('done').open().look().outcome).toBe(null)
    expect(sealing().lose('done').open().look().look().sent).toBe('restore maint to ready')
  })
})

describe('a hold whose answer was lost', () => {
  test('and that is there is ours', () => {
    const run = started().look().lose('done').open().look().look()
    expect(run.sent).toBe('restore drain to ready')
  })

  test('and that is not there is waited for until it can not come any more', () => {
    const run = started({ lateBound: 700 }).look().lose().open().look()
    expect(run.outcome).toBe(null)
    expect(run.looks(690).outcome).toBe(null)
    expect(run.look().outcome).toBe('restored')
    expect(run.changes).toHaveLength(1)
  })

  test('and that comes late is opened', () => {
    const run = started({ lateBound: 700 }).look().lose().open().look().looks(300)
    run.set({ own: 'drain' }).look().look()
    expect(run.sent).toBe('restore drain to ready')
    expect(run.answer().looks(1_000).outcome).toBe('restored')
  })

  test('and that is not there is over with a look asked for at its bound', () => {
    const run = started({ lateBound: 300 }).look().lose().open().look().mark()
    expect(run.lookAt(290, { took: 20 }).outcome).toBe(null)
    expect(run.look().outcome).toBe('restored')
  })

  test('is said by why, with its bound', () => {
    const run = started({ lateBound: 700 }).look().lose().open().look()
    expect(run.why[0]).toMatchObject({ code: 'not-in-force' })
    expect(run.why[0]?.text).toContain(`until ${run.iso(run.now + 700)}`)
  })

  test('is waited for up to lateUntil, and then said', () => {
    const run = started({ lateBound: 9_000 }).look().lose()
    run
      .open({ lateUntil: run.now + 500 })
      .look()
      .looks(480)
    expect(run.outcome).toBe(null)
    run.look()
    expect(run.outcome).toBe('refused')
    expect(run.error?.code).toBe('CONFLICT')
    expect(run.error?.message).toContain('may still be carried out until')
    expect(run.state.hold.late).toHaveLength(1)
  })

  test('is waited for past the time of the undo itself', () => {
    const run = started({ lateBound: 9_000 }).look().lose()
    run
      .open({ until: run.now + 300 })
      .look()
      .look({ after: 1_000 })
    expect(run.outcome).toBe(null)
  })

  test('does not lengthen the time of an undo that waits for something else', () => {
    const run = held({ seal: 'gentle', lateBound: 9_000 }).lookAt(100).lookAt(1_000).lose()
    run.set({ health: 'unknown' })
    run
      .open({ until: run.now + 300 })
      .look()
      .look({ after: 1_000 })
    expect(run.outcome).toBe('refused')
    expect(run.error?.code).toBe('HEALTH_TIMEOUT')
  })

  test('that was repeated with success is not waited for', () => {
    const run = undoing({ lateBound: 9_000 }).lose().look().answer().look()
    expect(run.outcome).toBe('restored')
  })

  test('is not waited for where it was a cut', () => {
    const run = held({ timeout: 50, onTimeout: 'terminate', lateBound: 9_000 })
    run.scope('w1', { active: 1 }).look({ after: 100 }).lose().look().open().look().answer().look()
    expect(run.outcome).toBe('restored')
  })

  test('is said with the last of two bounds', () => {
    const run = started({ lateBound: 9_000 }).look().lose().look().lose()
    run
      .open({ lateUntil: run.now + 500 })
      .look({ after: 300 })
      .look({ after: 300 })
    const bounds = run.state.hold.late.map(({ until }) => until!)
    expect(bounds[0]).toBeLessThan(bounds[1]!)
    expect(run.error?.message).toContain(`until ${run.iso(bounds[1]!)}`)
  })

  test('is not given up for a look that failed', () => {
    const run = started({ lateBound: 9_000 }).look().lose()
    run
      .open({ lateUntil: run.now + 500 })
      .look()
      .fail(failure(), 1_000)
    expect(run.outcome).toBe(null)
  })

  test('is given up where no look comes any more', () => {
    const run = started({ lateBound: 9_000 }).look().lose()
    run
      .open({ lateUntil: run.now + 500 })
      .look()
      .wait(600)
    run.put({ type: 'overdue', error: failure('CALL_TIMEOUT'), silent: false })
    expect(run.outcome).toBe('refused')
    expect(run.error?.code).toBe('CONFLICT')
  })
})

describe('the lost answer to an undo', () => {
  test('is sent again where a look shows that it is not there', () => {
    expect(undoing().lose().look().sent).toBe('restore drain to ready')
  })

  test('is done where a look shows it, once nothing may be late', () => {
    const run = undoing().lose('done').look()
    expect(run.state.hold.late).toEqual([])
    expect(run.look().outcome).toBe('restored')
  })

  test('and its repeat are one try', () => {
    const run = undoing({ lateBound: 1e9 })
    for (let i = 0; i < 20; i += 1) run.lose().look({ after: 5_000 })
    expect(run.outcome).toBe(null)
  })

  test('a second time is sent after 250 ms', () => {
    const run = undoing().lose().look().lose()
    expect(run.look({ after: 249 }).sent).toBe(null)
    expect(run.look({ after: 1 }).sent).toBe('restore drain to ready')
  })

  test('is the reason where its time is over', () => {
    const run = held().look()
    run
      .open({ until: run.now + 100 })
      .look()
      .lose()
      .look()
      .lose()
      .look({ after: 80 })
    expect(run.outcome).toBe('refused')
    expect(run.error?.code).toBe('CALL_TIMEOUT')
  })

  test('of a hold is found by equality: a higher state is not it', () => {
    const run = started().look().lose().open().set({ own: 'maint' }).look()
    expect(run.outcome).toBe('overruled')
  })

  test('is found by equality: a higher state than asked for is not it', () => {
    const run = started({ own: 'drain', hold: 'maint' }).look().answer().look().open().look()
    run.lose().set({ own: 'maint' }).look()
    expect(run.sent).toBe('restore maint to drain')
  })
})

describe('a restore that is refused', () => {
  test('for good ends as refused', () => {
    const no = failure('FORBIDDEN')
    const run = undoing().refuse(no).look({ after: 300 })
    expect(run.outcome).toBe('refused')
    expect(run.error).toBe(no)
    expect(run.sent).toBe(null)
    expect(run.state.hold.changes).toHaveLength(1)
  })

  test('for now is tried again after 250 ms', () => {
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
  test('ends as unreachable where the balancer can not be read', () => {
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

  test('ends as unreachable where no look comes back', () => {
    const run = held().look().fail()
    run.open({ until: run.now + 500 }).wait(499)
    run.put({ type: 'overdue', error: failure('CALL_TIMEOUT'), silent: true })
    expect(run.outcome).toBe(null)
    run.wait(1).put({ type: 'overdue', error: failure('CALL_TIMEOUT'), silent: true })
    expect(run.outcome).toBe('unreachable')
    expect(run.error?.code).toBe('CALL_TIMEOUT')
  })

  test('does not end where no look comes back before its time', () => {
    const run = held().look().open().wait(1e6)
    run.put({ type: 'overdue', error: failure('CALL_TIMEOUT'), silent: true })
    expect(run.outcome).toBe(null)
  })

  test('does not end for a late change without a limit', () => {
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

  test('does not end for the limit of a late change that it does not wait for', () => {
    const run = held().look().fail()
    run.open({ lateUntil: run.now + 500 }).wait(1_000)
    run.put({ type: 'overdue', error: failure('CALL_TIMEOUT'), silent: true })
    expect(run.outcome).toBe(null)
  })

  test('says its refusal where no look comes back', () => {
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

  test('ends as refused where the state stays unknown', () => {
    const run = held().set({ own: 'unknown' }).look()
    run.open({ until: run.now + 500 }).look({ after: 500 })
    expect(run.outcome).toBe('refused')
    expect(run.error?.message).toContain('contradicts itself')
  })

  test('is never given up without a limit', () => {
    expect(held().set({ own: 'unknown' }).look().open().look({ after: 1e9 }).outcome).toBe(null)
  })

  test('says the refusal rather than the look that failed', () => {
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

describe('a goal that changes', () => {
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

  test('takes the answer to a hold under way for no drain', () => {
    const run = started().look().open().answer()
    expect(run.phase).toBe('active')
    expect(run.state.proof.effectiveSince).toBe(null)
  })

  test('of a member that is removed has nothing to open', () => {
    const run = held({ until: 'removed' }).lookAt(100).lookAt(1_000).answer().open()
    expect(run.outcome).toBe('gone')
    expect(run.error?.code).toBe('MEMBER_GONE')
  })

  test('leaves a change under way alone until it has its answer', () => {
    const run = started().look().open()
    expect(run.sent).toBe(null)
    expect(run.answer().look().sent).toBe('restore drain to ready')
  })

  test('of a change under way that was lost waits for it', () => {
    const run = started({ lateBound: 500 }).look().open().lose().look()
    expect(run.outcome).toBe(null)
    expect(run.looks(600).outcome).toBe('restored')
  })

  test('of a change under way that was refused has nothing to undo', () => {
    const run = started().look().open().refuse()
    expect(run.outcome).toBe(null)
    expect(run.look().outcome).toBe('restored')
  })

  test('lifts a pause that was on', () => {
    const run = held().look().set({ own: 'ready' }).scope('w1', { incarnation: 'w1.2' }).look()
    run.refuse(failure('CONFLICT', true)).set({ own: 'drain' }).look().open().look()
    expect(run.sent).toBe('restore drain to ready')
  })

  test('begins its own refusals and losses', () => {
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

  test('does not put a hold in the place of the undo', () => {
    const run = undoing().answer().set({ own: 'ready' }).look().looks(2_000)
    expect(run.sentSoFar).toEqual(['hold drain', 'restore drain to ready'])
  })
})

test('an undo says no load', () => {
  const run = undoing()
  const { length } = run.all('load')
  expect(run.look().answer().look().all('load')).toHaveLength(length)
})
