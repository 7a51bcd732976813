import { describe, expect, test } from 'vitest'
import { Draft } from '../../../../src/core/machine/draft.js'
import { failure, held, idle, started, type Figures, type MemberRun } from '../member-run.js'

function losses(run: MemberRun): readonly string[] {
  return run.effects.flatMap((effect) => (effect.type === 'lost' ? [effect.error.code] : []))
}

function wordsOf(run: MemberRun): string {
  return run.effects
    .flatMap((effect) => (effect.type === 'lost' ? effect.error.message : []))
    .join()
}

describe('an idle member', () => {
  test('is told once, with its phase first', () => {
    const run = held().lookAt(500).lookAt(1_000)
    expect(run.said).toEqual(['phase', 'idle'])
    expect(run.outcome).toBe('idle')
    expect(run.looks(3_000).all('idle')).toHaveLength(1)
  })

  test('ends its run, which keeps holding', () => {
    const run = idle()
    expect(run.outcome).toBe('idle')
    expect(run.state.ending.holding).toBe(true)
  })

  test('loses its idle with work, and its outcome in a run not settled', () => {
    const run = idle().scope('w1', { active: 1 }).look()
    expect(run.said).toEqual(['idle-lost', 'phase'])
    expect(run.phase).toBe('draining')
    expect(run.outcome).toBe(null)
    expect(run.state.proof).toMatchObject({ proof: null, verdict: null, sealed: false })
  })

  test.each([
    ['queued work', { queued: 1 }],
    ['an arrival', { arrivals: 101 }],
    ['a fall of arrivals', { arrivals: 99 }],
    ['a restart', { incarnation: 'w1.2' }],
    ['a process that can not be read, before the run has settled', { state: 'unread' as const }],
  ])('loses its idle with %s', (_, figures) => {
    expect(idle().scope('w1', figures).look().said).toContain('idle-lost')
  })

  test('loses its idle with a process that joined', () => {
    expect(idle().scope('w2').look().said).toContain('idle-lost')
  })

  test('loses its idle if one of two processes has work', () => {
    const run = held({ scopes: { w2: {} } })
      .idle()
      .scope('w2', { active: 1 })
      .look()
    expect(run.said).toContain('idle-lost')
  })

  test('keeps its idle if a process ended', () => {
    const run = held({ scopes: { w2: {} } })
      .idle()
      .scope('w2', { state: 'ended' })
      .look()
    expect(run.said).toEqual([])
  })

  test('is idle again only by the whole rule', () => {
    const run = idle().scope('w1', { active: 1 }).look().scope('w1', { active: 0 }).mark()
    run.lookAt(10).lookAt(14)
    expect(run.phase).toBe('draining')
    expect(run.lookAt(15).said).toContain('idle')
  })

  test('is not proved by a failed look', () => {
    expect(idle().fail().phase).toBe('idle')
  })
})

