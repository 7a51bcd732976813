import { describe, expect, test } from 'vitest'
import { failure, held, started, WEB1, type MemberRun } from '../member-run.js'

const sight = (run: MemberRun) => run.state.hold.pending?.sight
const late = (run: MemberRun) => run.state.hold.late[0]

const ledger = ({ state }: MemberRun): readonly string[] =>
  state.hold.changes.map(({ kind, to, state: how }) => `${kind} ${String(to)} ${how}`)
const unknown = () => ({ ref: WEB1, status: 'unknown' as const, error: failure('CALL_TIMEOUT') })

/** Looks go on while the answer to the first hold is missing. */
function waiting(): MemberRun {
  return started({ lateBound: 9_000 }).look()
}

describe('looks at a hold under way show', () => {
  test('that its effect came', () => {
    expect(sight(waiting().look())).toBe(undefined)
    expect(sight(waiting().set({ own: 'drain' }).look())).toBe('shown')
    expect(sight(waiting().set({ own: 'maint' }).look())).toBe('shown')
  })

  test('that its effect came and went', () => {
    const run = waiting().set({ own: 'drain' }).look().set({ own: 'ready' }).look()
    expect(sight(run)).toBe('gone')
    expect(run.state.hold.pending).toMatchObject({ before: 'ready' })
    expect(sight(run.set({ own: 'drain' }).look())).toBe('gone')
  })

  test('nothing if it was decided on a closed member', () => {
    expect(sight(started({ own: 'maint' }).look().look())).toBe(undefined)
  })

  test('nothing if the state is unknown', () => {
    expect(sight(waiting().set({ own: 'unknown' }).look())).toBe(undefined)
    const run = waiting().set({ own: 'drain' }).look().set({ own: 'unknown' }).look()
    expect(sight(run)).toBe('shown')
  })

  test('nothing if another member has its name', () => {
    expect(sight(waiting().set({ own: 'drain', identity: 'another' }).look())).toBe(undefined)
  })

  test('nothing of an effect from before', () => {
    const run = held().set({ own: 'drain', stored: 'maint' }).look().open({ of: 'anybody' }).look()
    expect(run.sent).toBe('restore drain to ready')
    expect(sight(run.look())).toBe(undefined)
  })

  test('nothing of what another hold may have caused', () => {
    const run = waiting().lose().look()
    expect(run.state.hold.pending).toMatchObject({ shared: true })
    expect(sight(run.set({ own: 'drain' }).look())).toBe(undefined)
  })

  test('nothing of a cut', () => {
    const run = held({ onTimeout: 'terminate', timeout: 500, scopes: { w1: { active: 1 } } })
    run.look({ after: 600 })
    expect(run.sent).toBe('terminate')
    run.set({ own: 'ready' }).look()
    expect(run.state.hold.pending).toMatchObject({ before: 'drain' })
    expect(sight(run)).toBe(undefined)
  })
})

