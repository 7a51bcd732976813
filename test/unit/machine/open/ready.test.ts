import { openGoal, type OpenOptions } from 'drainable/machine'
import { describe, expect, test } from 'vitest'
import { failure, started, type MemberRun, type RunOptions } from '../member-run.js'

/** What `ready()` runs. */
function opening(options: RunOptions = {}, goal: Partial<OpenOptions> = {}): MemberRun {
  const open = openGoal({ of: 'anybody', until: null, lateUntil: null, ...goal })
  return started({ own: 'drain', goal: open, ...options })
}

describe('ready, whoever drained it', () => {
  test('opens a drained member', () => {
    const run = opening().look()
    expect(run.sent).toBe('restore drain to ready')
    expect(run.answer().look().outcome).toBe('restored')
  })

  test('carries no native words of an earlier adapter', () => {
    expect(opening({ present: { native: 1 } }).look().change).not.toHaveProperty('native')
  })

  test('changes nothing on a member that is ready', () => {
    const run = opening({ own: 'ready' }).look()
    expect(run.outcome).toBe('restored')
    expect(run.changes).toEqual([])
  })

  test('waits for a first look', () => {
    expect(opening().fail().sent).toBe(null)
  })

  test('notes the state it found first', () => {
    const run = opening({ own: 'maint' }).look().answer().look()
    expect(run.state.goal).toMatchObject({ wasAdmin: 'maint' })
  })

  test('notes the state it found first, also where it changes nothing', () => {
    const run = opening({ present: { health: 'unknown' } })
      .look()
      .set({ own: 'ready' })
      .look()
    expect(run.state.goal).toMatchObject({ wasAdmin: 'drain' })
  })

  test('counts no look from before its start or from that instant', () => {
    expect(started({ own: 'drain' }).look({ after: 0, asked: 999 }).sent).toBe(null)
    expect(started({ own: 'drain' }).look({ after: 0, asked: 1_000 }).sent).toBe('hold drain')
  })

  test('takes up a run that has not looked yet', () => {
    const run = started({ own: 'drain' }).open({ of: 'anybody' })
    expect(run.state.hold.confirmedAt).toBe(999)
    expect(run.look().sent).toBe('restore drain to ready')
  })

  test('says that a ready member inherits a drain', () => {
    const run = opening({ present: { inherited: 'drain', hints: ['node n1 is disabled'] } }).look()
    run.answer().look()
    expect(run.outcome).toBe('overruled')
    expect(run.state.hold.changes).toHaveLength(1)
    expect(run.error?.message).toContain("inherits 'drain': node n1 is disabled")
  })

  test('says that a ready member inherits maint', () => {
    const run = opening({ own: 'ready', present: { inherited: 'maint' } }).look()
    expect(run.outcome).toBe('overruled')
    expect(run.error?.message).toMatch(/inherits 'maint'$/)
  })

  test('ignores an inherited ready', () => {
    const run = opening({ own: 'ready', present: { inherited: 'ready' } }).look()
    expect(run.outcome).toBe('restored')
  })

  test('gives in to a client that sets it back in the same process', () => {
    const run = opening().look().answer().look({ after: 10 })
    expect(run.outcome).toBe('restored')
    const again = opening({}, { mustBeHealthy: true }).set({ health: 'unknown' })
    again.set({ health: 'up' }).look().answer().set({ health: 'down' }).look()
    again.set({ own: 'drain' }).look()
    expect(again.outcome).toBe('overruled')
  })

  test('gives in to a client that sets it back at once', () => {
    const run = opening().look().answer().set({ own: 'drain' }).look()
    expect(run.outcome).toBe('overruled')
  })

  test('gives in to a client that sets it back after a restart', () => {
    const run = opening({}, { mustBeHealthy: true }).set({ health: 'up' }).look().answer()
    run.set({ health: 'down' }).look().scope('w1', { incarnation: 'w1.2' }).look()
    run.set({ own: 'drain' }).look()
    expect(run.outcome).toBe('overruled')
  })

  test('opens again what another process brought back', () => {
    const run = opening({}, { mustBeHealthy: true }).set({ health: 'up' }).look().answer()
    run.set({ health: 'down' }).look().set({ own: 'drain', health: 'up' })
    run.scope('w1', { incarnation: 'w1.2' }).look()
    expect(run.sent).toBe('restore drain to ready')
  })

  test('sends nothing once it is over', () => {
    const run = opening().look().answer().look().settle()
    run.set({ own: 'drain' }).scope('w1', { incarnation: 'w1.2' }).look()
    expect(run.sent).toBe(null)
  })

  test('gives in after twelve changes', () => {
    const run = opening()
    for (let i = 1; i <= 12; i += 1) {
      run
        .scope('w1', { incarnation: `w1.${i}` })
        .set({ own: 'drain' })
        .look()
      expect(run.sent).toBe('restore drain to ready')
      run.answer()
    }
    run.scope('w1', { incarnation: 'w1.13' }).set({ own: 'drain' }).look()
    expect(run.outcome).toBe('overruled')
    expect(run.sent).toBe(null)
  })

  test('ends as gone for a member that is gone', () => {
    expect(opening().vanish().look().look({ after: 20 }).outcome).toBe('gone')
  })

  test('ends as refused if the balancer refuses for good', () => {
    const run = opening().look().refuse(failure('FORBIDDEN')).look()
    expect(run.outcome).toBe('refused')
  })

  const hold = {
    change: { kind: 'hold' as const, ref: { pool: 'web', member: 'web1' }, to: 'drain' as const },
    lostAt: 900,
    until: null,
    lackedAt: 900,
  }

  test('waits for a late change of ours', () => {
    const run = opening({ own: 'ready', lateBound: 500 }).put({ type: 'inherit', late: [hold] })
    expect(run.look().outcome).toBe(null)
    expect(run.looks(600).outcome).toBe('restored')
  })

  test('opens a late change of ours', () => {
    const run = opening({ own: 'ready', lateBound: 500 }).put({ type: 'inherit', late: [hold] })
    run.look().set({ own: 'drain' }).look().look()
    expect(run.sent).toBe('restore drain to ready')
  })

  test('leaves alone a state that comes after its bound', () => {
    const run = opening({ own: 'ready', lateBound: 300 }, { mustBeHealthy: true })
    run
      .put({ type: 'inherit', late: [hold] })
      .set({ health: 'down' })
      .look()
      .mark()
    run.lookAt(300).set({ own: 'drain' }).look()
    expect(run.outcome).toBe('overruled')
  })
})

