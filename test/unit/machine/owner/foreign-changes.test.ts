import type { OwnChange } from 'drainable/machine'
import { describe, expect, test } from 'vitest'
import {
  WEB1,
  failure,
  held,
  idle,
  started,
  unanswered,
  undoOf,
  type MemberRun,
} from '../member-run.js'

/** Another client lowered what we had set, was seen to, and set the same again. */
function setAgain(run: MemberRun): MemberRun {
  const own = run.own
  if (own === 'unknown') throw new Error('no state')
  run.set({ own: 'ready' }).look()
  expect(run.outcome).toBe('overruled')
  return run.set({ own }).look()
}

describe('a state of ours that another client took back and set again', () => {
  test("is that client's, and an undo leaves it alone", () => {
    const run = setAgain(held().look()).open().look()
    expect(run.sent).toBe(null)
    expect(run.outcome).toBe('overruled')
  })

  test("is that client's even if it is maint over our drain", () => {
    const run = setAgain(idle({ seal: 'gentle' }))
      .open()
      .look()
    expect(run.outcome).toBe('overruled')
  })

  test("is that client's even if the ledger has an intended raise", () => {
    const run = held().look({ after: 1_000 }).look({ after: 100 })
    const intended = { kind: 'hold' as const, to: 'maint' as const, state: 'intended' as const }
    const { hold } = run.state
    const changes = [...hold.changes, { ...intended, at: run.now }]
    run.state = { ...run.state, hold: { ...hold, changes } }
    run.set({ own: 'ready' }).look().set({ own: 'drain' }).look().open().look()
    expect(run.outcome).toBe('overruled')
  })

  test("is that client's even in a process that was reloaded since", () => {
    const run = held().look().set({ own: 'ready' }).look()
    expect(run.outcome).toBe('overruled')
    run.open().set({ own: 'drain' }).scope('w1', { incarnation: 'w1.2' }).look()
    expect(run.sent).toBe(null)
    expect(run.outcome).toBe('overruled')
  })

  test('is ours again if we put it back', () => {
    const run = held({ onOverrule: 'reapply' }).look().set({ own: 'ready' }).look()
    run.look({ after: 250 }).answer().look().open().look()
    expect(run.sent).toBe('restore drain to ready')
  })

  test("is that client's even if an undo of ours may have lowered it", () => {
    const change = {
      kind: 'restore' as const,
      ref: { pool: 'web', member: 'web1' },
      expect: 'drain' as const,
      to: 'ready' as const,
    }
    const run = held({ lateBound: 9_000 }).look()
    run.put({ type: 'inherit', late: [{ change, lostAt: run.now, until: null, lackedAt: null }] })
    run.set({ own: 'ready' }).look().set({ own: 'drain' }).look().open().look()
    expect(run.state.hold.changes.at(-1)).toMatchObject({ kind: 'restore', state: 'applied' })
    expect(run.outcome).toBe('overruled')
  })

  test('is put back if a lost undo came and its twin may still come', () => {
    const run = held({ lateBound: 9_000 }).look()
    const late = [unanswered(undoOf('drain', 'ready'), { lackedAt: run.now, shared: true })]
    run.put({ type: 'inherit', late }).set({ own: 'ready' }).look().look()
    expect(run.state.hold.late).toHaveLength(1)
    expect([run.outcome, run.sentSoFar]).toEqual([null, ['hold drain', 'hold drain']])
  })

  test('is not recognised by a look from before our hold', () => {
    const run = started().look().answer()
    run.set({ own: 'ready' }).look({ asked: run.now }).set({ own: 'drain' }).look().open().look()
    expect(run.sent).toBe('restore drain to ready')
  })

  test('is not recognised while an undo of ours is under way', () => {
    const run = held().look().open().look()
    expect(run.sent).toBe('restore drain to ready')
    run.set({ own: 'ready' }).look() // carried out, the answer is still to come
    expect(run.state.hold.changes).toHaveLength(1)
  })

  test('is not recognised by another member of the same name', () => {
    const run = held().look().set({ own: 'ready', identity: 'x' }).look()
    run.set({ own: 'drain', identity: '10.0.0.1:80' }).look().open().look()
    expect(run.sent).toBe('restore drain to ready')
  })

  test('is in force in no process any more', () => {
    expect(setAgain(held().look()).all('in-force')).toHaveLength(1)
  })
})

