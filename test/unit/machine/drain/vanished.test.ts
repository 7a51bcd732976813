import { describe, expect, test } from 'vitest'
import { held, idle, started } from '../member-run.js'

describe('a member that is absent', () => {
  test('once is not gone', () => {
    const run = held().vanish().look()
    expect(run.outcome).toBe(null)
    expect(run.said).toEqual([])
  })

  test('in a second look 19 ms later is not gone', () => {
    expect(held().vanish().look().look({ after: 19 }).outcome).toBe(null)
  })

  test('in a second look 20 ms later is gone', () => {
    const run = held().scope('w1', { state: 'ended' }).vanish().look().look({ after: 20 })
    expect(run.outcome).toBe('gone')
    expect(run.said).toEqual(['phase', 'removed'])
    expect(run.phase).toBe('removed')
    expect(run.error?.code).toBe('MEMBER_GONE')
  })

  test('is gone after freshness if that is longer', () => {
    const run = held({ freshness: 300 }).scope('w1', { state: 'ended' }).vanish().look()
    expect(run.look({ after: 299 }).outcome).toBe(null)
    expect(run.look({ after: 1 }).outcome).toBe('gone')
  })

  test('counts from when the first look was asked for', () => {
    const run = held().scope('w1', { state: 'ended' }).vanish().look({ took: 15 })
    expect(run.look({ after: 5 }).outcome).toBe('gone')
  })

  test('and comes back starts a new absence', () => {
    const run = held().vanish().look().set({}).look({ after: 20 }).vanish().look({ after: 20 })
    expect(run.outcome).toBe(null)
    expect(run.state.vanished?.since).toBe(run.now)
  })

  test('twice with a look at itself in between is not gone', () => {
    const run = started({ scopes: { w1: { state: 'ended' } } })
      .look()
      .lose('done')
    run.vanish().look().set({}).look({ after: 20 })
    expect(run.state.hold.late).toEqual([])
    expect(run.vanish().look({ after: 20 }).outcome).toBe(null)
  })

  test('once gets no change', () => {
    const run = held().set({ own: 'ready' }).vanish().look()
    expect(run.sent).toBe(null)
  })

  test('is not gone by a look from before our change was confirmed', () => {
    const run = held().vanish()
    run.look({ asked: run.origin - 30, after: 30 }).look({ asked: run.origin - 1 })
    expect(run.state.vanished).toBe(null)
  })

  test('keeps its end at the deadline, even with an idle said after it', () => {
    const run = held({ timeout: 500, scopes: { w1: { active: 1 } } }).look({ after: 600 })
    expect(run.outcome).toBe('timeout')
    run.scope('w1', { active: 0 }).looks(2_000)
    expect(run.phase).toBe('idle')
    run.vanish().look().look({ after: 20 })
    expect(run.phase).toBe('removed')
    expect(run.outcome).toBe('timeout')
    expect(run.state.ending.holding).toBe(false)
  })

  test('waits while an old process works for it', () => {
    const run = held({ scopes: { w1: { active: 1 } } })
      .vanish()
      .looks(5_000)
    expect(run.outcome).toBe(null)
    expect(run.scope('w1', { active: 0 }).looks(200).outcome).toBe('gone')
  })

  test('is gone with the processes that ended', () => {
    const run = held({ scopes: { w1: { active: 1 } } })
      .vanish()
      .looks(200)
    expect(run.scope('w1', { state: 'ended' }).look().outcome).toBe('gone')
    expect(run.state.proof.lost).toMatchObject([{ scope: 'w1', active: 1 }])
  })

  test('that was idle keeps its proof', () => {
    const run = idle().vanish().look().look({ after: 20 })
    expect(run.phase).toBe('removed')
    expect(run.state.proof.proof).not.toBe(null)
  })

  test('that was not idle has no proof', () => {
    const run = held().scope('w1', { state: 'ended' }).vanish().look().look({ after: 20 })
    expect(run.state.proof.proof).toBe(null)
  })

  test('is noted as absent since that look was asked for', () => {
    const run = held().vanish().look()
    expect(run.state.vanished).toEqual({ identity: null, since: run.now })
  })

  test('at the first look and present at the next is drained', () => {
    const run = started().vanish().look().set({}).look()
    expect(run.sent).toBe('hold drain')
    expect(run.all('in-force')).toEqual([])
  })

  test('that was never held is gone, whatever a process holds for it', () => {
    const run = started({ scopes: { w1: { active: 1 } } })
      .vanish()
      .look()
      .look({ after: 20 })
    expect(run.outcome).toBe('gone')
  })

  test('without any process listed is gone', () => {
    const run = started().unlist('w1').hold().vanish().look().look({ after: 20 })
    expect(run.outcome).toBe('gone')
  })

  test('after the deadline, with an old process busy, keeps its outcome', () => {
    const run = held({ timeout: 500, scopes: { w1: { active: 1 } } })
      .vanish()
      .looks(1_000)
    expect(run.outcome).toBe('timeout')
    expect(run.phase).toBe('removed')
  })

  test('that was idle, in a run that has not settled, is gone', () => {
    expect(idle().vanish().look().look({ after: 20 }).outcome).toBe('gone')
  })

  test('once, while idle, is not idle as the outcome yet', () => {
    const run = idle().vanish().look()
    expect([run.outcome, run.phase]).toEqual([null, 'idle'])
    expect(run.set({}).look().outcome).toBe('idle')
    expect(run.said).toEqual([])
  })

  test('once at the deadline, while idle, is idle as it was proved', () => {
    const run = idle({ timeout: 5_000 })
    expect(run.vanish().look({ after: 5_000 }).outcome).toBe('idle')
  })

  test('once, while idle in a settled run, is ignored', () => {
    expect(idle().settle().vanish().look().outcome).toBe('idle')
  })

  test('while idle in a settled run stays idle as the outcome', () => {
    const run = idle().settle().vanish().look().look({ after: 20 })
    expect(run.outcome).toBe('idle')
    expect(run.phase).toBe('removed')
  })

  test('is reported as removed by another client', () => {
    const run = held().scope('w1', { state: 'ended' }).vanish().look().look({ after: 20 })
    expect(run.error?.message).toContain('not in the pool any more')
  })

  test('from the start is gone', () => {
    const run = started().unlist('w1').vanish().look().look({ after: 20 })
    expect(run.outcome).toBe('gone')
    expect(run.changes).toEqual([])
  })

  test('ends at the deadline while an old process is busy for it', () => {
    const run = held({ timeout: 2_000, scopes: { w1: { active: 1 } } })
      .vanish()
      .looks(3_000)
    expect(run.outcome).toBe('timeout')
  })

  test('stays gone after that', () => {
    const run = held().scope('w1', { state: 'ended' }).vanish().look().look({ after: 20 })
    run.set({ own: 'ready' }).scope('w1', { state: 'read' }).looks(5_000)
    expect(run.phase).toBe('removed')
    expect(run.sentSoFar).toEqual(['hold drain'])
  })
})

