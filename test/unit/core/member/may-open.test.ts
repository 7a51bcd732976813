import { describe, expect, test } from 'vitest'
import { held, idle, type MemberRun, type RunOptions } from './member-run.js'

/** How long a lost change may still come. */
const LATE = 6_000

/** A member that is held anew while the undo of the claim before it may still come. */
function unsure(options: RunOptions = {}): MemberRun {
  const { timeout, ...others } = options
  const run = held({ ...others, lateBound: LATE })
    .look()
    .open()
    .look()
  expect(run.sent).toBe('restore drain to ready')
  run.lose('not done').lay({ kind: 'drain' }, timeout).looks(400)
  // The member is still drained, and nobody knows for how long: it is held anew.
  expect(run.sentSoFar.at(-1)).toBe('hold drain')
  return run.answer('unchanged')
}

describe('a member that a lost undo of this process may still open', () => {
  test('is not idle before the undo can not come any more', () => {
    const run = unsure().looks(5_000)
    expect([run.phase, run.outcome]).toEqual(['draining', null])
    expect(run.all('idle')).toEqual([])
    expect(run.looks(2_000).outcome).toBe('idle')
  })

  test('makes a drain say what it waits for', () => {
    const run = unsure().looks(3_000)
    expect(run.why[0]).toMatchObject({ code: 'not-in-force' })
    expect(run.why[0]?.text).toContain("the answer to 'restore' was lost")
  })

  test('that it opens is drained anew', () => {
    const run = unsure().looks(3_000).set({ own: 'ready' }).looks(500)
    expect(run.sentSoFar.slice(-2)).toEqual(['hold drain', 'hold drain'])
    expect(run.answer().looks(10_000).outcome).toBe('idle')
  })

  test('has the outcome of the deadline, if that comes first', () => {
    const run = unsure({ timeout: 3_000 }).looks(4_000)
    expect([run.phase, run.outcome]).toEqual(['draining', 'timeout'])
    expect(run.all('idle')).toEqual([])
  })
})

describe('a member found idle that a lost undo may open', () => {
  /** Idle was said before a lost undo became known. */
  function late(options: RunOptions = {}): MemberRun {
    const run = idle({ ...options, lateBound: LATE })
    const change = { kind: 'restore', ref: run.record.ref, expect: 'drain', to: 'ready' } as const
    const undo = { change, lostAt: run.now, until: null, lacked: null }
    run.record = { ...run.record, ledger: { ...run.ledger, late: [undo] } }
    return run
  }

  test('is not idle as the outcome before that is known', () => {
    for (const options of [{}, { timeout: 60_000 }]) {
      const run = late(options).looks(1_000)
      expect([run.phase, run.outcome]).toEqual(['idle', null])
    }
    const run = late().looks(LATE + 200)
    expect(run.outcome).toBe('idle')
    expect([run.all('idle'), run.all('idle-lost')].map((said) => said.length)).toEqual([1, 0])
  })

  test('is not said to be idle at the deadline', () => {
    const run = late({ timeout: 5_000 })
    run.look({ after: run.claim.deadline! - run.now })
    expect([run.phase, run.outcome]).toEqual(['draining', 'timeout'])
    expect(run.all('idle-lost')).toHaveLength(1)
  })

  test('is idle if its call has its outcome', () => {
    const run = late({ timeout: 5_000 }).settle().looks(4_000)
    expect([run.phase, run.outcome]).toEqual(['idle', 'idle'])
  })
})

test('a drain has the outcome of the deadline, even if it is idle after it', () => {
  const run = held({ timeout: 100, scopes: { w1: { active: 1 } } }).looks(300)
  run.scope('w1', { active: 0 }).looks(2_000)
  expect([run.phase, run.outcome]).toEqual(['idle', 'timeout'])
})
