import { openGoal, type OwnChange } from 'drainable/machine'
import { describe, expect, test } from 'vitest'
import { failure, held, started } from '../member-run.js'

describe('the state that an undo goes back to', () => {
  test('stays maint if our maint was confirmed over an earlier one', () => {
    const run = started({ hold: 'maint', own: 'maint' }).look().answer('applied')
    expect(run.state.found?.own).toBe('maint')
  })

  test('is ready if our drain was applied to a member read as closed', () => {
    const run = started({ own: 'maint' }).look()
    expect(run.sent).toBe('hold drain')
    expect(run.answer('applied').state.found?.own).toBe('ready')
  })

  test('is the drain that was there before our first hold', () => {
    const found = { identity: '10.0.0.1:80', own: 'ready' as const, serves: true, native: null }
    const known = { kind: 'hold' as const, to: 'drain' as const, state: 'unchanged' as const }
    const run = started({ own: 'drain', hold: 'maint' })
    run.put({ type: 'inherit', late: [], owned: { found, changes: [{ ...known, at: 900 }] } })
    expect(run.look().sent).toBe('hold maint')
    expect(run.answer().state.found?.own).toBe('drain')
  })

  test('is not moved by a removal', () => {
    const run = started({ until: 'removed' }).look().answer('unchanged')
    run.set({ own: 'maint' }).look().looks(1_500)
    expect(run.sent ?? run.change.kind).toBe('remove')
    expect(run.answer().state.found?.own).toBe('ready')
  })

  test('is not a state that a lost hold of ours may have caused', () => {
    const run = started({ lateBound: 9_000, hold: 'maint' }).look().lose('not done')
    run.look().lose('not done')
    expect(run.state.found?.own).toBe('ready')
  })
})

describe('a raise at the deadline over an unknown state', () => {
  test('is not a change of ours if the balancer says unchanged', () => {
    const run = held({ timeout: 500, onTimeout: 'terminate', seal: 'gentle' })
    run.scope('w1', { active: 1 }).look().set({ own: 'unknown' }).look({ after: 600 })
    expect(run.sent).toBe('hold maint')
    run.answer('unchanged')
    expect(run.state.hold.changes.at(-1)).toMatchObject({ to: 'maint', state: 'unchanged' })
  })
})

describe('a late change that is explained by its repeat', () => {
  const hold = { kind: 'hold' as const, to: 'drain' as const, ref: { pool: 'web', member: 'web1' } }

  test.each([0, 1])('is not taken for carried out, confirmed %i ms after the loss', (later) => {
    const run = started({ own: 'drain' })
    const entry = { change: hold, lostAt: run.now, until: null, lackedAt: run.now }
    const found = { identity: '10.0.0.1:80', own: 'ready' as const, serves: true, native: null }
    const applied = { kind: 'hold' as const, to: 'drain' as const, state: 'applied' as const }
    const changes = [{ ...applied, at: run.now + later }]
    run.put({ type: 'inherit', late: [entry], owned: { found, changes } }).look()
    expect(run.state.hold.late).toHaveLength(1)
  })
})

test('an undo leaves alone a state before our last, with no known process', () => {
  const found = { identity: '10.0.0.1:80', own: 'ready' as const, serves: true, native: null }
  const changes = [
    { kind: 'hold' as const, to: 'drain' as const, state: 'applied' as const, at: 500 },
    { kind: 'restore' as const, to: 'ready' as const, state: 'applied' as const, at: 600 },
  ]
  const goal = openGoal({ of: 'ours', until: null, lateUntil: null })
  const run = started({ own: 'drain', goal })
  run.put({ type: 'inherit', late: [], owned: { found, changes } }).look()
  expect(run.outcome).toBe('overruled')
  expect(run.error?.code).toBe('CONFLICT')
})

test('an undo that ends while the member is absent says so', () => {
  const run = held().look()
  run
    .open({ until: run.now + 100 })
    .vanish()
    .look({ after: 100 })
  expect(run.outcome).toBe('refused')
  expect(run.error?.code).toBe('CONFLICT')
})

test('a refusal keeps the found state', () => {
  expect(started().look().refuse(failure()).state.found?.own).toBe('ready')
})

describe('a drain that takes over a completed undo', () => {
  const found = { identity: '10.0.0.1:80', own: 'ready' as const, serves: true, native: null }
  const changes: readonly OwnChange[] = [
    { kind: 'hold' as const, to: 'drain' as const, state: 'applied' as const, at: 900 },
    { kind: 'restore' as const, to: 'ready' as const, state: 'applied' as const, at: 950 },
  ]
  const takesOver = (incarnation: string, hold: 'drain' | 'maint' = 'maint', ledger = changes) =>
    started({ own: 'drain', hold }).put({
      type: 'inherit',
      late: [],
      owned: { found, changes: ledger, incarnations: new Map([['w1', incarnation]]) },
    })

  test('returns to what another client set after that', () => {
    expect(takesOver('w1.1').look().answer().state.found?.own).toBe('drain')
  })

  test('returns to before both if another process brought it back', () => {
    expect(takesOver('w1.0').look().answer().state.found?.own).toBe('ready')
  })

  test("keeps another client's state if its own hold changed nothing", () => {
    const run = takesOver('w1.1', 'drain').look().answer('unchanged').look().open().look()
    expect(run.outcome).toBe('overruled')
  })

  test('does not know the owner of a state that was only intended later', () => {
    const intended = { kind: 'hold' as const, to: 'maint' as const, state: 'intended' as const }
    const run = takesOver('w1.1', 'maint', [...changes, { ...intended, at: 960 }])
    run.set({ own: 'maint' }).open().look()
    expect(run.outcome).toBe('overruled')
    expect(run.error?.message).toContain('only intended')
  })
})

describe('a member that another client opens before our hold changed it', () => {
  test('returns to ready, even with a last hold without an answer', () => {
    const run = started({ own: 'drain', onOverrule: 'reapply' }).look().answer('unchanged').look()
    run.set({ own: 'ready' }).look()
    expect(run.all('overruled')).toHaveLength(1)
    expect(run.state.found?.own).toBe('ready')
  })

  test('returns to its earlier state if our hold had changed it before', () => {
    const run = started({ own: 'drain', hold: 'maint', onOverrule: 'reapply' }).look().answer()
    run.look().set({ own: 'ready' }).look()
    expect(run.all('overruled')).toHaveLength(1)
    expect(run.state.found?.own).toBe('drain')
  })
})
