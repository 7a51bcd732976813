import { describe, expect, test } from 'vitest'
import type { LateChange } from 'drainable/machine'
import type { Change, ChangeResult } from 'drainable/provider'
import { failure, held, started, WEB1, type MemberRun } from '../member-run.js'

/** The hold is given up while its call goes on; `end` is its answer, once it comes. */
function givenUp(): { readonly run: MemberRun; readonly end: (result: Answer) => MemberRun } {
  const run = started({ lateBound: 1_000 }).look()
  const { change } = run
  run.put({ type: 'result', change, result: lost(), givenUp: true })
  return { run, end: (answer) => answerTo(run, change, answer) }
}

type Answer = 'unknown' | 'unchanged' | 'applied' | 'rejected'

function lost(): ChangeResult {
  return { ref: WEB1, status: 'unknown', error: failure('CALL_TIMEOUT') }
}

function answerTo(run: MemberRun, change: Change, status: Answer): MemberRun {
  const result: ChangeResult =
    status === 'unknown'
      ? lost()
      : status === 'rejected'
        ? { ref: WEB1, status, error: failure() }
        : { ref: WEB1, status }
  return run.put({ type: 'result', change, result })
}

const first = (run: MemberRun) => run.state.hold.late[0]

describe('a hold given up while its call goes on', () => {
  test('may come for as long as the call goes on', () => {
    const { run } = givenUp()
    run.open().looks(5_000)
    expect(first(run)).toMatchObject({ underWay: true, until: null })
    expect(run.outcome).toBe(null)
  })

  test('may come for lateBound more if the call ends without an answer', () => {
    const { run, end } = givenUp()
    run.open().looks(5_000)
    end('unknown')
    expect(first(run)).toMatchObject({ underWay: false, lostAt: run.now, until: null })
    run.looks(900)
    expect(run.outcome).toBe(null)
    expect(run.looks(300).outcome).toBe('restored')
  })

  test('is over if the call ends as unchanged', () => {
    const { run, end } = givenUp()
    run.open().looks(500)
    end('unchanged')
    expect(run.state.hold.late).toEqual([])
    expect(run.look().outcome).toBe('restored')
  })

  test('is ours if the call ends as applied', () => {
    const { run, end } = givenUp()
    run.open().looks(500)
    end('applied').set({ own: 'drain' }).look()
    expect(run.state.hold.changes).toMatchObject([{ kind: 'hold', to: 'drain', state: 'applied' }])
    expect(run.look().sent).toBe('restore drain to ready')
  })

  test('is over at the next look if applied without an effect', () => {
    const { run, end } = givenUp()
    run.open().looks(500)
    end('applied').look()
    expect(run.state.hold.late).toEqual([])
  })

  test('may be half done if the call ends as refused', () => {
    const { run, end } = givenUp()
    run.open().looks(500)
    end('rejected')
    expect(first(run)).toMatchObject({ refused: true, underWay: false, until: run.now })
    run.set({ own: 'drain' }).look()
    expect(run.state.hold.changes).toMatchObject([{ to: 'drain', state: 'intended' }])
  })

  test('is not ended by the answer to another change', () => {
    const { run } = givenUp()
    run.open().looks(500)
    answerTo(run, { kind: 'hold', ref: WEB1, to: 'drain' }, 'unchanged')
    expect(first(run)).toMatchObject({ underWay: true })
  })
})

describe('a call that has ended', () => {
  const raise = { kind: 'hold', ref: WEB1, to: 'maint' } as const

  /** A raise without an answer that this run was not told of before. */
  function inherited(late: Partial<LateChange>): MemberRun {
    const run = held({ lateBound: 1_000 }).look()
    const entry = { change: raise, lostAt: run.now, until: null, lackedAt: run.now, ...late }
    return run.put({ type: 'inherit', late: [entry] })
  }

  test('leaves a state without its change to the time that it has', () => {
    const run = inherited({}).look()
    expect(first(run)).toMatchObject({ until: run.now + 1_000, lackedAt: run.now, before: 'drain' })
  })

  test('is unknown while its change may still be under way', () => {
    const run = inherited({ underWay: true }).looks(3_000)
    expect(first(run)).toMatchObject({ until: null })
  })
})

test('a lost hold whose call has ended takes no second answer', () => {
  const run = started({ lateBound: 1_000 }).look()
  const { change } = run
  run.lose().open()
  answerTo(run, change, 'unchanged')
  expect(run.state.hold.late).toHaveLength(1)
})
