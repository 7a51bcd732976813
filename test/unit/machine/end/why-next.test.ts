import { openGoal } from 'drainable/machine'
import { describe, expect, test } from 'vitest'
import { failure, held, idle, started } from '../member-run.js'

const ABSENT = 'web/web1 is absent in the newest look; a later look decides whether it is gone'

describe('a drain says that it waits for', () => {
  test('the answer to its seal, with a proof that stands', () => {
    const run = held({ seal: 'gentle', settle: 0 }).look().look()
    expect(run.change).toMatchObject({ kind: 'hold', to: 'maint' })
    run.set({ own: 'maint' }).look()
    expect(run.why).toMatchObject([
      { code: 'not-in-force', text: "web/web1: 'hold' has no answer yet" },
    ])
  })

  test('the answer to its removal, while it is idle', () => {
    const run = idle({ until: 'removed' })
    expect(run.sent).toBe('remove')
    expect(run.why).toMatchObject([
      { code: 'not-in-force', text: "web/web1: 'remove' has no answer yet" },
    ])
  })

  test('the answer to a seal, even with its deadline passed', () => {
    const run = held({ seal: 'gentle', settle: 0, timeout: 500 }).look().look()
    run.wait(500).put({ type: 'overdue', error: failure('CALL_TIMEOUT'), silent: false })
    expect(run.outcome).toBe('timeout')
    expect(run.set({ own: 'maint' }).look().codes).toEqual(['not-in-force'])
  })

  test('nothing if its deadline has passed and it is idle', () => {
    const run = held({ timeout: 500, scopes: { w1: { active: 1 } } }).look({ after: 600 })
    run.scope('w1', { active: 0 }).looks(2_000)
    expect([run.outcome, run.phase]).toEqual(['timeout', 'idle'])
    expect(run.why).toEqual([])
  })

  test('a second look at a member that is absent', () => {
    const run = held().look().vanish().look()
    expect(run.why.map(({ text }) => text)).toEqual([ABSENT])
  })

  test('the quiet time of its processes once a member is surely gone', () => {
    const run = held().look().vanish().look().look({ after: 20 })
    expect(run.outcome).toBe(null)
    expect(run.codes).toEqual(['settling'])
    expect(run.why[0]?.scope).toBe('w1')
  })

  test('a second look at another member of the same name', () => {
    const run = held().look().set({ identity: 'another' }).look()
    expect(run.why[0]?.text).toContain('is another member in the newest look')
  })

  test('a first hold that was under way at the deadline', () => {
    const run = started({ timeout: 100 }).look().wait(200)
    run.put({ type: 'overdue', error: failure('CALL_TIMEOUT'), silent: false })
    expect(run.outcome).toBe('timeout')
    expect(run.why.map(({ text }) => text)).toEqual(['web/web1 has not taken the drain yet'])
  })
})

describe('an undo says that it waits for', () => {
  test('a second look if its own change was under way at the absence', () => {
    const goal = openGoal({ of: 'anybody', until: null, lateUntil: null })
    const run = started({ goal, own: 'drain' }).look()
    expect(run.sent).toBe('restore drain to ready')
    run.vanish().look()
    expect(run.why.map(({ text }) => text)).toEqual([ABSENT])
  })

  test('a look asked for after a refused change', () => {
    const run = started().look().refuse(failure('CONFLICT', true)).open()
    expect(run.outcome).toBe(null)
    expect(run.codes).toEqual(['settling'])
  })
})

test('nothing is waited for before the first look', () => {
  expect(started().why).toEqual([])
})

test('a watch of a serving member waits for nothing', () => {
  expect(started({ goal: { kind: 'watch' } }).look().why).toEqual([])
})

describe('a drain that ended by time says', () => {
  test.each(['fail', 'proceed'] as const)('what it waited for, under onTimeout %s', (onTimeout) => {
    const run = started({ timeout: 100, onTimeout }).look().wait(200)
    run.put({ type: 'overdue', error: failure('CALL_TIMEOUT'), silent: false })
    expect(run.codes).toEqual(['not-in-force'])
  })

  test('what it waited for if the balancer was silent', () => {
    const run = started({ timeout: 100 }).look().wait(200)
    run.put({ type: 'overdue', error: failure('CALL_TIMEOUT'), silent: true })
    expect([run.outcome, ...run.codes]).toEqual(['unreachable', 'not-in-force'])
  })

  test('that its member was absent', () => {
    const run = started({ timeout: 5 }).scope('w1', { state: 'ended' }).vanish().look()
    run.look({ after: 40 })
    expect(run.outcome).toBe('timeout')
    expect(run.why.map(({ text }) => text)).toContain(ABSENT)
  })
})

test('an overruled drain does not report a later absence', () => {
  const run = held().set({ own: 'ready' }).look()
  expect(run.outcome).toBe('overruled')
  expect(
    run
      .vanish()
      .look()
      .why.filter(({ text }) => text === ABSENT),
  ).toEqual([])
})

test('a drain whose member is gone waits for nothing', () => {
  const run = held().scope('w1', { state: 'ended' }).vanish().look().look({ after: 20 })
  expect(run.outcome).toBe('gone')
  expect(run.why).toEqual([])
})