describe('a hold whose effect came and went before its answer was lost', () => {
  const gone = (): MemberRun =>
    waiting().set({ own: 'drain' }).look().set({ own: 'ready' }).look().lose()

  test('is remembered to have come', () => {
    expect(late(gone())).toMatchObject({ sight: 'gone' })
    expect(late(waiting().set({ own: 'drain' }).look().lose())).toMatchObject({ sight: 'shown' })
    expect(late(waiting().lose())).not.toHaveProperty('sight')
  })

  test('is not what an undo finds later', () => {
    const run = gone().open().look()
    run.set({ own: 'drain' }).look()
    expect(run.sent).toBe(null)
    expect(run.outcome).toBe('overruled')
    expect(ledger(run)).toEqual(['hold drain applied', 'restore ready unchanged'])
  })

  test('is not what an undo finds when its time is over', () => {
    const run = gone().open().look({ after: 100 })
    run.set({ own: 'unknown' }).looks(9_500, 1_000)
    run.set({ own: 'drain' }).look()
    expect(run.state.hold.late).toEqual([])
    expect(run.outcome).toBe('overruled')
    expect(ledger(run)).toEqual(['hold drain applied', 'restore ready unchanged'])
  })

  test('is what a state file brings back, before and after its time', () => {
    for (const wait of [100, 9_500]) {
      const run = waiting().set({ own: 'drain' }).look()
      run.set({ own: 'ready' }).scope('w1', { incarnation: 'w1.2' }).look().lose().open().look()
      run.set({ own: 'unknown' }).scope('w1', { incarnation: 'w1.3' }).looks(wait, 100)
      run.set({ own: 'drain' }).look()
      expect(run.sent).toBe('restore drain to ready')
    }
  })

  test('is another client’s in the process that had forgotten it', () => {
    for (const wait of [100, 9_500]) {
      const run = waiting().set({ own: 'drain' }).look()
      run.set({ own: 'ready' }).scope('w1', { incarnation: 'w1.2' }).look()
      expect(ledger(run)).toEqual(['hold drain applied', 'restore ready applied'])
      run.lose().open().set({ own: 'unknown' }).looks(wait, 100)
      run.set({ own: 'drain' }).look()
      expect(run.outcome).toBe('overruled')
    }
  })

  test('leaves alone a lower state of another client in another process', () => {
    const run = started({ hold: 'maint', lateBound: 9_000 }).look().set({ own: 'maint' }).look()
    run.lose().open().set({ own: 'drain' }).scope('w1', { incarnation: 'w1.2' }).look()
    expect(ledger(run)).toEqual(['hold maint applied', 'restore drain unchanged'])
    expect(run.outcome).toBe('overruled')
  })

  test('leaves it alone even if we had set the higher state before', () => {
    const run = held({ hold: 'maint', lateBound: 9_000 }).look()
    run.set({ own: 'ready' }).scope('w1', { incarnation: 'w1.2' }).look({ after: 300 })
    expect(run.sentSoFar).toEqual(['hold maint', 'hold maint'])
    run.set({ own: 'maint' }).look().lose().open()
    run.set({ own: 'drain' }).scope('w1', { incarnation: 'w1.3' }).look()
    expect(ledger(run).at(-1)).toBe('restore drain unchanged')
    expect(run.outcome).toBe('overruled')
  })

  test('leads back to a drain of ours or to an earlier one', () => {
    const raised = held({ escalateAfter: 100, lateBound: 9_000 }).look().wait(100).look()
    expect(raised.sent).toBe('hold maint')
    raised.set({ own: 'maint' }).look().set({ own: 'drain' }).scope('w1', { incarnation: 'w1.2' })
    expect(ledger(raised.look()).slice(1)).toEqual(['hold maint applied', 'hold drain applied'])
    const over = started({ own: 'drain', hold: 'maint', lateBound: 9_000 }).look()
    over.set({ own: 'maint' }).look().set({ own: 'drain' }).scope('w1', { incarnation: 'w1.2' })
    expect(ledger(over.look())).toEqual(['hold maint applied', 'restore drain applied'])
    const bare = started({ own: 'drain', hold: 'maint', lateBound: 9_000 }).look()
    bare.set({ own: 'maint' }).look().set({ own: 'ready' }).scope('w1', { incarnation: 'w1.2' })
    expect(ledger(bare.look())).toEqual(['hold maint applied', 'restore ready applied'])
  })

  test('was another client’s if its answer says unchanged', () => {
    const run = waiting().set({ own: 'drain' }).look()
    run.set({ own: 'ready' }).scope('w1', { incarnation: 'w1.2' }).look().answer('unchanged')
    expect(ledger(run)).toContain('restore ready unchanged')
    run.open().set({ own: 'drain' }).scope('w1', { incarnation: 'w1.3' }).look()
    expect(run.outcome).toBe('overruled')
  })

  test('was another client’s if it is refused', () => {
    const rejected = { ref: WEB1, status: 'rejected' as const, error: failure('REJECTED', false) }
    for (const isGivenUp of [false, true]) {
      const run = waiting().set({ own: 'drain' }).look()
      const { change } = run.state.hold.pending!
      run.set({ own: 'ready' }).scope('w1', { incarnation: 'w1.2' }).look()
      if (isGivenUp) run.put({ type: 'result', change, result: unknown(), givenUp: true })
      run.put({ type: 'result', change, result: rejected })
      run.open().set({ own: 'drain' }).scope('w1', { incarnation: 'w1.3' }).look()
      expect(run.outcome).toBe('overruled')
    }
  })

  test('and was applied is not what another client sets next', () => {
    const run = waiting().set({ own: 'drain' }).look().set({ own: 'ready' }).look().answer()
    run.set({ own: 'drain' }).open().look()
    expect(run.outcome).toBe('overruled')
  })

  test('and was applied is put back if another process forgot it', () => {
    const run = waiting().set({ own: 'drain' }).look()
    run.set({ own: 'ready' }).scope('w1', { incarnation: 'w1.2' }).look().answer()
    run.set({ own: 'ready' }).look()
    expect(run.outcome).toBe(null)
    expect(run.sent).toBe('hold drain')
    run.answer().look().open().look()
    expect(run.sent).toBe('restore drain to ready')
  })

  test('is noted even if its loss shows after the answer was lost', () => {
    const run = waiting().set({ own: 'drain' }).look().lose().set({ own: 'ready' }).open().look()
    expect(late(run)).toMatchObject({ sight: 'gone' })
    expect(ledger(run)[0]).toBe('hold drain applied')
  })

  test('was another client’s if its call ends as unchanged at last', () => {
    for (const incarnation of ['w1.1', 'w1.2']) {
      const run = waiting().set({ own: 'drain' }).look()
      const { change } = run.state.hold.pending!
      run.set({ own: 'ready' }).scope('w1', { incarnation }).look().open()
      run.put({ type: 'result', change, result: unknown(), givenUp: true })
      run.put({ type: 'result', change, result: { ref: WEB1, status: 'unchanged' } })
      expect(run.state.hold.late).toEqual([])
      expect(ledger(run).at(-1)).toBe('restore ready unchanged')
      run.set({ own: 'drain' }).scope('w1', { incarnation: 'w1.3' })
      expect(run.look().outcome).toBe('overruled')
    }
  })
})

