import { describe, expect, test } from 'vitest'
import { failure, held, started, type MemberRun, type RunOptions } from '../member-run.js'

/** A run that holds a busy member, ten seconds before its deadline. */
function busy(options: RunOptions = {}): MemberRun {
  return held({ timeout: 10_000, scopes: { w1: { active: 2 } }, ...options }).look()
}

/** The first look after its deadline. */
function past(options: RunOptions = {}): MemberRun {
  const run = busy(options)
  return run.look({ after: 11_000 - run.now })
}

describe('onTimeout terminate', () => {
  const cut: RunOptions = { onTimeout: 'terminate' }

  test('cuts what is left', () => {
    const run = past(cut)
    expect(run.sent).toBe('terminate')
    expect(run.change.identity).toBe('10.0.0.1:80')
    expect(run.outcome).toBe(null)
  })

  test('counts and says what was cut', () => {
    const run = past(cut).answer('applied', { terminated: 2 })
    expect(run.all('terminated')).toMatchObject([{ count: 2 }])
    expect(run.state.ending.terminated).toBe(2)
    expect(run.state.ending.terminatedAtMost).toBe(false)
  })

  test('says that its number is an upper bound', () => {
    const run = past(cut).answer('applied', { terminated: 2, atMost: true })
    expect(run.state.ending.terminatedAtMost).toBe(true)
  })

  test('says nothing if nothing was cut', () => {
    expect(past(cut).answer('applied', { terminated: 0 }).said).toEqual([])
    expect(past(cut).answer('unchanged').said).toEqual([])
  })

  test('adds up the work of several cuts', () => {
    const run = past(cut).answer('applied', { terminated: 2, atMost: true }).look({ after: 100 })
    run.answer('applied', { terminated: 1 })
    expect(run.state.ending.terminated).toBe(3)
    expect(run.state.ending.terminatedAtMost).toBe(true)
  })

  test('cuts again after 100 ms what is still there', () => {
    const run = past(cut).answer()
    expect(run.look({ after: 99 }).sent).toBe(null)
    expect(run.look({ after: 1 }).sent).toBe('terminate')
  })

  test('cuts queued work too', () => {
    expect(past({ ...cut, scopes: { w1: { queued: 1 } } }).sent).toBe('terminate')
  })

  test('ends as terminated once the counts show it', () => {
    const run = past(cut).answer('applied', { terminated: 2 }).scope('w1', { active: 0 })
    run.looks(500)
    expect(run.outcome).toBe('terminated')
    expect(run.phase).toBe('idle')
  })

  test('ends as idle if nothing had to be cut', () => {
    const run = past(cut).answer('applied', { terminated: 0 }).scope('w1', { active: 0 })
    expect(run.looks(500).outcome).toBe('idle')
  })

  test('sends nothing if nothing is left', () => {
    const run = held({ ...cut, timeout: 1_000, settle: 3_000 }).look({ after: 1_500 })
    expect(run.sent).toBe(null)
    expect(run.outcome).toBe(null)
  })

  test('ends as timeout if the counts never show it', () => {
    const run = past(cut)
    for (let i = 0; i < 100 && run.outcome === null; i += 1) {
      if (run.state.hold.pending !== null) run.answer()
      run.look({ after: 100 })
    }
    expect(run.outcome).toBe('timeout')
    expect(run.sent).toBe(null)
    expect(run.now).toBe(11_000 + 5_000 + 1_000)
  })

  test('waits as long as the rule and the age of counts need', () => {
    const run = past({ ...cut, settle: 500, blind: 700, freshness: 300 })
    expect(run.state.ending.terminateUntil).toBe(11_000 + 5_000 + 700 + 600)
  })

  test('ends as terminated if nothing is left, though the proof is not whole', () => {
    const run = past(cut).answer('applied', { terminated: 2 })
    run.scope('w1', { active: 0, inForce: false }).look().look({ after: 6_000 })
    expect(run.outcome).toBe('terminated')
  })

  test('ends as timeout if a process can not be read', () => {
    const run = past(cut).answer('applied', { terminated: 2 })
    run.scope('w1', { active: 0, state: 'unread' }).look().look({ after: 6_000 })
    expect(run.outcome).toBe('timeout')
  })

  test('ends as timeout if the member is absent', () => {
    const run = past(cut).answer('applied', { terminated: 2 }).vanish()
    run.scope('w1', { active: 0, inForce: false }).looks(7_000)
    expect(run.outcome).toBe('timeout')
  })

  test('is not repeated while its answer is missing', () => {
    const run = past({ ...cut, lateBound: 700 }).lose()
    expect(run.looks(600).changes.at(-1)).toBe(run.changes.at(-1))
    expect(run.sentSoFar.filter((sent) => sent === 'terminate')).toHaveLength(1)
    expect(run.looks(400).sentSoFar.filter((sent) => sent === 'terminate')).toHaveLength(2)
  })

  test('refused for good ends as timeout with its error', () => {
    const no = failure('FORBIDDEN')
    const run = past(cut).refuse(no).look({ after: 300 })
    expect(run.outcome).toBe('timeout')
    expect(run.error).toBe(no)
    expect(run.sent).toBe(null)
  })

  test('refused to the last ends as timeout with its error', () => {
    const later = failure('CONFLICT', true)
    const run = past(cut).refuse(later)
    while (run.outcome === null && run.now < 30_000) {
      run.look({ after: 500 })
      if (run.sent !== null) run.refuse(later)
    }
    expect(run.outcome).toBe('timeout')
    expect(run.error).toBe(later)
  })

  test('refused has no error if the work ended by itself', () => {
    const run = past(cut).refuse(failure('CONFLICT', true))
    run.scope('w1', { active: 0, inForce: false }).look({ after: 6_000 })
    expect(run.outcome).toBe('terminated')
    expect(run.error).toBe(null)
  })

  test('ends as timeout if one of two processes can not be read', () => {
    const scopes = { w1: { active: 1 }, w2: { inForce: false } }
    const run = past({ ...cut, scopes }).answer('applied', { terminated: 1 })
    run.scope('w1', { active: 0, state: 'unread' }).look({ after: 6_000 })
    expect(run.outcome).toBe('timeout')
  })

  test('neither raises nor cuts an absent member, and waits for its work', () => {
    const run = busy({ ...cut, seal: 'gentle' })
      .vanish()
      .look()
    expect(run.look({ after: 11_000 - run.now }).sent).toBeNull()
    expect(run.outcome).toBeNull()
    expect(run.look({ after: 6_000 }).outcome).toBe('timeout')
  })

  test('does not raise an idle member that waits for its removal', () => {
    const removal = { seal: 'gentle', maint: 'cuts', until: 'removed' } as const
    const run = held({ ...cut, ...removal, settle: 0, timeout: 10_000 })
      .look()
      .look()
    expect(run.sent).toBe('remove')
    run.look({ after: 10_990 - run.now }).refuse(failure('CONFLICT', true))
    run.look({ after: 20 })
    expect(run.state.phase).toBe('idle')
    expect(run.state.proof.verdict).not.toBeNull()
    expect(run.look({ after: 300 }).sent).toBe('remove')
  })

  test('refused for now is tried again', () => {
    const run = past(cut).refuse(failure('CONFLICT', true))
    expect(run.look({ after: 250 }).sent).toBe('terminate')
  })

  test('cuts nothing without a hold', () => {
    const run = started({ ...cut, timeout: 500 })
      .look()
      .refuse(failure('CONFLICT', true))
    run.look({ after: 600 })
    expect(run.sentSoFar).not.toContain('terminate')
  })

  test('cuts nothing after a failed look', () => {
    const run = busy(cut)
    run.fail(failure(), 11_000 - run.now)
    expect(run.sent).toBe(null)
    expect(run.outcome).toBe('unreachable')
  })

  test('raises to maint first if a seal is wished', () => {
    const run = past({ ...cut, seal: 'gentle' })
    expect(run.sent).toBe('hold maint')
    expect(run.answer().look().sent).toBe('terminate')
  })

  test('raises to maint if the product can not cut', () => {
    const run = past({ ...cut, terminate: false, maint: 'cuts' })
    expect(run.sent).toBe('hold maint')
    run.answer()
    expect(run.all('terminated')).toMatchObject([{ count: 2 }])
    expect(run.state.ending.terminatedAtMost).toBe(true)
    expect(run.look().sent).toBe(null)
  })

  test('does not raise a member in maint', () => {
    const run = past({ ...cut, seal: 'gentle', own: 'maint' })
    expect(run.sent).toBe('terminate')
  })

  test('that raises to a maint which cuts counts by the answer', () => {
    const run = past({ ...cut, seal: 'always', maint: 'cuts' }).answer('applied', { terminated: 1 })
    expect(run.all('terminated')).toMatchObject([{ count: 1 }])
  })

  test('that raises to a gentle maint counts nothing', () => {
    expect(
      past({ ...cut, seal: 'gentle' })
        .answer()
        .all('terminated'),
    ).toEqual([])
  })

  test('that raises without an answer counts what was there before', () => {
    const run = past({ ...cut, seal: 'always', maint: 'cuts' }).lose('done')
    run.scope('w1', { active: 0 }).look()
    expect(run.all('terminated')).toMatchObject([{ count: 2 }])
  })
})