describe('waiting for health', () => {
  const healthy = { mustBeHealthy: true }

  test('leaves maint by way of drain', () => {
    const run = opening({ own: 'maint', present: { health: 'up' } }, healthy).look()
    expect(run.sent).toBe('restore maint to drain')
  })

  test('waits under drain for the first check', () => {
    const run = opening({ present: { health: 'unknown' } }, healthy).look()
    expect(run.sent).toBe(null)
    expect(run.set({ health: 'down' }).look().sent).toBe(null)
    expect(run.set({ health: 'up' }).look().sent).toBe('restore drain to ready')
  })

  test('does not wait without health checks', () => {
    expect(opening({}, healthy).look().sent).toBe('restore drain to ready')
  })

  test('is not done while the member is down', () => {
    const run = opening({ own: 'ready', present: { health: 'down' } }, healthy).look()
    expect(run.outcome).toBe(null)
    expect(run.set({ health: 'up' }).look().outcome).toBe('restored')
  })

  test('is not done while its health is unknown', () => {
    const run = opening({ own: 'ready', present: { health: 'unknown' } }, healthy).look()
    expect(run.outcome).toBe(null)
  })

  test('opens a member that is down if health was not asked for', () => {
    const run = opening({ present: { health: 'down' } }).look()
    expect(run.sent).toBe('restore drain to ready')
    expect(run.answer().look().outcome).toBe('restored')
  })

  test('waits for an unknown health even if health was not asked for', () => {
    expect(opening({ present: { health: 'unknown' } }).look().sent).toBe(null)
  })

  test('ends with HEALTH_TIMEOUT when its time is over', () => {
    const run = opening({ present: { health: 'down' } }, { ...healthy, until: 2_000 }).look()
    expect(run.look({ after: 1_999 - run.now }).outcome).toBe(null)
    run.look({ after: 1 })
    expect(run.outcome).toBe('refused')
    expect(run.error?.code).toBe('HEALTH_TIMEOUT')
    expect(run.error?.message).toContain("is 'drain' and no check passed within 1 s (health: down)")
  })

  test('ends with HEALTH_TIMEOUT if it is ready and down', () => {
    const options = { own: 'ready' as const, present: { health: 'down' as const } }
    const run = opening(options, { ...healthy, until: 2_000 })
      .look()
      .look({ after: 1_000 })
    expect(run.error?.code).toBe('HEALTH_TIMEOUT')
  })

  test('ends with HEALTH_TIMEOUT, whatever answer was lost before', () => {
    const run = opening({}, { ...healthy, until: 2_000 })
      .look()
      .lose('done')
    run.set({ health: 'down' }).look().look().look({ after: 1_000 })
    expect(run.error?.code).toBe('HEALTH_TIMEOUT')
  })

  test('ends with CALL_TIMEOUT if nothing was read before its time was over', () => {
    const run = opening({}, { until: 2_000 }).wait(1_000).put({ type: 'inherit', late: [] })
    expect(run.outcome).toBe('refused')
    expect(run.error?.code).toBe('CALL_TIMEOUT')
  })

  test('ends with CALL_TIMEOUT if no look came back', () => {
    const run = opening({}, { until: 2_000 }).wait(1_000)
    run.put({ type: 'overdue', error: failure('CALL_TIMEOUT'), silent: true })
    expect(run.outcome).toBe('unreachable')
    expect(run.error?.code).toBe('CALL_TIMEOUT')
  })
})