describe('a member with another identity', () => {
  const other = { identity: '10.0.0.2:80' }

  test('once is not another member', () => {
    expect(held().set(other).look().outcome).toBe(null)
  })

  test('in a second look is another member and left alone', () => {
    const run = held()
      .set({ ...other, own: 'ready' })
      .look()
      .look({ after: 20 })
    expect(run.outcome).toBe('gone')
    expect(run.error?.message).toContain('another member now')
    expect(run.error?.message).not.toContain('ready()')
    expect(run.sentSoFar).toEqual(['hold drain'])
  })

  test.each(['drain', 'maint'] as const)('that is in %s is said to be held', (own) => {
    const run = held()
      .set({ ...other, own })
      .look()
      .look({ after: 20 })
    expect(run.error?.message).toMatch(
      new RegExp(`left alone, in ${own}: open it with ready\\(\\)`),
    )
  })

  test('in a second look with a third identity is in doubt', () => {
    const run = held().set(other).look().set({ identity: '10.0.0.3:80' }).look({ after: 20 })
    expect(run.outcome).toBe(null)
  })

  test('after an absent look is in doubt', () => {
    const run = held().vanish().look().set(other).look({ after: 20 })
    expect(run.outcome).toBe(null)
  })

  test('once gets no change', () => {
    const run = held()
      .look()
      .set({ ...other, own: 'ready' })
      .scope('w1', { incarnation: 'x' })
      .look()
    expect(run.sent).toBe(null)
  })

  test('once is not called idle', () => {
    expect(held().lookAt(500).set(other).lookAt(1_000).phase).toBe('draining')
  })

  test('once at the deadline, while idle, is not said to be idle', () => {
    const run = idle({ timeout: 5_000 }).set(other).look({ after: 5_000 })
    expect([run.outcome, run.phase]).toEqual(['timeout', 'draining'])
    expect(run.all('idle-lost')).toHaveLength(1)
  })

  test('once, while idle in a settled run, is ignored', () => {
    expect(idle({ timeout: 5_000 }).settle().set(other).look({ after: 5_000 }).outcome).toBe('idle')
  })

  test('that is itself again continues', () => {
    const run = held().set(other).look().set({ identity: '10.0.0.1:80' }).looks(2_000)
    expect(run.phase).toBe('idle')
  })

  test('ends at the deadline if it is in doubt', () => {
    const run = held({ timeout: 500, freshness: 5_000 }).vanish().looks(1_000)
    expect(run.outcome).toBe('timeout')
  })
})