describe('an applied hold whose effect came and went before the answer', () => {
  const refusal = failure('CONFLICT', true)

  test('is put back if another process forgot it, without its refusal', () => {
    const run = waiting().refuse(refusal).look({ after: 300 })
    expect(run.sentSoFar).toEqual(['hold drain', 'hold drain'])
    run.set({ own: 'drain' }).look()
    run.set({ own: 'ready' }).scope('w1', { incarnation: 'w1.2' }).look().answer('applied')
    expect(run.state.hold).toMatchObject({ refusal: null, refusals: 0, losses: 0, loss: null })
    expect(run.set({ own: 'ready' }).look({ after: 300 }).sent).toBe('hold drain')
  })

  test('is put back if it raised, or put back, a hold of ours', () => {
    const raised = held({ escalateAfter: 100, lateBound: 9_000 }).look().wait(100).look()
    raised.set({ own: 'maint' }).look()
    const again = held({ lateBound: 9_000 }).look().set({ own: 'ready' })
    again.scope('w1', { incarnation: 'w1.2' }).look().set({ own: 'drain' }).look()
    for (const run of [raised, again]) {
      run.set({ own: 'ready' }).scope('w1', { incarnation: 'w1.3' }).look()
      expect(ledger(run).at(-1)).toBe('restore ready applied')
      run.answer('applied').set({ own: 'ready' }).look()
      expect([run.outcome, run.sent]).toEqual([null, run.sentSoFar.at(-2)])
    }
  })

  test('is put back if a state file brought back a lower state', () => {
    const run = held({ escalateAfter: 100, lateBound: 9_000 }).look().wait(100).look().answer()
    run.look().set({ own: 'ready' }).scope('w1', { incarnation: 'w1.2' }).look()
    expect(run.sentSoFar).toEqual(['hold drain', 'hold maint', 'hold maint'])
    run.set({ own: 'maint' }).look().set({ own: 'drain' }).scope('w1', { incarnation: 'w1.3' })
    run.look().answer('applied').set({ own: 'drain' }).look()
    expect([run.outcome, run.sent]).toEqual([null, 'hold maint'])
  })

  test('is overruled if another client lowered it in the new process', () => {
    const run = held({ escalateAfter: 100, lateBound: 9_000 }).look().wait(100).look().answer()
    run.look().set({ own: 'ready' }).scope('w1', { incarnation: 'w1.2' }).look()
    run.set({ own: 'maint' }).look().set({ own: 'ready' }).scope('w1', { incarnation: 'w1.3' })
    run.look().answer('applied').set({ own: 'drain' })
    expect(run.look().outcome).toBe('overruled')
  })

  test('is overruled if another client took it back', () => {
    const run = waiting().set({ own: 'drain' }).look().set({ own: 'ready' }).look()
    run.answer('applied').set({ own: 'ready' })
    expect(run.look().outcome).toBe('overruled')
  })
})

describe('a step of an undo whose effect came and went', () => {
  test('was carried out if its answer says so', () => {
    const run = held({ hold: 'maint' }).set({ health: 'unknown' }).look().open().look().answer()
    run.set({ health: 'up' }).look()
    expect(run.sent).toBe('restore drain to ready')
    run.set({ own: 'ready' }).look().set({ own: 'drain' }).look().answer('applied')
    expect(ledger(run).at(-1)).toBe('restore ready applied')
  })
})

