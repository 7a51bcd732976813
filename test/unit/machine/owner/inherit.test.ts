import type { FoundMember, LateChange } from 'drainable/machine'
import { describe, expect, test } from 'vitest'
import {
  failure,
  held,
  started,
  unanswered,
  undoOf,
  WEB1,
  type FreeInput,
  type MemberRun,
} from '../member-run.js'

interface Owned {
  readonly own?: FoundMember['own']
  readonly identity?: string
  readonly late?: readonly LateChange[]
}

/** What an undo of another run has found there, and not undone: a drain of ours. */
function owned({ own = 'drain', identity = '10.0.0.1:80', late = [] }: Owned = {}): FreeInput {
  const found = { identity, own, serves: true, native: null }
  const changes = [
    { kind: 'hold' as const, to: 'drain' as const, state: 'applied' as const, at: 950 },
  ]
  return { type: 'inherit', late, owned: { found, changes } }
}

function lateHold(to: 'drain' | 'maint', more: Partial<LateChange> = {}): LateChange {
  return unanswered({ kind: 'hold', ref: WEB1, to }, more)
}

const found = (run: MemberRun) => run.state.found?.own

describe('the state found by an undo of another run', () => {
  test('is where this run goes back to', () => {
    expect(found(started().put(owned()))).toBe('drain')
    expect(
      found(
        started()
          .look()
          .refuse(failure('CONFLICT', true))
          .put(owned({ own: 'maint' })),
      ),
    ).toBe('maint')
  })

  test('does not count if an unanswered hold of ours may have caused it', () => {
    expect(found(started().look().lose().put(owned()))).toBe('ready')
    expect(found(started().look().refuse(failure('CONFLICT', true)).put(owned()))).toBe('ready')
  })

  test('counts if that hold leads elsewhere', () => {
    expect(
      found(
        started()
          .look()
          .lose()
          .put(owned({ own: 'maint' })),
      ),
    ).toBe('maint')
    expect(
      found(
        started()
          .look()
          .lose()
          .put(owned({ own: 'unknown' })),
      ),
    ).toBe('unknown')
  })

  test('counts if the member was at least as far before that hold', () => {
    expect(
      found(
        started({ own: 'maint', hold: 'maint' })
          .look()
          .lose()
          .put(owned({ own: 'drain' })),
      ),
    ).toBe('drain')
  })

  test('does not count for another member', () => {
    expect(
      found(
        started()
          .look()
          .lose()
          .put(owned({ identity: 'another' })),
      ),
    ).toBe('drain')
  })

  test('counts if this run knew none', () => {
    const run = started({ present: { own: 'unknown' } })
      .look()
      .put({ type: 'inherit', late: [lateHold('drain')] })
    expect(found(run)).toBe('unknown')
    expect(found(run.put(owned()))).toBe('drain')
  })

  test('counts if a restore of ours may have caused it', () => {
    const run = started()
      .look()
      .put({ type: 'inherit', late: [unanswered(undoOf('maint', 'drain'))] })
    expect(found(run.put(owned()))).toBe('drain')
  })

  test('does not count if one of several holds may have caused it', () => {
    const run = started({ hold: 'maint' }).look().lose()
    run.put({ type: 'inherit', late: [lateHold('drain')] })
    expect(found(run.put(owned()))).toBe('ready')
  })
})

describe('an inherited hold', () => {
  test('is ours if a state that shows it came after it', () => {
    const run = started({ lateBound: 9_000 }).put({ type: 'inherit', late: [lateHold('drain')] })
    run.set({ own: 'drain' }).look()
    expect(run.state.hold.changes).toMatchObject([{ kind: 'hold', to: 'drain', state: 'applied' }])
    expect(run.state.hold.late).toEqual([])
  })

  test('is ours beside a raise, and may still come', () => {
    const run = started({ hold: 'drain', lateBound: 9_000 })
    run
      .put({ type: 'inherit', late: [lateHold('drain')] })
      .set({ own: 'maint' })
      .look()
    expect(run.state.hold.changes).toMatchObject([{ to: 'drain', state: 'applied' }])
    expect(run.state.hold.late).toMatchObject([{ lackedAt: null }])
  })

  test('is shown by its exact state only, if it was refused', () => {
    const late = [lateHold('drain', { refused: true, until: 990 })]
    const run = started({ lateBound: 9_000 }).put({ type: 'inherit', late })
    run.set({ own: 'drain' }).look()
    expect(run.state.hold.changes).toMatchObject([{ to: 'drain', state: 'intended' }])
  })

  test('is not what a hold of ours has brought since', () => {
    const late = [lateHold('drain')]
    const run = started({ hold: 'maint', lateBound: 9_000 }).look().answer()
    run.put({ type: 'inherit', late }).look()
    expect(run.state.hold.late).toMatchObject([{ change: { to: 'drain' } }])
    expect(run.state.hold.changes).toMatchObject([{ to: 'maint' }])
  })

  test('to another state is not the one under way', () => {
    const run = started({ hold: 'maint', lateBound: 9_000 }).look()
    run
      .put({ type: 'inherit', late: [lateHold('drain')] })
      .set({ own: 'drain' })
      .look()
    expect(run.state.hold.late).toEqual([])
    expect(run.state.hold.changes).toMatchObject([{ to: 'drain', state: 'applied' }])
  })
})