describe('an undo that runs out of time in doubt', () => {
  const undoing = { freshness: 5_000 }

  test('says that the member was absent', () => {
    const run = held(undoing).open({ until: 1_500 }).vanish().looks(1_000)
    expect(run.outcome).toBe('refused')
    expect(run.error).toMatchObject({ code: 'CONFLICT' })
    expect(run.error?.message).toContain('absent')
    expect(run.error?.message).not.toContain('contradicts')
  })

  test('says that another member was there', () => {
    const run = held(undoing).open({ until: 1_500 }).set({ identity: '10.0.0.2:80' }).looks(1_000)
    expect(run.error).toMatchObject({ code: 'CONFLICT' })
    expect(run.error?.message).toContain('another member')
  })

  test('says so in why() before that', () => {
    const run = held(undoing).open().vanish().look()
    expect(run.why).toMatchObject([{ code: 'unreadable' }])
    expect(run.why[0]?.text).toContain('is absent')
  })
})

describe('a product that counts nothing for an absent member', () => {
  const uncounted = { countsAfterRemove: false, scopes: { w1: { active: 2 } } }

  test('ends all processes with it, and what they held is lost', () => {
    const run = held(uncounted).unlist('w1').vanish().look().look({ after: 20 })
    expect(run.outcome).toBe('gone')
    expect(run.state.proof.ended).toBe(1)
    expect(run.state.proof.scopes.size).toBe(0)
    expect(run.state.proof.lost).toMatchObject([{ scope: 'w1', active: 2 }])
    expect(run.state.proof.lost[0]?.at).toBe(run.iso(run.now))
  })

  test('does not end them at the first look', () => {
    const run = held(uncounted).unlist('w1').vanish().look()
    expect(run.state.proof.scopes.size).toBe(1)
    expect(run.state.proof.lost).toEqual([])
  })

  test('does not end those that are listed', () => {
    const run = held(uncounted).vanish().look().look({ after: 20 })
    expect(run.outcome).toBe(null)
  })

  test('does not end them if counts continue after a removal', () => {
    const run = held({ ...uncounted, countsAfterRemove: true })
      .unlist('w1')
      .vanish()
    expect(run.look().look({ after: 20 }).outcome).toBe(null)
  })
})