describe('a run that has settled', () => {
  test('keeps its outcome when idle is lost', () => {
    const run = idle().settle().scope('w1', { active: 1 }).look()
    expect(run.said).toEqual(['idle-lost', 'phase'])
    expect(run.outcome).toBe('idle')
  })

  test('keeps idle if a process can not be read for a moment', () => {
    expect(idle().settle().scope('w1', { state: 'unread' }).look().said).toEqual([])
  })

  test('reports that work was seen', () => {
    expect(losses(idle().settle().scope('w1', { active: 1 }).look())).toEqual(['IDLE_LOST'])
  })

  test('reports it once', () => {
    const run = idle().settle().scope('w1', { active: 1 }).look()
    expect(losses(run.look())).toEqual([])
  })

  test('reports nothing before it has settled', () => {
    expect(losses(idle().scope('w1', { active: 1 }).look())).toEqual([])
  })

  test('says that counters were cleared', () => {
    const words = (figures: Figures) => wordsOf(idle().settle().scope('w1', figures).look())
    expect(words({ arrivals: 3 })).toContain('the counters of w1 began anew')
    expect(words({ arrivals: 3, active: 1 })).toContain('got work again')
    expect(words({ arrivals: 3, active: 1, queued: 1 })).toContain('got work again')
    expect(words({ arrivals: 3, incarnation: 'w1.2' })).toContain('got work again')
    expect(words({ arrivals: 101 })).toContain('got work again')
    const two = held({ scopes: { w2: {} } })
      .idle()
      .settle()
    expect(wordsOf(two.scope('w2', { arrivals: 101 }).look())).toContain('got work again')
  })

  test('reports nothing if it was not idle', () => {
    const run = held({ timeout: 100, scopes: { w1: { active: 1 } } })
      .looks(300)
      .settle()
    expect(run.outcome).toBe('timeout')
    expect(losses(run.scope('w1', { active: 5 }).look())).toEqual([])
  })

  test('reports work after a cut', () => {
    const run = held({ timeout: 100, onTimeout: 'terminate', scopes: { w1: { active: 1 } } })
    run.look({ after: 200 }).answer('applied', { terminated: 1 }).scope('w1', { active: 0 })
    run.looks(1_500).settle()
    expect(run.outcome).toBe('terminated')
    expect(losses(run.scope('w1', { active: 1 }).look())).toEqual(['IDLE_LOST'])
  })

  test.each([
    ['work in flight', { active: 1 }],
    ['queued work', { queued: 1 }],
    ['an arrival', { arrivals: 101 }],
    ['a fall of arrivals that is no restart', { arrivals: 0 }],
    ['arrivals in a process that restarted', { incarnation: 'w1.2', arrivals: 1 }],
  ])('takes %s for work', (_, figures) => {
    expect(losses(idle().settle().scope('w1', figures).look())).toEqual(['IDLE_LOST'])
  })

  test.each([
    ['a restart with nothing arrived', { incarnation: 'w1.2', arrivals: 0 }],
    ['a restart that does not count', { incarnation: 'w1.2', arrivals: undefined as never }],
    ['a process that can not be read', { state: 'unread' as const, active: 1 }],
  ])('does not take %s for work', (_, figures) => {
    expect(losses(idle().settle().scope('w1', figures).look())).toEqual([])
  })

  test('does not take the history of a joining process for work', () => {
    expect(losses(idle().settle().scope('w2', { arrivals: 7 }).look())).toEqual([])
  })

  test('takes arrivals of a replacing process for work', () => {
    const run = idle().settle().scope('w1', { old: true }).scope('w2', { arrivals: 7 }).look()
    expect(losses(run)).toEqual(['IDLE_LOST'])
  })

  test('takes one arrival for work, beside a replaced process', () => {
    const run = held({ scopes: { w2: {} } })
      .idle()
      .settle()
      .scope('w1', { old: true })
    expect(losses(run.scope('w3', { arrivals: 1 }).look())).toEqual(['IDLE_LOST'])
  })

  test('does not take a product without arrivals for busy', () => {
    const run = idle({ scopes: { w1: { arrivals: undefined as never } } })
      .settle()
      .looks(500)
    expect(run.phase).toBe('idle')
    expect(run.state.ending.lossSaid).toBe(false)
  })

  test('takes arrivals for work in the place of an ended process', () => {
    const run = idle().settle().scope('w1', { state: 'ended' }).scope('w2', { arrivals: 7 }).look()
    expect(losses(run)).toEqual(['IDLE_LOST'])
  })

  test('takes arrivals for work beside a restarted process', () => {
    const run = idle().settle().scope('w1', { incarnation: 'w1.2', arrivals: 0 })
    expect(losses(run.scope('w2', { arrivals: 7 }).look())).toEqual(['IDLE_LOST'])
  })

  test('does not take a renamed process for work', () => {
    const run = idle().settle().scope('w1', { state: 'ended' })
    run.scope('w0', { incarnation: 'w1.1' }).look()
    expect(losses(run)).toEqual([])
  })

  test('does not take a process without arrivals elsewhere for work', () => {
    const run = idle().settle().scope('w1', { old: true }).scope('w2', { arrivals: 0 }).look()
    expect(losses(run)).toEqual([])
  })

  test('takes as many arrivals as before for work after a counter restart', () => {
    const run = idle({ scopes: { w1: { countersFrom: 'boot 1' } } }).settle()
    run.scope('w1', { incarnation: 'w1.2', countersFrom: 'boot 2' }).look()
    expect(losses(run)).toEqual(['IDLE_LOST'])
  })

  test('sees no work after a counter restart without arrivals', () => {
    const run = idle({ scopes: { w1: { countersFrom: 'boot 1' } } }).settle()
    run.scope('w1', { incarnation: 'w1.2', countersFrom: 'boot 2', arrivals: 0 }).look()
    expect(losses(run)).toEqual([])
  })

  test.each([
    ['the counters went on', 'boot 1', 'boot 1'],
    ['nothing tells since when it counts', undefined, undefined],
    ['only the new life tells since when it counts', undefined, 'boot 2'],
  ])('keeps idle by the same figure where %s', (_, before, now) => {
    const from = (countersFrom: string | undefined) =>
      countersFrom === undefined ? {} : { countersFrom }
    const run = idle({ scopes: { w1: from(before) } }).settle()
    run.scope('w1', { incarnation: 'w1.2', ...from(now) }).look()
    expect(losses(run)).toEqual([])
  })

  test('puts back what a reload forgot without reporting a loss', () => {
    const run = idle().settle().set({ own: 'ready' })
    run.scope('w1', { incarnation: 'w1.2', arrivals: 0 }).look()
    expect(run.sent).toBe('hold drain')
    expect(losses(run)).toEqual([])
  })
})

