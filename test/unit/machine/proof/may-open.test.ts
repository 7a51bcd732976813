import { describe, expect, test } from 'vitest'
import { held, idle, type MemberRun } from '../member-run.js'

const opening = { mayOpen: true }

/** A look every 100 ms, for that long, while another run of this process may open the member. */
function unsure(run: MemberRun, ms: number): MemberRun {
  const until = run.now + ms
  while (run.now < until) run.look({ after: 100, ...opening })
  return run
}

describe('a member that an undo of another run of this process may open', () => {
  test('is not idle before the outcome of the undo is known', () => {
    const run = unsure(held(), 5_000)
    expect([run.phase, run.outcome]).toEqual(['draining', null])
    expect(run.look().phase).toBe('idle')
  })

  test('makes a drain say what it waits for', () => {
    const run = unsure(held(), 5_000)
    expect(run.why[0]).toMatchObject({ code: 'not-in-force' })
    expect(run.why[0]?.text).toContain('another call of this process is opening it')
    expect(
      unsure(held().open(), 200)
        .why.map(({ text }) => text)
        .join(),
    ).not.toContain('another call')
    expect(
      held()
        .look()
        .why.map(({ text }) => text)
        .join(),
    ).not.toContain('another call')
  })

  test('while idle is not idle as the outcome before that', () => {
    for (const options of [{}, { timeout: 60_000 }]) {
      const run = unsure(idle(options), 1_000)
      expect([run.phase, run.outcome]).toEqual(['idle', null])
    }
    const run = unsure(idle(), 1_000)
    expect(run.look().outcome).toBe('idle')
    expect([run.all('idle'), run.all('idle-lost')].map((said) => said.length)).toEqual([1, 0])
  })

  test('while idle is not said to be idle at the deadline', () => {
    const run = idle({ timeout: 5_000 })
    run.look({ after: run.state.deadline! - run.now, ...opening })
    expect([run.phase, run.outcome]).toEqual(['draining', 'timeout'])
    expect(run.all('idle-lost')).toHaveLength(1)
  })

  test('is idle if its run has its outcome', () => {
    const run = unsure(idle({ timeout: 5_000 }).settle(), 6_000)
    expect([run.phase, run.outcome]).toEqual(['idle', 'idle'])
  })

  test('has the outcome of the deadline, even if it is idle after it', () => {
    const run = held({ timeout: 100, scopes: { w1: { active: 1 } } }).looks(300)
    run.scope('w1', { active: 0 }).looks(2_000)
    expect([run.phase, unsure(run, 500).outcome]).toEqual(['idle', 'timeout'])
  })
})