describe('what a cut without a clear answer has cut', () => {
  const cut: RunOptions = { onTimeout: 'terminate' }
  const raised: RunOptions = { ...cut, seal: 'always', maint: 'cuts' }
  const most = { terminated: 2, terminatedAtMost: true }

  test('is what was there before a look beside the raise showed its effect', () => {
    const run = past(raised).set({ own: 'maint' }).scope('w1', { active: 0 }).look()
    run.answer().looks(1_500)
    expect(run.outcome).toBe('terminated')
    expect(run.state.ending).toMatchObject(most)
  })

  test('is what the last look without the effect of the raise showed', () => {
    const run = past(raised).scope('w1', { active: 1 }).look()
    run.set({ own: 'maint' }).scope('w1', { active: 0 }).look()
    expect(run.answer().state.ending).toMatchObject({ ...most, terminated: 1 })
  })

  test('is known where a raise that was lost had been seen beside it', () => {
    const run = past(raised).set({ own: 'maint' }).scope('w1', { active: 0 }).look()
    run.lose('done').looks(1_500)
    expect(run.outcome).toBe('terminated')
    expect(run.state.ending).toMatchObject(most)
    expect(run.all('terminated')).toMatchObject([{ count: 2 }])
  })

  test('is known where a lost maint is found in place by the next one', () => {
    const run = started({ ...raised, hold: 'maint', scopes: { w1: { active: 2 } } }).look()
    run.lose().look({ after: 300 })
    expect(run.sent).toBe('hold maint')
    run.set({ own: 'maint' }).scope('w1', { active: 0 }).answer('unchanged').looks(1_500)
    expect(run.outcome).toBe('terminated')
    expect(run.state.ending).toMatchObject(most)
  })

  test('is told where the answer to the cut was lost', () => {
    const run = past(cut).lose().scope('w1', { active: 0 }).looks(500)
    expect(run.outcome).toBe('terminated')
    expect(run.state.ending).toMatchObject(most)
  })

  test('is only what is gone', () => {
    const run = past({ ...cut, scopes: { w1: { active: 2, queued: 3 } } }).lose()
    run.scope('w1', { active: 0, queued: 0, inForce: false }).scope('w2', { active: 1 }).look()
    run.scope('w2', { active: 0 }).looks(7_000)
    expect(run.outcome).toBe('terminated')
    expect(run.state.ending).toMatchObject({ ...most, terminated: 5 })
  })

  test('is not told where the work is still there', () => {
    const run = past({ ...cut, terminate: true, lateBound: 100_000 })
      .lose()
      .looks(7_000)
    expect(run.outcome).toBe('timeout')
    expect(run.state.ending).toMatchObject({ terminated: 0, terminatedAtMost: false })
  })

  test('is not counted twice where the next cut has an answer', () => {
    const run = past({ ...cut, lateBound: 500 })
      .lose()
      .looks(1_000)
    expect(run.sentSoFar.filter((sent) => sent === 'terminate')).toHaveLength(2)
    run.answer('applied', { terminated: 2 }).scope('w1', { active: 0 }).looks(500)
    expect(run.state.ending).toMatchObject({ terminated: 2, terminatedAtMost: false })
  })

  test('covers what the next cut did not find any more', () => {
    const run = past({ ...cut, lateBound: 500 })
      .lose()
      .scope('w1', { active: 1 })
      .looks(1_000)
    run.answer('applied', { terminated: 1 }).scope('w1', { active: 0 }).looks(500)
    expect(run.state.ending).toMatchObject(most)
  })

  test('is at most what was there, where the product gives no number', () => {
    const run = past(cut).answer().scope('w1', { active: 0 }).looks(500)
    expect(run.outcome).toBe('terminated')
    expect(run.state.ending).toMatchObject(most)
  })

  test('is nothing where the cut was refused', () => {
    const run = past(cut).refuse(failure('CONFLICT', true)).scope('w1', { active: 0 }).looks(500)
    expect(run.outcome).toBe('idle')
  })

  test('is nothing where a hold without an answer cuts nothing', () => {
    const run = started({ ...cut, scopes: { w1: { active: 2 } } })
      .look()
      .look()
      .lose('done')
      .look()
    expect(run.scope('w1', { active: 0 }).looks(3_000).outcome).toBe('idle')
    expect(run.state.ending).toMatchObject({ terminated: 0, terminatedAtMost: false })
  })

  test('is told before the member is removed', () => {
    const run = past({ ...cut, until: 'removed' })
      .lose()
      .scope('w1', { active: 0 })
      .looks(1_500)
    expect(run.sentSoFar.at(-1)).toBe('remove')
    run.answer()
    expect(run.outcome).toBe('terminated')
    expect(run.state.ending).toMatchObject(most)
  })

  test('is told where the drain is undone', () => {
    const run = past(cut).lose().scope('w1', { active: 0 }).look().open()
    expect(run.state.ending).toMatchObject(most)
  })
})