describe('an undo whose answer is lost', () => {
  const opening = (): MemberRun => held({ lateBound: 9_000 }).look().open().look()

  test('may still come if its effect was not seen', () => {
    const run = opening().lose()
    expect(late(run)).toMatchObject({ change: { kind: 'restore' } })
    expect(run.state.hold.changes).toHaveLength(1)
  })

  test('keeps the ledger until its answer, if its effect came and went', () => {
    const run = opening().set({ own: 'ready' }).look().set({ own: 'drain' }).look()
    expect(ledger(run)).toEqual(['hold drain applied'])
    expect(ledger(run.answer('unchanged'))).not.toContain('restore drain unchanged')
  })

  test('was carried out if its effect came and went', () => {
    const run = opening().set({ own: 'ready' }).look().set({ own: 'drain' }).look().lose()
    expect(run.state.hold.late).toEqual([])
    expect(run.state.hold.changes.at(-1)).toMatchObject({
      kind: 'restore',
      to: 'ready',
      state: 'applied',
    })
  })

  test('may still come if its effect is seen only now', () => {
    const run = opening().set({ own: 'ready' }).look().lose()
    expect(late(run)).toMatchObject({ change: { kind: 'restore' }, sight: 'shown' })
  })
})

describe('the end of a given-up call', () => {
  /** The call of the first hold is given up; its member is in this state. */
  function givenUp(own: 'ready' | 'drain' | 'maint') {
    const run = started({ own, lateBound: 9_000 }).look()
    const { change } = run
    const error = failure('CALL_TIMEOUT')
    run.put({
      type: 'result',
      change,
      givenUp: true,
      result: { ref: WEB1, status: 'unknown', error },
    })
    return { run, end: (status: 'applied' | 'rejected') => run.put(endOf(change, status)) }
  }

  function endOf(change: MemberRun['change'], status: 'applied' | 'rejected') {
    const result =
      status === 'applied'
        ? { ref: WEB1, status }
        : { ref: WEB1, status, error: failure('REJECTED') }
    return { type: 'result' as const, change, result }
  }

  test('as applied makes ours what shows from the loss on', () => {
    const { run, end } = givenUp('maint')
    expect(late(run)).toMatchObject({ lackedAt: null })
    const { lostAt } = run.state.hold.late[0]!
    run.wait(50)
    end('applied')
    expect(late(run)).toMatchObject({ lackedAt: lostAt, lostAt: run.now, until: run.now })
  })

  test('as applied makes ours what shows since the last look without it', () => {
    const { run, end } = givenUp('ready')
    run.look()
    const lackedAt = run.now
    run.wait(50)
    end('applied')
    expect(late(run)).toMatchObject({ lackedAt, until: run.now })
  })

  test('as refused leaves what was there before to its owner', () => {
    const { run, end } = givenUp('drain')
    end('rejected')
    expect(late(run)).toMatchObject({ lackedAt: null, refused: true })
  })
})

describe('a hold without an answer', () => {
  test('may come for its time from the first look, whatever that shows', () => {
    expect(late(started({ lateBound: 1_000 }).look().lose().vanish().look())).toMatchObject({
      until: 2_020,
      lackedAt: 1_010,
    })
  })

  test('is not what shows once its repeat was confirmed', () => {
    const run = started({ lateBound: 9_000 }).look().lose().look()
    const { lackedAt } = late(run)!
    run.set({ own: 'maint' }).answer().look()
    run.set({ own: 'maint' }).look()
    expect(late(run)).toMatchObject({ lackedAt })
    expect(run.state.hold.changes).toHaveLength(1)
  })
})

describe('a hold that an undo could not tell from its own', () => {
  const LOST = { lostAt: 1_000, until: null, lackedAt: null }
  const MAINT = { change: { to: 'maint' } }
  const leftAlone = (): MemberRun => {
    const run = started({ lateBound: 500 })
    const hold = { kind: 'hold' as const, ref: WEB1 }
    const late = (['drain', 'maint'] as const).map((to) => ({ change: { ...hold, to }, ...LOST }))
    run.look().refuse(failure('CONFLICT', true)).look({ after: 10 })
    run.put({ type: 'inherit', late })
    return run.set({ own: 'drain' }).open().look()
  }

  test('stays intended in the ledger for whoever inherits it', () => {
    const run = leftAlone()
    expect(run.outcome).toBe('overruled')
    expect(run.state.hold.late).toMatchObject([{ change: { to: 'drain' }, sight: 'gone' }, MAINT])
    expect(run.state.hold.late[1]).not.toHaveProperty('sight')
    expect(ledger(run)).toEqual(['hold drain intended'])
  })

  test('stays there when its time is over: its ticket is kept', () => {
    const run = leftAlone().looks(1_000, 100)
    expect(run.state.hold.late).toEqual([])
    expect(ledger(run)).toEqual(['hold drain intended'])
  })
})