describe('a state of ours that a reload forgot', () => {
  test("is another client's if it raises what a state file brought back", () => {
    const run = held({ hold: 'maint' }).set({ health: 'unknown' }).look().open().look()
    expect(run.sent).toBe('restore maint to drain')
    run.answer().look()
    run.scope('w1', { incarnation: 'w1.2' }).look()
    expect(run.state.hold.incarnations).toEqual(new Map([['w1', 'w1.2']]))
    run.set({ own: 'maint' }).look()
    expect(run.outcome).toBe('overruled')
  })

  test('is as wished in another process, even if another client raised it', () => {
    const run = held().look().set({ own: 'maint' }).scope('w1', { incarnation: 'w1.2' }).look()
    expect(run.state.hold.incarnations).toEqual(new Map([['w1', 'w1.2']]))
  })

  test('is put back if only a late hold that came and went explains it', () => {
    const run = held({ lateBound: 9_000 }).look().open().look()
    const change = { kind: 'hold' as const, ref: WEB1, to: 'drain' as const }
    const late = { change, lostAt: run.now, until: null, lackedAt: run.now, sight: 'gone' as const }
    run
      .answer()
      .put({ type: 'inherit', late: [late] })
      .look()
    expect(run.outcome).toBe(null)
    run.set({ own: 'drain' }).look()
    expect([run.outcome, run.error?.message]).toEqual([
      'overruled',
      expect.stringContaining("it is 'drain' again"),
    ])
  })

  test('is ours if another process has it from an older state file', () => {
    const run = held({ hold: 'maint' }).set({ health: 'unknown' }).look().open().look()
    run.answer().look()
    run.scope('w1', { incarnation: 'w1.2' }).look()
    run.set({ own: 'maint' }).scope('w1', { incarnation: 'w1.3' }).look()
    expect(run.sent).toBe('restore maint to drain')
    expect(run.answer().state.hold.incarnations).toEqual(new Map([['w1', 'w1.3']]))
  })

  test('is ours if a state file brings back a lower one of ours', () => {
    const run = held({ maint: 'cuts', seal: 'always' }).looks(1_500).answer().looks(200)
    expect(run.phase).toBe('idle')
    run.set({ own: 'drain' }).scope('w1', { incarnation: 'w1.2', arrivals: 0 }).look().look()
    expect(run.sentSoFar).toEqual(['hold drain', 'hold maint'])
    run.open().look()
    expect(run.sent).toBe('restore drain to ready')
  })

  test('was not changed by another client', () => {
    const run = held().look().set({ own: 'ready' }).scope('w1', { incarnation: 'w1.2' }).look()
    expect(run.state.hold.changes).toHaveLength(1)
  })

  describe('and that is there again before our put-back', () => {
    const refused = failure('CONFLICT', true)
    /** A reload forgot the drain, a look has seen that, and the balancer refuses the put-back for now. */
    const forgotten = (): MemberRun =>
      held()
        .look()
        .set({ own: 'ready' })
        .scope('w1', { incarnation: 'w1.2' })
        .look()
        .refuse(refused)

    test('was set by another client', () => {
      const run = forgotten().look().set({ own: 'drain' }).look()
      expect(run.state.hold.changes.at(-1)).toMatchObject({ to: 'ready', state: 'unchanged' })
      run.open().look()
      expect([run.sent, run.outcome]).toEqual([null, 'overruled'])
    })

    test('was set by another client even if an undo sees it first', () => {
      const run = forgotten().look().open().set({ own: 'drain' }).look()
      expect([run.sent, run.outcome]).toEqual([null, 'overruled'])
    })

    test('is ours if no look saw the member open since the refusal', () => {
      const run = forgotten().set({ own: 'drain' }).look().open().look()
      expect(run.sent).toBe('restore drain to ready')
    })

    test('is ours if that look was asked for at the moment of the refusal', () => {
      const run = forgotten().look({ after: 0 }).set({ own: 'drain' }).look().open().look()
      expect(run.sent).toBe('restore drain to ready')
    })

    test('is ours for an undo after a refusal later than that look', () => {
      const run = held().look().set({ own: 'ready' }).scope('w1', { incarnation: 'w1.2' }).look()
      run.wait(1).refuse(refused).open().set({ own: 'drain' }).look()
      expect(run.sent).toBe('restore drain to ready')
    })

    test('is ours if the member was absent in the look before', () => {
      const run = forgotten().look().vanish().look()
      run.set({ own: 'drain' }).look().open().look()
      expect(run.sent).toBe('restore drain to ready')
    })

    test('is ours if another member had its place in the look before', () => {
      const run = forgotten().look().set({ identity: '10.0.0.2:80' }).look()
      run.set({ own: 'drain', identity: '10.0.0.1:80' }).look().open().look()
      expect(run.sent).toBe('restore drain to ready')
    })

    test('is ours if yet another process has it from a state file', () => {
      const run = forgotten().look().set({ own: 'drain' }).scope('w1', { incarnation: 'w1.3' })
      run.look().open().look()
      expect(run.sent).toBe('restore drain to ready')
    })

    test('was set by another client if that look could not read the process', () => {
      const run = forgotten().look().scope('w1', { state: 'unread' }).look().set({ own: 'drain' })
      run.scope('w1', { state: 'read' }).look().open().look()
      expect([run.sent, run.outcome]).toEqual([null, 'overruled'])
    })

    test('is ours if the process that could not be read was replaced since', () => {
      const run = forgotten().look().scope('w1', { state: 'unread' }).look().set({ own: 'drain' })
      run.scope('w1', { state: 'read', incarnation: 'w1.3' }).look().open().look()
      expect(run.sent).toBe('restore drain to ready')
    })

    test('is ours if a process could not be read in that look', () => {
      const run = forgotten().scope('w2', { state: 'unread' }).look()
      run.set({ own: 'drain' }).scope('w2', { state: 'read' }).look().open().look()
      expect(run.sent).toBe('restore drain to ready')
    })

    test('may be ours if the answer to a put-back is missing', () => {
      const run = forgotten().look({ after: 300 }).lose().look().lose().look()
      run.set({ own: 'drain' }).look().open().look()
      expect(run.sent).toBe('restore drain to ready')
    })
  })
})

