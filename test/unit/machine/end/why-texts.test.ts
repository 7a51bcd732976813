import { openGoal } from 'drainable/machine'
import { describe, expect, test } from 'vitest'
import { failure, held, started, type Figures, type MemberRun } from '../member-run.js'

/** The reasons of a held member, one process of which has these figures. */
function whyOf(figures: Figures): MemberRun['why'] {
  return held({ scopes: { w1: figures } }).look().why
}

describe('the age of work in flight', () => {
  test('is not said if the product does not tell it', () => {
    const [why] = whyOf({ active: 1 })
    expect(why?.text).toBe('1 in flight')
    expect(why).not.toHaveProperty('oldest')
  })

  test('is not said below a second', () => {
    expect(whyOf({ active: 1, oldest: 999 })[0]?.text).toBe('1 in flight')
    expect(whyOf({ active: 1, oldest: 1_000 })[0]?.text).toBe('1 in flight, for 1 s')
  })

  test('is a field from 1 ms on', () => {
    expect(whyOf({ active: 1, oldest: 0 })[0]).not.toHaveProperty('oldest')
    expect(whyOf({ active: 1, oldest: 1 })[0]).toHaveProperty('oldest', 1)
  })

  test('makes it long-lived from a minute on, and says what to do', () => {
    const short = whyOf({ active: 1, oldest: 59_999 })
    expect(short.map(({ code }) => code)).toEqual(['in-flight'])
    expect(short[0]?.hint).toMatch(/^it ends with the requests/)
    const long = whyOf({ active: 1, oldest: 60_000 })
    expect(long.map(({ code }) => code)).toEqual(['in-flight', 'long-lived'])
    expect(long.map(({ hint }) => hint)).toEqual([
      expect.stringMatching(/^long-lived connections end when their clients go/),
      expect.stringMatching(/^long-lived connections end when their clients go/),
    ])
    expect(long[1]?.text).toBe('1 in flight, for 1 m')
  })

  test('is for how long the count stayed the same if no age is told', () => {
    const run = held({ scopes: { w1: { active: 2 } } }).look({ after: 60_000 })
    expect(run.why[1]?.text).toBe('2 in flight, unchanged for 1 m')
  })
})

describe('a process that may still send work', () => {
  test('is waited for if it was replaced', () => {
    const [why] = whyOf({ admin: 'ready', old: true })
    expect(why?.code).toBe('old-scope')
    expect(why?.hint).toContain('hard-stop-after')
    expect(why?.text).toContain('w1 is at ready')
  })

  test('is looked at again if it is current', () => {
    const [why] = whyOf({ admin: 'ready' })
    expect(why).toMatchObject({ code: 'not-in-force' })
    expect(why?.hint).toMatch(/^if this lasts, check that this process/)
  })

  test('is not a matter of time if it says that it did not take the state', () => {
    const [why] = whyOf({ admin: 'ready', old: true, inForce: false })
    expect(why).toMatchObject({ code: 'not-in-force' })
    expect(why?.text).toContain('w1 has not taken the drain')
  })

  test('has not taken the state if it tells none', () => {
    const [why] = whyOf({ old: true, inForce: false })
    expect(why).toMatchObject({ code: 'not-in-force' })
  })

  test('is named by a watch once the member is drained', () => {
    const goal = { kind: 'watch' as const }
    const scopes = { w1: { admin: 'ready' as const } }
    expect(started({ goal, own: 'drain', scopes }).look().codes).toEqual(['not-in-force'])
    expect(started({ goal, own: 'ready', scopes }).look().codes).toEqual([])
  })
})

describe('a change without an answer', () => {
  test('is named with what was answered instead', () => {
    const run = held({ lateBound: 9_000 }).look().open().look().lose()
    expect(run.why[0]?.text).toContain(
      "the answer to 'restore' was lost (the balancer says CALL_TIMEOUT)",
    )
  })

  test('is named with its call going on', () => {
    const run = held({ lateBound: 9_000 }).look().open().look()
    const { change } = run
    const error = failure('CALL_TIMEOUT')
    const result = { ref: run.state.ref, status: 'unknown' as const, error }
    run.put({ type: 'result', change, result, givenUp: true })
    expect(run.state.hold.late).toMatchObject([{ change, underWay: true, until: null }])
    expect(run.why[0]?.text).toContain('for as long as its call goes on')
  })
})

describe('an undo', () => {
  const goal = openGoal({ of: 'anybody', until: null, lateUntil: null })

  test('is explained by an absent member alone', () => {
    const run = started({ goal, own: 'drain' }).look().refuse(failure('REJECTED', true))
    run.vanish().look()
    expect(run.codes).toEqual(['refused', 'unreadable'])
    expect(run.why[1]?.text).toContain('web/web1 is absent in the newest look')
  })

  test('is explained by another member alone', () => {
    const run = started({ goal, own: 'drain' }).look().refuse(failure('REJECTED', true))
    run.set({ identity: '10.0.0.9:80' }).look()
    expect(run.codes).toEqual(['refused', 'unreadable'])
    expect(run.why[1]?.text).toContain('web/web1 is another member in the newest look')
  })
})

describe('the client that set the state', () => {
  const opened = (setBy?: string): MemberRun =>
    held({ onOverrule: 'reapply' })
      .set({ own: 'ready', ...(setBy === undefined ? {} : { setBy }) })
      .look()

  test('is another client if the product names none', () => {
    expect(opened().why[0]?.text).toBe(
      'web/web1 is ready: another client set that state; this drain wants drain',
    )
  })

  test('is what the product names', () => {
    expect(opened('its agent').why[0]?.text).toContain(
      'its agent, or another client set that state',
    )
  })
})

test('hints without a reason of their own have the code in-flight', () => {
  const run = held({ scopes: { w1: { active: 1 } }, present: { hints: ['3 records'] } }).look()
  expect(run.why.map(({ code, text }) => [code, text])).toEqual([
    ['in-flight', '1 in flight'],
    ['in-flight', '3 records'],
  ])
})

test('a process that took the state, and tells none, is not named', () => {
  const run = held({ scopes: { w1: { inForce: true, active: 1 } } }).look()
  expect(run.codes).toEqual(['in-flight'])
})

test('a drain that has not held yet names no process', () => {
  const run = started({ own: 'drain', scopes: { w1: { admin: 'ready' } } }).look()
  expect(run.why.filter(({ scope }) => scope !== undefined)).toEqual([])
})

test('a cut goes out over the state that was read last', () => {
  const scopes = { w1: { active: 2 } }
  const run = held({ onTimeout: 'terminate', timeout: 2_000, scopes }).look({ after: 1_000 })
  run.look({ after: 1_000 })
  expect(run.state.hold.pending).toMatchObject({ change: { kind: 'terminate' }, before: 'drain' })
})

test('numbers from before the hold took effect wait for newer ones', () => {
  const run = held({ freshness: 400 }).look({ stale: 100 })
  expect(run.why[0]?.text).toBe('0 in flight; the next look decides')
})

test('the quiet time left is at least one millisecond', () => {
  expect(held().lookAt(999).why[0]?.text).toContain('another 1 ms')
})

test('a late second sample is due in no time', () => {
  const run = held({ freshness: 400, scopes: { w1: { active: 1 } } }).lookAt(1_500)
  run.scope('w1', { active: 0 }).lookAt(2_000).wait(900)
  expect(run.why[0]?.text).toContain('due in 0 ms')
})
