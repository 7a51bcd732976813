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

  test('is gone after freshness, where that is longer', () => {
    const run = held({ freshness: 300 }).scope('w1', { state: 'ended' }).vanish().look()
    expect(run.look({ after: 299 }).outcome).toBe(null)
    expect(run.look({ after: 1 }).outcome).toBe('gone')
  })

  test('counts from when the first look was asked for', () => {
    const run = held().scope('w1', { state: 'ended' }).vanish().look({ took: 15 })
    expect(run.look({ after: 5 }).outcome).toBe('gone')
  })

  test('and comes back begins to be absent anew', () => {
    const run = held().vanish().look().set({}).look({ after: 20 }).vanish().look({ after: 20 })
    expect(run.outcome).toBe(null)
    expect(run.state.vanished?.since).toBe(run.now)
  })

  test('twice with itself in between is not gone, whatever that look was for', () => {
    const run = started({ scopes: { w1: { state: 'ended' } } })
      .look()
      .lose('done')
    run.vanish().look().set({}).look({ after: 20 })
    expect(run.state.hold.late).toEqual([])
    expect(run.vanish().look({ after: 20 }).outcome).toBe(null)
  })

  test('for the moment gets no change', () => {
    const run = held().set({ own: 'ready' }).vanish().look()
    expect(run.sent).toBe(null)
  })

  test('is not gone by a look from before our change was confirmed', () => {
    const run = held().vanish()
    run.look({ asked: run.origin - 30, after: 30 }).look({ asked: run.origin - 1 })
    expect(run.state.vanished).toBe(null)
  })

  test('leaves the end at the deadline as it is, also where idle was said after it', () => {
    const run = held({ timeout: 500, scopes: { w1: { active: 1 } } }).look({ after: 600 })
    expect(run.outcome).toBe('timeout')
    run.scope('w1', { active: 0 }).looks(2_000)
    expect(run.phase).toBe('idle')
    run.vanish().look().look({ after: 20 })
    expect(run.phase).toBe('removed')
    expect(run.outcome).toBe('timeout')
    expect(run.state.ending.holding).toBe(false)
  })

  test('waits while an old process is busy for it', () => {
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

  test('is remembered as absent since that look was asked for', () => {
    const run = held().vanish().look()
    expect(run.state.vanished).toEqual({ identity: null, since: run.now })
  })

  test('at the first look, and there at the next, is drained', () => {
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

  test('for which no process was ever listed is gone', () => {
    const run = started().unlist('w1').hold().vanish().look().look({ after: 20 })
    expect(run.outcome).toBe('gone')
  })

  test('after the deadline, with an old process still busy, keeps its outcome', () => {
    const run = held({ timeout: 500, scopes: { w1: { active: 1 } } })
      .vanish()
      .looks(1_000)
    expect(run.outcome).toBe('timeout')
    expect(run.phase).toBe('removed')
  })

  test('that was idle, in a run that has not settled, is gone', () => {
    expect(idle().vanish().look().look({ after: 20 }).outcome).toBe('gone')
  })

  test('once, and was idle, is not idle as the outcome yet', () => {
    const run = idle().vanish().look()
    expect([run.outcome, run.phase]).toEqual([null, 'idle'])
    expect(run.set({}).look().outcome).toBe('idle')
    expect(run.said).toEqual([])
  })

  test('once at the deadline, and was idle, is idle as it was proved', () => {
    const run = idle({ timeout: 5_000 })
    expect(run.vanish().look({ after: 5_000 }).outcome).toBe('idle')
  })

  test('once, and was idle, in a run that has settled, is no news', () => {
    expect(idle().settle().vanish().look().outcome).toBe('idle')
  })

  test('that was idle, in a run that has settled, stays idle as the outcome', () => {
    const run = idle().settle().vanish().look().look({ after: 20 })
    expect(run.outcome).toBe('idle')
    expect(run.phase).toBe('removed')
  })

  test('is said to be removed by another client', () => {
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

  test('stays where it is after that', () => {
    const run = held().scope('w1', { state: 'ended' }).vanish().look().look({ after: 20 })
    run.set({ own: 'ready' }).scope('w1', { state: 'read' }).looks(5_000)
    expect(run.phase).toBe('removed')
    expect(run.sentSoFar).toEqual(['hold drain'])
  })
})

describe('a member with another identity', () => {
  const other = { identity: '10.0.0.2:80' }

  test('once is not another one', () => {
    expect(held().set(other).look().outcome).toBe(null)
  })

  test('in a second look is another one, and is left alone', () => {
    const run = held()
      .set({ ...other, own: 'ready' })
      .look()
      .look({ after: 20 })
    expect(run.outcome).toBe('gone')
    expect(run.error?.message).toContain('another member now')
    expect(run.sentSoFar).toEqual(['hold drain'])
  })

  test('in a second look with a third identity is not sure', () => {
    const run = held().set(other).look().set({ identity: '10.0.0.3:80' }).look({ after: 20 })
    expect(run.outcome).toBe(null)
  })

  test('after an absent look is not sure', () => {
    const run = held().vanish().look().set(other).look({ after: 20 })
    expect(run.outcome).toBe(null)
  })

  test('gets no change for the moment', () => {
    const run = held()
      .look()
      .set({ ...other, own: 'ready' })
      .scope('w1', { incarnation: 'x' })
      .look()
    expect(run.sent).toBe(null)
  })

  test('is not called idle for the moment', () => {
    expect(held().lookAt(500).set(other).lookAt(1_000).phase).toBe('draining')
  })

  test('once at the deadline, and was idle, is not said to be idle', () => {
    const run = idle({ timeout: 5_000 }).set(other).look({ after: 5_000 })
    expect([run.outcome, run.phase]).toEqual(['timeout', 'draining'])
    expect(run.all('idle-lost')).toHaveLength(1)
  })

  test('once, and was idle, in a run that has settled, is no news', () => {
    expect(idle({ timeout: 5_000 }).settle().set(other).look({ after: 5_000 }).outcome).toBe('idle')
  })

  test('that is itself again goes on', () => {
    const run = held().set(other).look().set({ identity: '10.0.0.1:80' }).looks(2_000)
    expect(run.phase).toBe('idle')
  })

  test('ends at the deadline, where it is not certain', () => {
    const run = held({ timeout: 500, freshness: 5_000 }).vanish().looks(1_000)
    expect(run.outcome).toBe('timeout')
  })
})

describe('an undo that runs out of time where it is not certain', () => {
  const undoing = { freshness: 5_000 }

  test('says that the member was absent', () => {
    const run = held(undoing).open({ until: 1_500 }).vanish().looks(1_000)
    expect(run.outcome).toBe('refused')
    expect(run.error).toMatchObject({ code: 'CONFLICT' })
    expect(run.error?.message).toContain('absent')
    expect(run.error?.message).not.toContain('contradicts')
  })

  test('says that it was another member', () => {
    const run = held(undoing).open({ until: 1_500 }).set({ identity: '10.0.0.2:80' }).looks(1_000)
    expect(run.error).toMatchObject({ code: 'CONFLICT' })
    expect(run.error?.message).toContain('another member')
  })

  test('says so in why() before', () => {
    const run = held(undoing).open().vanish().look()
    expect(run.why).toMatchObject([{ code: 'unreadable' }])
    expect(run.why[0]?.text).toContain('is absent')
  })
})

describe('a product that counts nothing for a member that is gone', () => {
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

  test('does not end them where counts go on after a removal', () => {
    const run = held({ ...uncounted, countsAfterRemove: true })
      .unlist('w1')
      .vanish()
    expect(run.look().look({ after: 20 }).outcome).toBe(null)
  })
})