describe('a product that does not count work', () => {
  const blank: RunOptions = {
    onTimeout: 'terminate',
    counts: 'none',
    scopes: { w1: { active: 0, released: false } },
  }

  test('is told once to cut unreleased work', () => {
    const run = past(blank)
    expect(run.sent).toBe('terminate')
    run.answer().looks(1_000)
    expect(run.sentSoFar.filter((sent) => sent === 'terminate')).toHaveLength(1)
  })

  test('ends as terminated once it carried out the cut', () => {
    expect(past(blank).answer().looks(10_000).outcome).toBe('terminated')
  })

  test('is told again if the answer to the cut was lost', () => {
    const run = past(blank).lose().looks(1_500)
    expect(run.sentSoFar.filter((sent) => sent === 'terminate')).toHaveLength(2)
  })

  test('is idle by its own word after the cut', () => {
    const run = past(blank).answer().scope('w1', { released: true }).looks(500)
    expect(run.outcome).toBe('idle')
    expect(run.state.proof.unverified).toContain('does not count work')
  })

  test('is told again if nothing says that it cut', () => {
    const run = past(blank).answer('unchanged').look({ after: 100 })
    expect(run.sent).toBe('terminate')
  })

  test('is told to cut what one process has not released', () => {
    const scopes = { w1: { released: true }, w2: { active: 0, released: false } }
    expect(past({ ...blank, scopes }).sent).toBe('terminate')
  })

  test('is not told to cut beside a process that can not be read', () => {
    const scopes = { w1: { released: true }, w2: { state: 'unread' } } as const
    expect(past({ ...blank, scopes }).sentSoFar).toEqual(['hold drain'])
  })

  test('is not told to cut what it has released', () => {
    const run = past({ ...blank, scopes: { w1: { released: true } } })
    expect(run.sentSoFar).toEqual(['hold drain'])
  })
})

