import { describe, expect, test } from 'vitest'
import { failure, held, started, WEB1, type MemberRun } from '../member-run.js'

const sight = (run: MemberRun) => run.state.hold.pending?.sight
const late = (run: MemberRun) => run.state.hold.late[0]

/** Looks go on while the answer to the first hold is missing. */
function waiting(): MemberRun {
  return started({ lateBound: 9_000 }).look()
}

describe('what looks show of a hold under way', () => {
  test('its effect came', () => {
    expect(sight(waiting().look())).toBe(undefined)
    expect(sight(waiting().set({ own: 'drain' }).look())).toBe('shown')
    expect(sight(waiting().set({ own: 'maint' }).look())).toBe('shown')
  })

  test('its effect came and went', () => {
    const run = waiting().set({ own: 'drain' }).look().set({ own: 'ready' }).look()
    expect(sight(run)).toBe('gone')
    expect(run.state.hold.pending).toMatchObject({ before: 'ready' })
    expect(sight(run.set({ own: 'drain' }).look())).toBe('gone')
  })

  test('nothing, where it was decided on a member that is closed already', () => {
    expect(sight(started({ own: 'maint' }).look().look())).toBe(undefined)
  })

  test('nothing, where the state is not known', () => {
    expect(sight(waiting().set({ own: 'unknown' }).look())).toBe(undefined)
    const run = waiting().set({ own: 'drain' }).look().set({ own: 'unknown' }).look()
    expect(sight(run)).toBe('shown')
  })

  test('nothing, where another member has its name', () => {
    expect(sight(waiting().set({ own: 'drain', identity: 'another' }).look())).toBe(undefined)
  })

  test('nothing of an effect that was there before', () => {
    const run = held().set({ own: 'drain', stored: 'maint' }).look().open({ of: 'anybody' }).look()
    expect(run.sent).toBe('restore drain to ready')
    expect(sight(run.look())).toBe(undefined)
  })

  test('nothing of what another hold may have brought', () => {
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

describe('a hold that came and went before its answer was lost', () => {
  const gone = (): MemberRun =>
    waiting().set({ own: 'drain' }).look().set({ own: 'ready' }).look().lose()

  test('keeps that it came', () => {
    expect(late(gone())).toMatchObject({ sight: 'gone' })
    expect(late(waiting().set({ own: 'drain' }).look().lose())).toMatchObject({ sight: 'shown' })
    expect(late(waiting().lose())).not.toHaveProperty('sight')
  })

  test('is not what an undo finds later', () => {
    const run = gone().open().look()
    run.set({ own: 'drain' }).look()
    expect(run.sent).toBe(null)
    expect(run.outcome).toBe('overruled')
    expect(run.state.hold.changes).toEqual([])
  })

  test('leaves nothing in the ledger when its time is over', () => {
    const run = gone().open().look({ after: 100 })
    run.set({ own: 'unknown' }).looks(9_500, 1_000)
    run.set({ own: 'drain' }).look()
    expect(run.state.hold.late).toEqual([])
    expect(run.state.hold.changes).toEqual([])
  })
})

describe('an undo whose answer is lost', () => {
  const opening = (): MemberRun => held({ lateBound: 9_000 }).look().open().look()

  test('may still come, where its effect was not seen', () => {
    const run = opening().lose()
    expect(late(run)).toMatchObject({ change: { kind: 'restore' } })
    expect(run.state.hold.changes).toHaveLength(1)
  })

  test('was carried out, where its effect came and went', () => {
    const run = opening().set({ own: 'ready' }).look().set({ own: 'drain' }).look().lose()
    expect(run.state.hold.late).toEqual([])
    expect(run.state.hold.changes.at(-1)).toMatchObject({
      kind: 'restore',
      to: 'ready',
      state: 'applied',
    })
  })

  test('may still come, where its effect is seen only now', () => {
    const run = opening().set({ own: 'ready' }).look().lose()
    expect(late(run)).toMatchObject({ change: { kind: 'restore' }, sight: 'shown' })
  })
})

describe('the end of a call that was given up', () => {
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

  test('as applied: what shows from the loss on is ours', () => {
    const { run, end } = givenUp('maint')
    expect(late(run)).toMatchObject({ lackedAt: null })
    const { lostAt } = run.state.hold.late[0]!
    run.wait(50)
    end('applied')
    expect(late(run)).toMatchObject({ lackedAt: lostAt, lostAt: run.now, until: run.now })
  })

  test('as applied: what shows from the last look without it on is ours', () => {
    const { run, end } = givenUp('ready')
    run.look()
    const lackedAt = run.now
    run.wait(50)
    end('applied')
    expect(late(run)).toMatchObject({ lackedAt, until: run.now })
  })

  test('as refused: what was there before is not ours', () => {
    const { run, end } = givenUp('drain')
    end('rejected')
    expect(late(run)).toMatchObject({ lackedAt: null, refused: true })
  })
})

describe('a hold without an answer', () => {
  test('has its time from the first look on, whatever that shows', () => {
    expect(late(started({ lateBound: 1_000 }).look().lose().vanish().look())).toMatchObject({
      until: 2_020,
      lackedAt: 1_010,
    })
  })

  test('is not what shows once a repeat of it was confirmed', () => {
    const run = started({ lateBound: 9_000 }).look().lose().look()
    const { lackedAt } = late(run)!
    run.set({ own: 'maint' }).answer().look()
    run.set({ own: 'maint' }).look()
    expect(late(run)).toMatchObject({ lackedAt })
    expect(run.state.hold.changes).toHaveLength(1)
  })
})