describe('a lower state of ours in a process that was seen open', () => {
  /** Drained and raised to maint by us; a reload forgot that, a look has seen it, and the put-back is under way. */
  const puttingBack = (): MemberRun =>
    held({ escalateAfter: 100, lateBound: 9_000 })
      .wait(100)
      .look()
      .answer()
      .look()
      .set({ own: 'ready' })
      .scope('w1', { incarnation: 'w1.2' })
      .look()

  test('was set by another client if the put-back was refused', () => {
    const run = puttingBack().wait(1).refuse(failure('CONFLICT', true)).set({ own: 'drain' }).look()
    expect(run.state.hold.changes.at(-1)).toMatchObject({ kind: 'restore', state: 'unchanged' })
    run.open().look()
    expect([run.sent, run.outcome]).toEqual([null, 'overruled'])
  })

  test('may be ours, half made, if the put-back has no answer', () => {
    const run = puttingBack().wait(1).lose().set({ own: 'drain' }).look()
    expect(run.state.hold.changes.at(-1)).toMatchObject({ kind: 'hold', to: 'drain' })
  })

  test('is ours from a state file in a process never seen open', () => {
    const run = puttingBack().wait(1).refuse(failure('CONFLICT', true)).set({ own: 'drain' })
    run.scope('w1', { incarnation: 'w1.3' }).look().look()
    expect(run.open().look().sent).toBe('restore drain to ready')
  })

  test('was not set by another client while it is still open', () => {
    const run = puttingBack().wait(1).refuse(failure('CONFLICT', true)).look()
    expect(run.state.hold.changes.at(-1)).toMatchObject({ kind: 'hold', to: 'maint' })
  })
})

