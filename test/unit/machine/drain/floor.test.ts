import { describe, expect, test } from 'vitest'
import { failure, held, started, type MemberRun, type RunOptions } from '../member-run.js'

const minimum = failure('POOL_AT_MINIMUM')

function deny(run: MemberRun, isFinal = true): MemberRun {
  return run.put({ type: 'denied', error: minimum, isFinal })
}

/** The hold is in place, and the next look finds too few serving. */
function broken(options: RunOptions = {}, random = 0.5): MemberRun {
  return held({ onMinimum: 'wait', ...options }).look({ floor: minimum, random })
}

describe('the first hold', () => {
  test('must pass the floor', () => {
    const { effects } = started().look()
    expect(effects.find((effect) => effect.type === 'apply')).toMatchObject({ first: true })
  })

  test('does not ask it again after a lost answer', () => {
    const { effects } = started().look().lose().look()
    expect(effects.find((effect) => effect.type === 'apply')).toMatchObject({ first: false })
  })

  test('is not sent while the state is unknown', () => {
    expect(started().set({ own: 'unknown' }).looks(1_000).sentSoFar).toEqual([])
  })

  test('is sent with the identity that was found', () => {
    expect(started().look().change.identity).toBe('10.0.0.1:80')
  })
})

describe('a hold denied by the floor', () => {
  test('ends the drain under onMinimum fail', () => {
    const run = deny(started().look())
    expect(run.outcome).toBe('refused')
    expect(run.error).toBe(minimum)
    expect(run.looks(5_000).sentSoFar).toEqual(['hold drain'])
  })

  test('is decided again at each look under onMinimum wait', () => {
    const run = deny(started({ onMinimum: 'wait' }).look())
    expect([run.outcome, run.sent]).toEqual([null, null])
    for (let i = 0; i < 5; i += 1) {
      expect(run.look({ after: 10 }).sent).toBe('hold drain')
      expect(run.effects.find((effect) => effect.type === 'apply')).toMatchObject({ first: true })
      deny(run)
    }
  })

  test.each(['fail', 'wait'] as const)('waits for a whole look under onMinimum %s', (onMinimum) => {
    const run = deny(started({ onMinimum }).look(), false)
    expect([run.outcome, run.sent]).toEqual([null, null])
    expect(run.codes).not.toContain('pool-at-minimum')
    expect(run.look({ after: 10 }).sent).toBe('hold drain')
  })

  test('leaves no trace in the ledger', () => {
    const { hold } = deny(started({ onMinimum: 'wait' }).look()).state
    expect(hold.pending).toBe(null)
    expect(hold.changes).toEqual([])
    expect(hold.late).toEqual([])
  })

  test('is over once another client drains the member', () => {
    const run = deny(started({ onMinimum: 'wait' }).look())
      .set({ own: 'drain' })
      .look()
      .answer('unchanged')
    expect(run.said).toContain('phase')
    expect(run.phase).toBe('draining')
  })

  test('takes no effect by itself if the member is drained already', () => {
    const run = deny(started({ own: 'drain', onMinimum: 'wait' }).look())
    expect(run.phase).toBe('active')
    expect(run.look().answer('unchanged').look().phase).toBe('draining')
  })

  test('is named by why() until it passed', () => {
    const run = deny(started({ onMinimum: 'wait' }).look())
    expect(run.codes).toContain('pool-at-minimum')
    expect(run.look({ after: 250 }).answer().codes).not.toContain('pool-at-minimum')
  })

  test('ends as refused at the deadline, under wait', () => {
    const run = deny(started({ onMinimum: 'wait', timeout: 1_000 }).look())
    while (run.outcome === null && run.now < 5_000) {
      run.look({ after: 300 })
      if (run.sent !== null) deny(run)
    }
    expect(run.outcome).toBe('refused')
    expect(run.error?.code).toBe('POOL_AT_MINIMUM')
  })

  test('ends as proceeded at the deadline, under proceed', () => {
    const run = deny(started({ onMinimum: 'wait', timeout: 200, onTimeout: 'proceed' }).look())
    expect(deny(run.look({ after: 240 })).outcome).toBe('proceeded')
  })

  test('is not cut at the deadline, under terminate', () => {
    const run = deny(started({ onMinimum: 'wait', timeout: 200, onTimeout: 'terminate' }).look())
    deny(run.look({ after: 240 }))
    expect(run.outcome).toBe('refused')
    expect(run.looks(1_000).sent).toBe(null)
  })
})