describe('a settled run that is idle again', () => {
  test('stays idle by what was there when it was said again', () => {
    const run = idle().settle().scope('w1', { arrivals: 101 }).look()
    expect(run.phase).toBe('draining')
    run.idle().looks(500)
    expect(run.phase).toBe('idle')
    expect(run.all('idle-lost')).toHaveLength(1)
  })

  test('watches every process that joins', () => {
    const run = idle().settle().scope('w2', { arrivals: 7 }).look()
    expect(run.phase).toBe('idle')
    expect(losses(run.scope('w2', { arrivals: 8 }).look())).toEqual(['IDLE_LOST'])
  })

  test('does not watch a joining process that can not be read', () => {
    const run = idle().settle().scope('w2', { arrivals: 7, state: 'unread' }).look()
    expect(losses(run.scope('w2', { arrivals: 8, state: 'read' }).look())).toEqual([])
  })

  test('after its deadline loses idle by an arrival', () => {
    const run = held({ timeout: 100, scopes: { w1: { active: 1 } } })
      .looks(300)
      .settle()
    run.scope('w1', { active: 0 }).idle()
    expect(run.outcome).toBe('timeout')
    expect(run.scope('w1', { arrivals: 101 }).look().said).toContain('idle-lost')
  })

  test('after its deadline keeps idle if a process can not be read', () => {
    const run = held({ timeout: 100, scopes: { w1: { active: 1 } } })
      .looks(300)
      .settle()
    run.scope('w1', { active: 0 }).idle().scope('w1', { state: 'unread' }).look()
    expect(run.said).toEqual([])
  })
})

describe('a run that is released', () => {
  test('sends nothing more', () => {
    const run = idle().settle().put({ type: 'release' }).set({ own: 'ready' })
    run.scope('w1', { incarnation: 'w1.2', active: 1 }).looks(1_000)
    expect(run.sentSoFar).toEqual(['hold drain'])
    expect(run.heard.at(-1)?.type).not.toBe('idle-lost')
  })

  test('before its end still gives way to another call', () => {
    const run = held().put({ type: 'release' })
    expect(run.put({ type: 'yield', error: failure('DRAIN_OVERRULED') }).outcome).toBe('overruled')
  })

  test('before its end continues to its end', () => {
    const run = held().put({ type: 'release' }).looks(2_000)
    expect(run.outcome).toBe('idle')
  })
})

describe('an end from outside', () => {
  test('has its outcome and its error, and releases the member', () => {
    const why = failure('CONFLICT')
    const run = held().put({ type: 'end', outcome: 'aborted', error: why })
    expect(run.outcome).toBe('aborted')
    expect(run.error).toBe(why)
    expect(run.state.ending.holding).toBe(false)
    expect(run.effects).toEqual([])
  })

  test('has no error if none is given', () => {
    expect(held().put({ type: 'end', outcome: 'aborted' }).error).toBe(null)
  })

  test('after an end keeps the outcome, and releases the member', () => {
    const run = idle().put({ type: 'end', outcome: 'aborted' })
    expect(run.outcome).toBe('idle')
    expect(run.effects).toEqual([])
    expect(run.state.ending.holding).toBe(false)
  })

  test('notes its moment', () => {
    const run = held().wait(70).put({ type: 'end', outcome: 'aborted' })
    expect(run.state.ending.ended?.at).toBe(run.now)
  })
})