describe("the caller's own check", () => {
  const checked = { check: 'due' as const, mustBeHealthy: true }

  function checks(run: MemberRun): number {
    return run.effects.filter((effect) => effect.type === 'check').length
  }

  test('is asked before the member is opened', () => {
    const run = opening({}, checked).look()
    expect(checks(run)).toBe(1)
    expect(run.sent).toBe(null)
    run.put({ type: 'checked', error: null })
    expect(run.sent).toBe('restore drain to ready')
  })

  test('that passes after a failed look waits for the next look', () => {
    const run = opening({}, checked).look().fail().put({ type: 'checked', error: null })
    expect(run.sent).toBe(null)
    expect(run.look().sent).toBe('restore drain to ready')
  })

  test('is asked once', () => {
    const run = opening({}, checked).look().look()
    expect(checks(run)).toBe(0)
  })

  test('ends ready as refused when it fails', () => {
    const no = failure('HEALTH_TIMEOUT')
    const run = opening({}, checked).look().put({ type: 'checked', error: no })
    expect(run.outcome).toBe('refused')
    expect(run.error).toBe(no)
    expect(run.own).toBe('drain')
  })

  test('is asked under drain, out of maint', () => {
    const run = opening({ own: 'maint' }, checked).look()
    expect(checks(run)).toBe(0)
    expect(run.sent).toBe('restore maint to drain')
    expect(checks(run.answer().look())).toBe(1)
  })

  test('is not waited for under drain once it has passed', () => {
    const run = opening({ own: 'maint' }, { ...checked, check: 'passed' }).look()
    expect(run.sent).toBe('restore maint to ready')
  })

  test('is asked about a ready member', () => {
    const run = opening({ own: 'ready' }, checked).look()
    expect(checks(run)).toBe(1)
    expect(run.outcome).toBe(null)
    expect(run.put({ type: 'checked', error: null }).outcome).toBe('restored')
  })

  test('comes after a check of the balancer', () => {
    const run = opening({ present: { health: 'down' } }, checked).look()
    expect(checks(run)).toBe(0)
  })

  test('is not asked under another goal', () => {
    const run = started().look().put({ type: 'checked', error: failure() })
    expect(run.outcome).toBe(null)
  })
})

test('an opening that gives in names who sets it back', () => {
  const goal = openGoal({ of: 'anybody', until: null, lateUntil: null })
  const run = started({ goal, own: 'drain' })
  for (let i = 1; i <= 13 && run.outcome === null; i += 1) {
    run
      .scope('w1', { incarnation: `w1.${i}` })
      .set({ own: 'drain' })
      .look()
    if (run.sent !== null) run.answer()
  }
  expect(run.error?.message).toContain(
    "it is 'drain' again after it was made 'ready': another client",
  )
})