describe('the first look after the first hold', () => {
  test('keeps it if enough members serve', () => {
    const run = held().look({ floor: null })
    expect(run.state.hold.floor).toBe('kept')
    expect(run.looks(2_000).phase).toBe('idle')
  })

  test('keeps it if nothing is known', () => {
    expect(held().look().state.hold.floor).toBe('kept')
  })

  test('undoes it if too few serve, after the deadline too, and asks no more', () => {
    const run = held({ onMinimum: 'wait', timeout: 100, scopes: { w1: { active: 1 } } })
    run.look({ after: 100, floor: minimum, random: 0.5 })
    expect(run.look({ after: 10, floor: minimum }).outcome).toBe('timeout')
    expect(run.look({ after: 490, floor: minimum }).said).toEqual(['fault'])
    expect(run.look().sent).toBe('restore drain to ready')
    run.answer().look()
    expect([run.own, run.phase, run.outcome]).toEqual(['ready', 'active', 'timeout'])
    expect(run.state.ending.holding).toBe(false)
    expect(run.looks(2_000).sent).toBe(null)
  })

  test('does not undo it for a drain that was given up', () => {
    const run = broken({}, 0).look({ floor: minimum })
    const sent = run.sentSoFar
    run.put({ type: 'end', outcome: 'aborted' }).put({ type: 'release' })
    expect(run.looks(1_000).sentSoFar).toEqual(sent)
  })

  test('says what prevents the undo after the deadline', () => {
    const run = held({ onMinimum: 'wait', timeout: 100, scopes: { w1: { active: 1 } } })
    run.look({ after: 100, floor: minimum, random: 0 }).look({ floor: minimum })
    run.set({ own: 'maint' }).look()
    expect([run.sent, run.outcome, run.said]).toEqual([null, 'timeout', ['fault']])
  })

  test('says what prevents the undo while other runs go on', () => {
    const run = broken({}, 0).look({ floor: minimum }).set({ own: 'maint' }).look()
    expect([run.sent, run.outcome, run.said]).toEqual([null, 'overruled', ['fault']])
  })

  test('undoes it after a random wait if too few serve', () => {
    const run = broken({}, 0.5)
    expect(run.look({ after: 499, floor: minimum }).sent).toBe(null)
    expect(run.look({ after: 1, floor: minimum }).said).toEqual(['fault'])
    expect(run.state.goal).toMatchObject({ kind: 'open', of: 'ours', because: minimum })
    expect(run.look().sent).toBe('restore drain to ready')
  })

  test('waits at most a second', () => {
    expect(broken({}, 1).state.hold.yieldAt).toBe(START_OF_HOLD + 10 + 1_000)
  })

  test('does not wait without a random number', () => {
    const run = held({ onMinimum: 'wait' }).look({ floor: minimum })
    expect(run.state.hold.yieldAt).toBe(run.now)
  })

  test('counts the wait from the first look', () => {
    const run = broken({}, 0.5).look({ after: 100, floor: minimum, random: 1 })
    expect(run.state.hold.yieldAt).toBe(run.origin + 10 + 500)
  })

  test('keeps the hold if enough serve before the wait is over', () => {
    const run = broken({}, 0.5).look({ after: 100, floor: null })
    expect(run.state.hold.floor).toBe('kept')
    expect(run.state.hold.yieldAt).toBe(null)
    run.look({ after: 1_000, floor: minimum }).look({ after: 1_000, floor: minimum })
    expect(run.state.goal.kind).toBe('drain')
  })

  test('lets no idle be said while the undo is undecided', () => {
    const run = broken({ settle: 100 }, 1)
    for (let i = 0; i < 9; i += 1) run.look({ after: 100, floor: minimum })
    expect(run.all('idle')).toEqual([])
  })

  test('keeps the wait through inputs that are not looks', () => {
    const run = broken({}, 0.5).put({ type: 'inherit', late: [] })
    expect(run.state.hold.yieldAt).not.toBe(null)
  })

  test('lets no idle be said in the look that finds too few', () => {
    const run = broken({ settle: 0, scopes: { w1: { released: true } } }, 1)
    expect(run.all('idle')).toEqual([])
  })

  test('raises nothing in the look that undoes the hold', () => {
    const run = broken({ escalateAfter: 200 }, 0.5).look({ after: 600, floor: minimum })
    expect(run.sent).toBe(null)
    expect(run.state.goal.kind).toBe('open')
  })

  test('finds our hold among others in the ledger', () => {
    const run = started({ own: 'drain', onMinimum: 'wait' }).look().answer('unchanged')
    run.set({ own: 'ready' }).scope('w1', { incarnation: 'w1.2' }).look().answer()
    run.look({ floor: minimum, random: 0.5 })
    expect(run.state.hold.yieldAt).not.toBe(null)
  })

  test('leaves alone a hold that is not surely ours', () => {
    const change = {
      kind: 'restore' as const,
      ref: { pool: 'web', member: 'web1' },
      expect: 'drain' as const,
      to: 'ready' as const,
    }
    const late = [{ change, lostAt: 900, until: null, lackedAt: 900 }]
    const run = started({ onMinimum: 'wait' }).put({ type: 'inherit', late }).look().look()
    run.set({ own: 'drain' }).answer('unchanged').look({ floor: minimum, random: 0.5 })
    expect(run.state.hold.yieldAt).toBe(null)
  })

  test('leaves alone a hold that was there before us', () => {
    const run = started({ own: 'drain', onMinimum: 'wait' }).look().answer('unchanged')
    run.look({ floor: minimum, random: 0 })
    expect(run.state.hold.floor).toBe('kept')
  })

  test('leaves alone a hold of a member that did not serve', () => {
    const run = started({ present: { serves: false }, onMinimum: 'wait' }).hold()
    run.look({ floor: minimum, random: 0 })
    expect(run.state.hold.floor).toBe('kept')
  })

  test('ends the drain at the deadline anyway', () => {
    const run = broken({ timeout: 100 }, 1).look({ after: 200, floor: minimum })
    expect(run.outcome).toBe('timeout')
  })
})