describe('another call of this process for the same member', () => {
  const theirs = failure('DRAIN_OVERRULED')

  test('ends the drain as overruled, and releases the member', () => {
    const run = held().put({ type: 'yield', error: theirs })
    expect(run.outcome).toBe('overruled')
    expect(run.error).toBe(theirs)
    expect(run.looks(2_000).sentSoFar).toEqual(['hold drain'])
  })

  test('takes back an idle that was not the outcome yet', () => {
    const run = idle({ seal: 'gentle' }).put({ type: 'yield', error: theirs })
    expect(run.outcome).toBe('overruled')
    expect(run.phase).toBe('active')
    expect(run.state.proof).toMatchObject({ verdict: null, proof: null, sealed: false })
  })

  test('does not repeat a phase', () => {
    expect(started().look().put({ type: 'yield', error: theirs }).said).toEqual([])
  })

  test('reports nothing more when the answer to its hold comes later', () => {
    const run = started().look().put({ type: 'yield', error: theirs })
    expect([run.answer().said, run.phase, run.outcome]).toEqual([[], 'active', 'overruled'])
  })

  test('keeps idle if a reload forgot its hold, which was put back', () => {
    const run = idle().settle().set({ own: 'ready' }).scope('w1', { incarnation: 'w1.2' }).look()
    expect(run.sent).toBe('hold drain')
    expect([run.answer().phase, run.said]).toEqual(['idle', []])
  })

  test('keeps the outcome of a settled run, and reports the loss', () => {
    const run = idle().settle().put({ type: 'yield', error: theirs })
    expect(run.outcome).toBe('idle')
    expect(losses(run)).toEqual(['DRAIN_OVERRULED'])
    expect(run.state.ending.holding).toBe(false)
  })

  test('does not affect a run that released the member', () => {
    const run = idle().settle().put({ type: 'release' })
    const { state } = run
    expect(run.put({ type: 'yield', error: theirs }).state).toEqual(state)
  })

  test('does not affect a run that ended otherwise', () => {
    const run = held()
      .put({ type: 'end', outcome: 'aborted' })
      .put({ type: 'yield', error: theirs })
    expect(run.outcome).toBe('aborted')
  })
})

describe('a failed look', () => {
  test('is a fault, told once for the same reason', () => {
    const run = held().fail()
    expect(run.said).toEqual(['fault'])
    expect(run.fail().said).toEqual([])
    expect(run.fail(failure('UNREACHABLE')).said).toEqual(['fault'])
  })

  test('is a fault again after a successful look', () => {
    expect(held().fail().look().fail().said).toEqual(['fault'])
  })

  test('is over with the next successful look', () => {
    expect(held().fail().look().state.unread).toBe(null)
  })

  test('sends nothing', () => {
    expect(started().fail().sent).toBe(null)
    expect(held().set({ own: 'ready' }).fail().sent).toBe(null)
  })
})

describe('a loss', () => {
  const policy = started().policy
  const stamp = { type: 'settle' as const, at: 1, wall: 1 }

  function lose(ending: Partial<ReturnType<typeof idle>['state']['ending']>): number {
    const { state } = idle().settle()
    const draft = new Draft({ ...state, ending: { ...state.ending, ...ending } }, stamp, policy)
    draft.lose(failure('IDLE_LOST'))
    return draft.effects.length
  }

  test('is told if the run has settled, holds, and has not told it', () => {
    expect(lose({})).toBe(1)
    expect(lose({ settled: false })).toBe(0)
    expect(lose({ holding: false })).toBe(0)
    expect(lose({ lossSaid: true })).toBe(0)
  })

  test('keeps a removed member removed', () => {
    const { state } = started()
    const draft = new Draft({ ...state, phase: 'removed' }, stamp, policy)
    draft.phase('active')
    expect(draft.state.phase).toBe('removed')
    expect(draft.effects).toEqual([])
  })
})

test('transition() does not change the state that it is given', () => {
  const run = held({ seal: 'gentle', scopes: { w2: {} } }).lookAt(100)
  const { state } = run
  const before = structuredClone(state)
  run.lookAt(1_000).answer().look()
  expect(state).toEqual(before)
})