describe('an inherited change beside one that asks for the same', () => {
  /** What a run has of its late changes that inherits these one after the other. */
  function inherited(...late: readonly LateChange[]): readonly LateChange[] {
    const run = started({ lateBound: 9_000 })
    for (const one of late) run.put({ type: 'inherit', late: [one] })
    return run.state.hold.late
  }

  test.each([
    [2_000, 3_000, 3_000],
    [3_000, 2_000, 3_000],
    [null, 2_000, null],
    [2_000, null, null],
  ])('is one with it, until neither can come: %s and %s', (one, other, until) => {
    const late = inherited(
      lateHold('drain', { until: one, lostAt: one ?? 1 }),
      lateHold('drain', { until: other, lostAt: other ?? 1 }),
    )
    const lostAt = Math.max(one ?? 1, other ?? 1)
    expect(late).toEqual([{ ...late[0], until, lostAt, lackedAt: 990, shared: true }])
  })

  test('is one with it where both come at once', () => {
    const run = started({ lateBound: 9_000 })
    run.put({ type: 'inherit', late: [lateHold('drain'), lateHold('drain'), lateHold('drain')] })
    expect(run.state.hold.late).toHaveLength(1)
  })

  test.each([
    [{ lackedAt: 980, before: 'ready' }, { lackedAt: null }],
    [{ lackedAt: null }, { lackedAt: 980, before: 'ready' }],
    [
      { lackedAt: 980, before: 'ready' },
      { lackedAt: 985, before: 'drain' },
    ],
  ] as const)('keeps when the member was seen without: %j and %j', (one, other) => {
    const late = inherited(lateHold('maint', one), lateHold('maint', other))
    expect(late).toMatchObject([{ lackedAt: 980, before: 'ready', shared: true }])
  })

  test('leaves another one alone, and adds no earlier state', () => {
    const [one, undo, other] = [
      lateHold('drain'),
      unanswered(undoOf('maint', 'drain')),
      lateHold('drain'),
    ]
    const late = inherited(one, undo, other)
    expect(late).toStrictEqual([{ ...one, shared: true }, undo])
  })

  test('is the same one if it comes again', () => {
    const one = lateHold('drain')
    expect(inherited(one, one)).toEqual([one])
  })

  test.each([
    ['another state', lateHold('maint')],
    ['another direction', unanswered(undoOf('ready', 'drain'))],
    ['another member of its name', unanswered({ ...undoOf('maint', 'drain'), identity: 'x' })],
    ['half of it, refused', lateHold('drain', { refused: true, until: 990 })],
    ['what came and went', lateHold('drain', { sight: 'gone' })],
    ['a call that goes on', lateHold('drain', { underWay: true })],
  ])('is another one: %s', (_, other) => {
    const all = [lateHold('drain'), unanswered(undoOf('maint', 'drain'))]
    expect(inherited(...all, other)).toEqual([...all, other])
  })

  test('is ours if it shows, and the other may still come', () => {
    const late = [lateHold('drain'), lateHold('drain')]
    const run = started({ lateBound: 1_000 }).put({ type: 'inherit', late })
    run.set({ own: 'drain' }).look()
    expect(run.state.hold.changes).toMatchObject([{ kind: 'hold', to: 'drain', state: 'applied' }])
    expect(run.state.hold.late).toMatchObject([{ lackedAt: null }])
    expect(run.looks(1_200).state.hold.late).toEqual([])
  })
})

describe('an undo that a lost hold leads away from', () => {
  const until = 2_000

  test('has its time again once the member was open', () => {
    const run = held({ lateBound: 90_000 }).look().open({ until }).look().answer().look()
    run.put({ type: 'inherit', late: [lateHold('drain', { lostAt: run.now, lackedAt: run.now })] })
    expect(run.outcome).toBe('restored')
  })

  test('keeps its time if the member was never open', () => {
    const run = started({ lateBound: 90_000 }).look().open({ of: 'anybody', until }).lose()
    run.set({ own: 'drain' }).look()
    expect(run.state.goal).toMatchObject({ until })
  })

  test('has none if it had none', () => {
    const goal = { of: 'anybody' as const, until: null, lateUntil: null }
    const run = started({ lateBound: 90_000 })
      .look()
      .lose()
      .open(goal)
      .look()
      .set({ own: 'drain' })
      .look()
    expect(run.state.goal).toMatchObject({ until: null, reached: null })
    expect(run.look().sent).toBe('restore drain to ready')
  })

  test('has at least half a minute more if the member was open', () => {
    const run = started({ lateBound: 90_000 }).look().lose().open({ of: 'anybody', until }).look()
    run.set({ own: 'drain' }).look()
    expect(run.state.goal).toMatchObject({ reached: null, until: run.now + 30_000 })
  })
})

test('a finished undo continues if another run may have raised', () => {
  const run = started({ own: 'maint', lateBound: 9_000 }).look()
  run.open({ until: 3_000, lateUntil: 5_000 }).lose().look()
  run.put(owned({ late: [lateHold('maint', { lostAt: run.now, lackedAt: run.now })] }))
  expect(run.outcome).toBe(null)
  expect(run.sent).toBe('restore maint to drain')
})
