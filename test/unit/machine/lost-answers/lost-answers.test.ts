import { describe, expect, test } from 'vitest'
import { failure, held, started, type MemberRun } from '../member-run.js'

describe('the lost answer to a hold', () => {
  test('is a fault', () => {
    expect(started().look().lose().said).toEqual(['fault'])
  })

  test('leaves nothing under way, and one that may be late', () => {
    const { hold } = started().look().lose().state
    expect(hold.pending).toBe(null)
    expect(hold.late).toHaveLength(1)
  })

  test('is sent again at once if a look shows that it is not there', () => {
    const run = started().look().lose().look()
    expect(run.sent).toBe('hold drain')
  })

  test('is not sent again before a look', () => {
    const run = started().look().lose()
    expect(run.sent).toBe(null)
    expect(run.wait(5_000).fail().sent).toBe(null)
  })

  test('is not sent again after a look from before the loss', () => {
    const run = started().look().wait(100).lose()
    run.look({ asked: run.now - 50 })
    expect(run.sent).toBe(null)
  })

  test('a second time is sent after 250 ms, a third time after 500', () => {
    const run = started().look().lose().look().lose()
    expect(run.look({ after: 249 }).sent).toBe(null)
    expect(run.look({ after: 1 }).sent).toBe('hold drain')
    run.lose()
    expect(run.look({ after: 499 }).sent).toBe(null)
    expect(run.look({ after: 1 }).sent).toBe('hold drain')
  })

  test('is waited for at most 5 s', () => {
    const run = started({ lateBound: 60_000 }).look()
    for (let i = 0; i < 12; i += 1) run.lose().look({ after: 5_000 })
    expect(run.sent).toBe('hold drain')
    run.lose()
    expect(run.look({ after: 4_999 }).sent).toBe(null)
    expect(run.look({ after: 1 }).sent).toBe('hold drain')
  })

  test('does not shorten a pause under way', () => {
    const run = held({ onOverrule: 'reapply' }).look().set({ own: 'ready' }).look()
    const { notBefore } = run.state.hold
    expect(notBefore).toBe(run.now + 250)
    run.look({ after: 250 }).lose()
    expect(run.state.hold.notBefore).toBe(run.now)
  })

  test('is replaced by the next look if the hold is there', () => {
    const run = started().look().lose('done').look()
    expect(run.state.hold.late).toEqual([])
    expect(run.state.hold.confirmed).toBe('drain')
    expect(run.state.hold.changes).toMatchObject([{ kind: 'hold', to: 'drain', state: 'applied' }])
    expect(run.phase).toBe('draining')
  })

  test('is replaced only by a look from after the loss', () => {
    const run = started().look().wait(50).lose('done')
    run.look({ asked: run.now - 1 })
    expect(run.state.hold.late).toHaveLength(1)
  })

  test('takes effect with the look that shows the hold', () => {
    const run = started().look().lose('done').look().mark()
    expect(run.state.proof.effectiveSince).toBe(run.now)
    run.lookAt(500).lookAt(999)
    expect(run.phase).toBe('draining')
    expect(run.lookAt(1_000).phase).toBe('idle')
  })

  test('may still come if the member was raised further', () => {
    const run = started({ lateBound: 700 }).look().lose('done').set({ own: 'maint' }).look()
    expect(run.state.hold.confirmed).toBe('drain')
    expect(run.state.hold.late).toHaveLength(1)
    expect(run.looks(800).state.hold.late).toEqual([])
  })

  test('may still come if a raise of ours explains the state', () => {
    // Lost; its repeat was applied and raised; an operator opened it; it is put back as maint.
    const options = { lateBound: 30_000, escalateAfter: 50, onOverrule: 'reapply' } as const
    const run = started(options).scope('p1', { active: 1 })
    const next = (): MemberRun => {
      for (let i = 0; run.state.hold.pending === null && i < 50; i += 1) run.look({ after: 100 })
      return run.answer().look()
    }
    run.look().lose().look().answer().look()
    next()
    expect(run.state.hold.confirmed).toBe('maint')
    run.set({ own: 'ready' }).look()
    next()
    expect(run.state.last?.reading).toMatchObject({ own: 'maint' })
    expect(run.state.hold.late).toHaveLength(1)
  })

  test('restarts the pauses once its repeat was confirmed', () => {
    const run = started().look().lose().look().lose().look({ after: 250 }).answer()
    expect(run.state.hold.losses).toBe(0)
  })

  test('is named by why() until its effect is there', () => {
    const run = started({ lateBound: 700 }).look().lose()
    expect(run.why[0]).toMatchObject({ code: 'not-in-force' })
    expect(run.why[0]?.text).toContain('for as long as the balancer does not answer')
    run.look()
    expect(run.why[0]?.text).toContain(`until ${run.iso(run.now + 700)}`)
  })
})

