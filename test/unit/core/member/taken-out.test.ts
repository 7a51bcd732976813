import { describe, expect, test } from 'vitest'
import { started, type MemberRun } from './member-run.js'

/** Another provider object of the balancer. */
const OTHER = 2

/** Idle, and to be removed once the lost first hold can't come any more. */
function waiting(): MemberRun {
  const run = started({ until: 'removed', settle: 0, lateBound: 3_000 }).look().lose().idle()
  expect(run.ledger.late).toHaveLength(1)
  return run
}

describe('a removal that waits for a lost change', () => {
  test('is sent by a look of its own object', () => {
    expect(waiting().look({ after: 4_000 }).sent).toBe('remove')
  })

  test('is not sent by a look of another object', () => {
    const run = waiting().scope('w1', { active: 1, arrivals: 101 })
    run.look({ after: 4_000, view: OTHER })
    expect(run.ledger.late).toEqual([])
    expect(run.sent).toBeNull()
    expect(run.look().phase).toBe('draining')
  })
})

describe('an undo of a member that is gone', () => {
  const late = (): MemberRun =>
    started({ scopes: { w1: { active: 1 } }, timeout: 1_000 })
      .hold()
      .looks(1_500)

  test('says that another one has its name, in the state of our hold', () => {
    const run = late().set({ identity: '10.9.9.9:80' }).look().look({ after: 20 }).open()
    expect(run.outcome).toBe('gone')
    expect(run.error?.message).toContain('is another member now')
    expect(run.error?.message).toContain('in drain: open it with ready()')
  })

  test('says that there is nothing to open where nothing has its name', () => {
    const run = late().scope('w1', { active: 0 }).vanish().looks(2_500).open()
    expect(run.error?.message).toContain('there is nothing to open')
  })
})