const START_OF_HOLD = 1_010

describe('the undo of a hold that left too few', () => {
  test('ends as refused under onMinimum fail', () => {
    const run = broken({ onMinimum: 'fail' }, 0).look({ floor: minimum }).look().answer().look()
    expect(run.outcome).toBe('refused')
    expect(run.error).toBe(minimum)
    expect(run.own).toBe('ready')
    expect(run.state.hold.changes).toEqual([])
  })

  test('returns to the drain under onMinimum wait', () => {
    const run = broken({}, 0).look({ floor: minimum }).look().answer().look()
    expect(run.outcome).toBe(null)
    expect(run.state.goal).toEqual({ kind: 'drain' })
    expect(run.codes).toContain('pool-at-minimum')
    expect(run.look({ after: 249 }).sent).toBe(null)
    expect(run.look({ after: 1 }).sent).toBe('hold drain')
    expect(run.effects.find((effect) => effect.type === 'apply')).toMatchObject({ first: true })
  })

  test('waits again after the next hold', () => {
    const run = broken({}, 0).look({ floor: minimum }).look().answer().look().look({ after: 300 })
    run.answer().look({ floor: minimum, random: 0.7 })
    expect(run.state.hold.yieldAt).toBe(run.now + 700)
  })

  test('leaves no refusal behind', () => {
    const run = broken({}, 0).look({ floor: minimum }).look().refuse(failure('CONFLICT', true))
    run.set({ own: 'ready' }).look().look()
    expect(run.state.goal.kind).toBe('drain')
    expect(run.codes).not.toContain('refused')
  })

  test('stays an undo if it ends the drain', () => {
    const run = broken({ onMinimum: 'fail' }, 0).look({ floor: minimum }).look().answer().look()
    expect(run.state.goal.kind).toBe('open')
    expect(run.state.hold.atMinimum).toBe(false)
  })

  test('is given up after 30 s', () => {
    const run = broken({}, 0).look({ floor: minimum })
    expect(run.state.goal).toMatchObject({ until: run.now + 30_000, lateUntil: null })
  })
})

describe('a hold that left too few', () => {
  test('is not called idle before the undo is decided', () => {
    const run = held({ settle: 60, onMinimum: 'wait' })
    for (let i = 0; i < 9; i += 1) run.look({ after: 100, floor: minimum, random: 1 })
    expect(run.phase).toBe('draining')
  })

  test('waits after its undo, under onMinimum wait', () => {
    const run = broken({}, 0).look({ floor: minimum })
    expect(run.state.goal).toMatchObject({ kind: 'open', then: 'wait' })
  })
})