/** A hold that was lost before this run, on a member that was at drain. */
const never = {
  change: { kind: 'hold' as const, ref: { pool: 'web', member: 'web1' }, to: 'drain' as const },
  lostAt: 900,
  until: null,
  lackedAt: null,
}

describe('a change that may be late', () => {
  test('can be carried out for lateBound after the first answer to a look', () => {
    const run = started({ lateBound: 700 }).look().lose().wait(5_000).look({ took: 40 })
    expect(run.state.hold.late[0]?.until).toBe(run.now + 700)
  })

  test('has its bound from the first look, not from later ones', () => {
    const run = started({ lateBound: 700 }).look().lose().look()
    const until = run.now + 700
    run.answer().look()
    expect(run.state.hold.late[0]?.until).toBe(until)
  })

  test('has no bound from a look asked for before the loss', () => {
    const run = started().look().wait(100).lose()
    run.look({ asked: run.now - 50 })
    expect(run.state.hold.late[0]?.until).toBe(null)
  })

  test('has no bound from a look asked for in the instant of the loss', () => {
    const run = started().look().lose()
    run.look({ asked: run.now })
    expect(run.state.hold.late[0]?.until).toBe(null)
  })

  test('is over with the first look asked for at its bound', () => {
    const run = started({ lateBound: 700 }).look().lose().look().mark().answer()
    run.lookAt(699)
    expect(run.state.hold.late).toHaveLength(1)
    run.lookAt(700)
    expect(run.state.hold.late).toEqual([])
  })

  test('is not over with a look asked for before its bound', () => {
    const run = started({ lateBound: 700 }).look().lose().look().mark().answer()
    run.lookAt(690, { took: 20 })
    expect(run.state.hold.late).toHaveLength(1)
  })

  test('never seen to be missing has an unknown owner', () => {
    const run = started({ own: 'drain', lateBound: 100 }).look().lose('done').looks(500)
    expect(run.state.hold.changes).toMatchObject([{ state: 'intended', to: 'drain' }])
  })

  test('never carried out leaves no entry', () => {
    const run = started({ lateBound: 100, settle: 5_000 }).look().lose()
    run.set({ own: 'ready' }).look().refuse(failure('FORBIDDEN')).looks(500)
    expect(run.state.hold.changes).toEqual([])
  })

  test('is not ours if its repeat was applied', () => {
    const run = started({ lateBound: 300 }).look().lose().look().answer().look()
    expect(run.state.hold.changes).toMatchObject([{ state: 'applied' }])
    expect(run.state.hold.changes).toHaveLength(1)
    expect(run.state.hold.late).toHaveLength(1)
    run.looks(500)
    expect(run.state.hold.changes).toHaveLength(1)
    expect(run.state.hold.late).toEqual([])
  })

  test('seen to be missing stays so, whatever is seen later', () => {
    const run = started({ lateBound: 9_000 }).look().lose().look().answer().look()
    expect(run.state.hold.late).toMatchObject([{ lackedAt: expect.any(Number) as number }])
  })

  test('is recognised even if the same was applied before', () => {
    const run = held().look().set({ own: 'ready' }).scope('w1', { incarnation: 'w1.2' }).look()
    run.lose('done').look()
    expect(run.state.hold.late).toEqual([])
  })

  test('may still come if a new process can have the state from a file', () => {
    const run = started({ lateBound: 700 }).look().lose().look()
    run.refuse(failure('CONFLICT', true)).set({ own: 'drain' })
    run.scope('w1', { incarnation: 'w1.2' }).look()
    expect(run.state.hold.confirmed).toBe('drain')
    expect(run.state.hold.late).toHaveLength(1)
    expect(run.looks(800).state.hold.late).toEqual([])
  })

  test('is recognised even if its repeat found it so', () => {
    const run = started({ lateBound: 9_000 }).look().lose().look().set({ own: 'drain' })
    run.answer('unchanged').look()
    expect(run.state.hold.late).toEqual([])
    expect(run.state.hold.changes.at(-1)).toMatchObject({ to: 'drain', state: 'applied' })
  })

  test('to less than wished confirms no more than itself', () => {
    const run = started({ hold: 'maint', lateBound: 9_000 })
    run
      .put({ type: 'inherit', late: [never] })
      .look()
      .refuse(failure('CONFLICT', true))
    run.set({ own: 'drain' }).look()
    expect(run.state.hold).toMatchObject({ wish: 'maint', confirmed: 'drain' })
  })

  test('is told from another late change', () => {
    const run = started({ lateBound: 9_000 }).look().lose().look().lose().look({ after: 300 })
    const [one, two] = run.state.hold.late
    expect(one!.until).toBeLessThan(two!.until!)
  })

  test('is not shown by an absent member', () => {
    const run = started().look().lose().vanish().look()
    expect(run.state.hold.late).toHaveLength(1)
    expect(run.state.hold.changes).toEqual([])
  })

  test('never missing leaves no entry beside an applied one', () => {
    const run = started({ own: 'drain', lateBound: 100 }).put({ type: 'inherit', late: [never] })
    run.look().answer('applied').looks(500)
    expect(run.state.hold.changes).toMatchObject([{ to: 'drain', state: 'applied' }])
  })

  test('never seen to be missing leaves an entry beside another state', () => {
    const run = started({ own: 'drain', hold: 'maint', lateBound: 100 })
    run
      .put({ type: 'inherit', late: [never] })
      .look()
      .answer('applied')
      .looks(500)
    expect(run.state.hold.changes).toMatchObject([
      { to: 'maint', state: 'applied' },
      { to: 'drain', state: 'intended' },
    ])
  })

  test('from a ticket, over our own hold, is a raise of ours', () => {
    const run = held({ lateBound: 100 }).look().set({ own: 'maint' })
    const maint = { ...never, change: { ...never.change, to: 'maint' as const } }
    run
      .put({ type: 'inherit', late: [maint] })
      .looks(500)
      .open()
      .look()
    expect(run.sent).toBe('restore maint to ready')
  })

  test('never missing leaves an entry beside an unchanged one', () => {
    const run = started({ own: 'drain', lateBound: 100 }).put({ type: 'inherit', late: [never] })
    run.look().answer('unchanged').looks(500)
    expect(run.state.hold.changes).toMatchObject([{ state: 'unchanged' }, { state: 'intended' }])
  })

  test('is seen to be missing only if the state is known', () => {
    const run = started({ own: 'drain' }).look().lose().set({ own: 'unknown' }).look()
    expect(run.state.hold.late[0]?.lackedAt).toBe(null)
    run.set({ own: 'ready' }).look()
    expect(run.state.hold.late[0]?.lackedAt).toEqual(expect.any(Number))
  })

  test('is not seen to be missing on an absent member', () => {
    const run = started({ own: 'drain' }).look().lose().vanish().look()
    expect(run.state.hold.late[0]?.lackedAt).toBe(null)
  })

  test('has an unknown owner after an unknown state', () => {
    const run = started().set({ own: 'ready' }).look().lose()
    expect(run.state.hold.late[0]?.lackedAt).toEqual(expect.any(Number))
  })
})

