import { describe, expect, test } from 'vitest'
import { failure, held, started, unanswered, undoOf, WEB1 } from '../member-run.js'

describe('the state before our own change', () => {
  test('does not keep us from holding when it is lower than found', () => {
    const run = started({ own: 'drain' }).look({ after: 10 })
    expect(run.sent).toBe('hold drain')
  })

  test('is held if another client lowers it before our hold is asked for', () => {
    const run = started({ own: 'drain' }).set({ own: 'unknown' }).look().set({ own: 'drain' })
    run.put({ type: 'reading', reading: run.reading(run.now), askedAt: 0 }).set({ own: 'ready' })
    expect(run.look().sent).toBe('hold drain')
    expect(run.state.found?.own).toBe('ready')
  })

  test('is overruled if another client lowers it after our refused hold', () => {
    const run = started({ own: 'drain' }).look().refuse(failure('CONFLICT', true))
    run.set({ own: 'ready' }).look({ after: 300 })
    expect(run.outcome).toBe('overruled')
  })

  test('is overruled if another client lowers it once our hold may be there', () => {
    const run = started({ own: 'drain' }).look().lose().set({ own: 'ready' }).look()
    expect(run.outcome).toBe('overruled')
  })

  test('is held if a reload lowers it once our hold may be there', () => {
    const run = started({ own: 'drain' }).look().lose().set({ own: 'ready' })
    run.scope('w1', { incarnation: 'w1.2' }).look()
    expect(run.outcome).toBe(null)
    expect(run.sent).toBe('hold drain')
  })

  test('is where an undo goes as long as nothing of ours was sent', () => {
    const run = started({ own: 'maint' }).set({ own: 'unknown' }).look()
    run.set({ own: 'drain' }).look()
    expect(run.state.found?.own).toBe('drain')
  })

  test('is not read anew after a hold that changed nothing', () => {
    const run = started({ own: 'drain' }).look().answer('unchanged').set({ own: 'maint' }).look()
    expect(run.state.found?.own).toBe('drain')
  })

  test('is the one on which our first hold was decided', () => {
    const run = started({ hold: 'maint' }).look().refuse(failure('CONFLICT', true))
    run.set({ own: 'drain' }).look({ after: 250 }).answer()
    expect(run.state.found?.own).toBe('drain')
  })

  test('is the first one if a change of ours may have caused the next', () => {
    const run = started({ escalateAfter: 100, scopes: { w1: { active: 1 } } }).look()
    run.set({ own: 'drain' }).answer('unchanged').look({ after: 200 }).answer()
    expect(run.own).toBe('maint')
    expect(run.state.found?.own).toBe('ready')
  })

  test('is the new one if ours may have caused another', () => {
    const run = started({ hold: 'maint', onOverrule: 'reapply' }).look().set({ own: 'maint' })
    run.answer('unchanged').look().set({ own: 'drain' }).look().look({ after: 250 }).answer()
    expect(run.own).toBe('maint')
    expect(run.state.found?.own).toBe('drain')
  })

  test('is the new one if it is too low to be caused by ours', () => {
    const late = [
      {
        change: {
          kind: 'hold' as const,
          ref: { pool: 'web', member: 'web1' },
          to: 'drain' as const,
        },
        lostAt: 900,
        until: null,
        lackedAt: null,
      },
    ]
    const run = started({ own: 'maint', hold: 'maint', onOverrule: 'reapply', lateBound: 9_000 })
    run.put({ type: 'inherit', late }).look().answer('unchanged').look().set({ own: 'drain' })
    run.look().look({ after: 250 }).answer()
    expect(run.state.found?.own).toBe('drain')
  })

  test('is the first one after a reload that forgot it', () => {
    const run = started({ own: 'drain' }).look().answer('unchanged').look()
    run.set({ own: 'ready' }).scope('w1', { incarnation: 'w1.2' }).look().answer()
    expect(run.state.found?.own).toBe('drain')
  })

  test('is the new one if another client lowered it and it was put back', () => {
    const run = started({ own: 'drain', onOverrule: 'reapply' }).look().answer('unchanged').look()
    run.set({ own: 'ready' }).look().look({ after: 250 }).answer()
    expect(run.state.found?.own).toBe('ready')
  })

  test('is not read anew after our change', () => {
    const run = held().look()
    expect(run.state.found?.own).toBe('ready')
  })
})

describe('a reapply', () => {
  test('waits, even if the put-back will be refused for good', () => {
    const run = started({ own: 'drain', onOverrule: 'reapply' }).look().refuse(failure('FORBIDDEN'))
    run.look({ after: 300 }).set({ own: 'ready' }).look()
    expect(run.said).toContain('overruled')
    expect(run.outcome).toBe(null)
    expect(run.look({ after: 250 }).outcome).toBe('refused')
  })

  test('keeps the state that an undo goes back to', () => {
    const run = started({ own: 'drain', hold: 'maint', onOverrule: 'reapply' }).look().answer()
    run.look().set({ own: 'ready' }).look().look({ after: 250 })
    expect(run.sent).toBe('hold maint')
    expect(run.answer().state.found?.own).toBe('drain')
  })
})

test('a refused first hold does not hold if a seal would cut', () => {
  const run = started({ seal: 'always', maint: 'cuts', timeout: 500 }).look()
  run.refuse(failure('CONFLICT', true)).look()
  expect(run.state.hold.confirmed).toBe('none')
  expect(run.look({ after: 600 }).sent).toBe('hold drain')
})

/** The lost opening of another drain's undo. */
const lostOpening = {
  change: { kind: 'restore' as const, ref: WEB1, expect: 'drain' as const, to: 'ready' as const },
  lostAt: 900,
  until: null,
  lackedAt: 900,
}