test('another member of the same name is neither raised nor cut', () => {
  const run = busy({ onTimeout: 'terminate', seal: 'always' })
  run.set({ identity: 'another' }).look({ after: 11_000 - run.now })
  expect(run.state.ending.terminateUntil).not.toBe(null)
  expect(run.sent).toBe(null)
})

describe('an outcome of the deadline', () => {
  test('stands if what was cut vanishes before it is idle', () => {
    const run = past({ onTimeout: 'terminate', terminate: true }).answer('applied', {
      terminated: 2,
    })
    run.scope('w1', { active: 0, inForce: false }).looks(10_000)
    expect([run.outcome, run.phase]).toEqual(['terminated', 'draining'])
    run.vanish().looks(2_000)
    expect(run.outcome).toBe('terminated')
  })

  test('is lost if work comes to a member that was cut and is idle', () => {
    const run = past({ onTimeout: 'terminate' }).answer('applied', { terminated: 2 })
    run.scope('w1', { active: 0 }).looks(500)
    expect([run.outcome, run.phase]).toEqual(['terminated', 'idle'])
    expect(run.scope('w1', { active: 1, arrivals: 101 }).look().outcome).toBe(null)
  })

  test('stands if work comes to a member that was idle after it', () => {
    const run = past().scope('w1', { active: 0 }).looks(2_000)
    expect([run.outcome, run.phase]).toEqual(['timeout', 'idle'])
    const { ended } = run.state.ending
    run.scope('w1', { active: 1 }).look()
    expect(run.phase).toBe('draining')
    expect(run.state.ending.ended).toBe(ended)
  })
})