describe('a hold answered with unchanged', () => {
  test('on a drained member keeps the owner from before', () => {
    const run = started({ own: 'drain' }).look().answer('unchanged')
    expect(run.state.hold.changes).toMatchObject([{ state: 'unchanged' }])
  })

  test('on a member read as ready has an unknown owner', () => {
    const run = started().look().set({ own: 'drain' }).answer('unchanged')
    expect(run.state.hold.changes).toMatchObject([{ state: 'intended' }])
  })

  test('takes effect like any other', () => {
    const run = started().look().set({ own: 'drain' }).answer('unchanged').mark()
    run.lookAt(500).lookAt(999)
    expect(run.phase).toBe('draining')
    expect(run.lookAt(1_000).phase).toBe('idle')
  })
})

test("an undo's pending change is inherited if nothing is known here", () => {
  const found = { identity: '10.0.0.1:80', own: 'ready' as const, serves: true, native: null }
  const changes = [
    { kind: 'hold' as const, to: 'drain' as const, state: 'applied' as const, at: 1 },
  ]
  const run = started({ own: 'drain' }).put({
    type: 'inherit',
    late: [],
    owned: { found, changes },
  })
  expect(run.state.found).toEqual(found)
  expect(run.state.hold.changes).toEqual(changes)
  const late = held().put({ type: 'inherit', late: [], owned: { found, changes: [] } })
  expect(late.state.hold.changes).toHaveLength(1)
})