describe('the state that an undo goes back to', () => {
  test('is ready if others opened what a hold had found drained', () => {
    const run = started({ own: 'drain', onOverrule: 'reapply' }).look().answer('unchanged').look()
    run.set({ own: 'ready' }).look().look({ after: 300 }).answer().look()
    expect(run.state.found?.own).toBe('ready')
  })

  test('is ready even if the answer to that was lost', () => {
    const run = started({ own: 'drain', onOverrule: 'reapply' }).look().answer('unchanged').look()
    run.set({ own: 'ready' }).look().look({ after: 300 }).lose('done').look()
    expect(run.state.found?.own).toBe('ready')
    run.open().look()
    expect(run.sent).toBe('restore drain to ready')
  })

  test('is told by a hold, not by a late opening', () => {
    const run = started({ own: 'drain' }).look().answer('unchanged').look()
    run.put({ type: 'inherit', late: [lostOpening] }).look()
    run.set({ own: 'ready' }).look().look().answer().look()
    expect(run.state.found?.own).toBe('ready')
  })

  test('is told in a process that could not be read for a while', () => {
    const run = started({ own: 'drain', onOverrule: 'reapply', scopes: { w2: {} } })
    run.look().scope('w2', { state: 'unread' })
    run.look().answer('unchanged').look().scope('w2', { state: 'read' })
    run.set({ own: 'ready' }).look()
    expect(run.all('overruled')).toHaveLength(1)
    run.look({ after: 300 }).answer().look()
    expect(run.state.found?.own).toBe('ready')
  })
})

describe('an undo', () => {
  test('leaves alone what another client raised just before it', () => {
    const run = held({ seal: 'always', settle: 0 }).look().look({ after: 100 })
    expect(run.sent).toBe('hold maint')
    run.set({ own: 'maint' }).answer('unchanged').look().open().look()
    expect(run.outcome).toBe('overruled')
    expect(run.sentSoFar).toEqual(['hold drain', 'hold maint'])
  })

  test('waits for a lost hold even if the member is as it was', () => {
    const run = started({ own: 'drain', lateBound: 1_000 }).look().lose().open().look().looks(500)
    expect(run.outcome).toBe(null)
    expect(run.looks(700).outcome).toBe('restored')
  })
})

describe('the rare state to go back to', () => {
  test('is what others lowered it to if our refused hold can not have', () => {
    const run = started({ own: 'maint', seal: 'gentle' }).look().refuse(failure('CONFLICT', false))
    run.look().wait(1_000).set({ own: 'drain' }).look().look().lose('done').look()
    expect(run.state.found).toMatchObject({ own: 'drain' })
  })

  test('stays as found if an inherited undo went there too', () => {
    const run = started({ hold: 'maint', own: 'drain' })
      .put({ type: 'inherit', late: [unanswered(undoOf('maint', 'drain'))] })
      .look()
      .look()
    run.answer().set({ own: 'ready' }).look()
    expect(run.state.found).toMatchObject({ own: 'drain' })
  })

  test('is unknown if a change to it was intended before others', () => {
    const hold = (to: 'drain' | 'maint') => ({
      kind: 'hold' as const,
      to,
      state: 'intended' as const,
      at: 950,
    })
    const found = { identity: '10.0.0.1:80', own: 'ready' as const, serves: true, native: null }
    const changes = [hold('drain'), hold('maint'), hold('drain'), hold('maint'), hold('maint')]
    const run = started({ own: 'drain' })
    run.put({ type: 'inherit', late: [], owned: { found, changes } }).open().look()
    expect(run.error?.message).toContain("the change to 'drain' was only intended")
    const first = [hold('drain'), hold('maint'), hold('maint')]
    const other = started({ own: 'drain' })
    other
      .put({ type: 'inherit', late: [], owned: { found, changes: first } })
      .open()
      .look()
    expect(other.error?.message).toContain("the change to 'drain' was only intended")
  })
})

describe('a member that others took back to the found state', () => {
  test('returns to what they set later, before it is raised again', () => {
    const run = held({ escalateAfter: 100, onOverrule: 'reapply', scopes: { w1: { active: 1 } } })
    run.set({ own: 'ready' }).look().set({ own: 'drain' }).look().look({ after: 300 })
    expect(run.sent).toBe('hold maint')
    expect(run.answer().state.found).toMatchObject({ own: 'drain' })
  })

  test('returns to the found state if ours was put back first', () => {
    const run = held({ escalateAfter: 900, onOverrule: 'reapply', scopes: { w1: { active: 1 } } })
    run.set({ own: 'ready' }).look().look({ after: 250 }).answer().look({ after: 900 })
    expect(run.sent).toBe('hold maint')
    expect(run.answer().state.found).toMatchObject({ own: 'ready' })
  })
})

describe('a member that others lower step by step', () => {
  test('returns to the found state if a hold of ours was over it', () => {
    const run = started({ own: 'drain', hold: 'maint', onOverrule: 'reapply' }).hold().look()
    run.set({ own: 'drain' }).look()
    expect(run.state.hold.changes.at(-1)).toMatchObject({ kind: 'restore', to: 'drain' })
    run.set({ own: 'ready' }).look()
    expect(run.state.found).toMatchObject({ own: 'drain' })
  })

  test('returns to that if ours only cut what was left', () => {
    const scopes = { w1: { active: 2 } }
    const run = started({ own: 'drain', onTimeout: 'terminate', timeout: 500, scopes }).look()
    run.answer('unchanged').look({ after: 600 })
    expect(run.sent).toBe('terminate')
    run.answer().set({ own: 'ready' }).look()
    expect(run.state.found).toMatchObject({ own: 'ready' })
  })
})