describe('a state brought back by another process', () => {
  const entry = (
    kind: 'hold' | 'restore',
    to: 'drain' | 'maint',
    state = 'applied' as OwnChange['state'],
  ) => ({
    kind,
    to,
    state,
    at: 950,
  })

  /** A run with this ledger, whose new process shows the member drained. */
  function afterReload(changes: readonly OwnChange[]): MemberRun {
    const found = { identity: '10.0.0.1:80', own: 'ready' as const, serves: true, native: null }
    const incarnations = new Map([['w1', 'w1.1']])
    const run = started({ own: 'maint', hold: 'maint' })
    run.put({ type: 'inherit', late: [], owned: { found, changes, incarnations } })
    return run.set({ own: 'drain' }).scope('w1', { incarnation: 'w1.2' }).look()
  }

  test('is noted as ours if a hold of ours had set it', () => {
    const run = afterReload([entry('hold', 'drain'), entry('hold', 'maint')])
    expect(run.state.hold.changes.at(-1)).toMatchObject({ kind: 'hold', to: 'drain' })
  })

  test('is not noted as ours if only an undo of ours had been there', () => {
    const run = afterReload([entry('restore', 'drain'), entry('hold', 'maint')])
    expect(run.state.hold.changes.at(-1)).toMatchObject({ kind: 'hold', to: 'maint' })
  })

  test('is not noted as ours if a hold of ours was only intended', () => {
    const run = afterReload([entry('hold', 'drain', 'intended'), entry('hold', 'maint')])
    expect(run.state.hold.changes.at(-1)).toMatchObject({ kind: 'hold', to: 'maint' })
  })

  test('is not noted by an undo, which takes it back', () => {
    const run = held({ escalateAfter: 500, scopes: { w1: { active: 1 } } })
      .looks(600)
      .answer()
      .look()
    const { changes } = run.state.hold
    run.open().set({ own: 'drain' }).scope('w1', { incarnation: 'w1.2' }).look()
    expect(run.state.hold.changes).toEqual(changes)
    expect(run.sent).toBe('restore drain to ready')
  })
})

test('a hold to the found state is not an undo: others took it back', () => {
  const found = { identity: '10.0.0.1:80', own: 'drain' as const, serves: true, native: null }
  const changes = [
    { kind: 'hold' as const, to: 'drain' as const, state: 'applied' as const, at: 950 },
  ]
  const run = started().put({ type: 'inherit', late: [], owned: { found, changes } }).look()
  expect(run.state.hold.changes).toMatchObject([
    { kind: 'hold', to: 'drain' },
    { kind: 'restore', to: 'ready', state: 'unchanged' },
  ])
})

test("what is set after a lost undo that came is another client's", () => {
  const run = held({ hold: 'drain', escalateAfter: 100, lateBound: 9_000 }).look().wait(100).look()
  run.answer().look().open().look().lose()
  run.set({ own: 'ready' }).scope('w1', { incarnation: 'w1.2' }).look({ after: 20 })
  expect(run.state.hold.changes.at(-1)).toMatchObject({ kind: 'restore', state: 'applied' })
  run.set({ own: 'drain' }).look({ after: 20 })
  expect(run.outcome).toBe('overruled')
})

describe('a process that could not be read when the hold went out', () => {
  const unread = (): MemberRun =>
    started({ scopes: { w2: { state: 'unread' } } })
      .look()
      .answer()
  const known = (run: MemberRun): string | undefined => run.state.hold.incarnations?.get('w2')

  test('is known by its first reading', () => {
    const run = unread()
    expect(known(run)).toBe('')
    run.look({ asked: run.now })
    expect(known(run)).toBe('')
    run.scope('w2', { state: 'read' }).look({ asked: run.now })
    expect(known(run)).toBe('w2.1')
    expect(run.state.hold.incarnations?.get('w1')).toBe('w1.1')
  })

  test('has not forgotten what another client opens later', () => {
    const run = unread().scope('w2', { state: 'read' })
    run.look({ asked: run.now }).set({ own: 'ready' }).look()
    expect(run.outcome).toBe('overruled')
  })

  test('is a new one if the member shows open or is not shown', () => {
    for (const own of ['ready', 'unknown'] as const)
      expect(known(unread().scope('w2', { state: 'read' }).set({ own }).look())).toBe('')
    const replaced = unread().scope('w2', { state: 'read' }).set({ identity: 'another' }).look()
    expect(known(replaced)).toBe('')
  })
})