describe('a lost undo of another run', () => {
  const undo = {
    change: {
      kind: 'restore' as const,
      ref: { pool: 'web', member: 'web1' },
      expect: 'drain' as const,
      to: 'ready' as const,
    },
    lostAt: 900,
    until: null,
    lackedAt: 900,
  }

  test('is inherited', () => {
    expect(started().put({ type: 'inherit', late: [undo] }).state.hold.late).toEqual([undo])
  })

  test('is inherited once', () => {
    const run = started().put({ type: 'inherit', late: [undo] })
    expect(run.put({ type: 'inherit', late: [undo] }).state.hold.late).toHaveLength(1)
  })

  test('is not an overrule when it comes under the drain', () => {
    const run = started({ own: 'drain' })
      .put({ type: 'inherit', late: [undo] })
      .look()
      .answer()
    run.look().set({ own: 'ready' }).look()
    expect(run.all('overruled')).toEqual([])
    expect(run.state.hold.late).toEqual([])
    expect(run.state.goal).toEqual({ kind: 'drain' })
    expect(run.look().sent).toBe('hold drain')
  })

  test('that came before the first look is held against', () => {
    const run = started()
      .put({ type: 'inherit', late: [undo] })
      .look()
    expect(run.state.hold.late).toEqual([])
    expect(run.state.goal).toEqual({ kind: 'drain' })
    expect(run.look().sent).toBe('hold drain')
  })

  test('keeps the member from idle while it may come', () => {
    const late = [{ ...undo, until: 6_000 }]
    const run = started({ own: 'drain' }).put({ type: 'inherit', late }).look().answer().mark()
    run.looks(4_500)
    expect(run.all('idle')).toEqual([])
    expect(run.looks(1_500).phase).toBe('idle')
  })
})

test('a lost maint of another run raises no further than wished', () => {
  const change = {
    kind: 'hold' as const,
    ref: { pool: 'web', member: 'web1' },
    to: 'maint' as const,
  }
  const late = [{ change, lostAt: 900, until: null, lackedAt: 900 }]
  const run = started({ own: 'maint' }).put({ type: 'inherit', late }).look().look()
  expect(run.state.hold.changes).toMatchObject([{ to: 'maint', state: 'applied' }])
  expect(run.sent).toBe('hold drain')
  expect(run.state.hold).toMatchObject({ wish: 'drain', confirmed: 'none' })
})

test('an answer to a change that was given up is ignored', () => {
  const run = started().look()
  const { change } = run
  run.lose().look()
  run.put({ type: 'result', change, result: { ref: change.ref, status: 'applied' } })
  expect(run.state.hold.pending).not.toBe(null)
  expect(run.state.hold.changes).toEqual([])
})
