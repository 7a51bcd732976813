import { describe, expect, test } from 'vitest'
import { failure, held, idle, started } from '../member-run.js'

describe('a lower state in another process than the one that held', () => {
  test('was forgotten, and is put back', () => {
    const run = held().look().set({ own: 'ready' }).scope('w1', { incarnation: 'w1.2' }).look()
    expect(run.sent).toBe('hold drain')
    expect(run.all('overruled')).toEqual([])
  })

  test('is put back under onOverrule fail as often as it happens', () => {
    const run = held().look()
    for (let i = 2; i < 12; i += 1) {
      run
        .set({ own: 'ready' })
        .scope('w1', { incarnation: `w1.${i}` })
        .look()
      expect(run.sent).toBe('hold drain')
      run.answer().look()
    }
    expect(run.outcome).toBe(null)
  })

  test('was forgotten if a process joined that has not taken it', () => {
    const run = held().look().set({ own: 'ready' }).scope('w2').look()
    expect(run.sent).toBe('hold drain')
  })

  test('was forgotten, even while the other process can not be read', () => {
    const run = held().look().set({ own: 'ready' }).scope('w1', { incarnation: 'w1.2' }).look()
    run.refuse(failure('CONFLICT')).scope('w1', { state: 'unread' }).look({ after: 500 })
    expect(run.outcome).toBe(null)
    expect(run.sent).toBe('hold drain')
  })

  test('was forgotten if a process joined that can not be read', () => {
    const run = held().look().set({ own: 'ready' }).scope('w2', { state: 'unread' }).look()
    expect(run.sent).toBe('hold drain')
  })

  test('was forgotten if a process is read for the first time', () => {
    const run = started({ scopes: { w2: { state: 'unread' } } })
    run.look().answer().look().set({ own: 'ready' }).scope('w2', { state: 'read' }).look()
    expect(run.all('overruled')).toEqual([])
    expect(run.sent).toBe('hold drain')
  })

  test('a put-back is not asked of the floor', () => {
    const run = held().look().set({ own: 'ready' }).scope('w1', { incarnation: 'w1.2' }).look()
    expect(run.effects.find((effect) => effect.type === 'apply')).toMatchObject({ first: false })
  })

  test('in a restarted process starts the whole rule anew', () => {
    const run = idle().set({ own: 'ready' }).scope('w1', { incarnation: 'w1.2' }).look()
    run.answer().mark().lookAt(10).lookAt(999)
    expect(run.phase).toBe('draining')
    expect(run.lookAt(1_010).phase).toBe('idle')
  })

  test('was forgotten, even after an answer without the member', () => {
    const run = held().look().scope('w1', { incarnation: 'w1.2' }).vanish().look()
    run.set({ own: 'ready' }).look()
    expect(run.all('overruled')).toEqual([])
    expect(run.sent).toBe('hold drain')
  })

  test('was forgotten, even after an answer of another member', () => {
    const run = held().look().scope('w1', { incarnation: 'w1.2' }).set({ identity: 'x' }).look()
    run.set({ identity: '10.0.0.1:80', own: 'ready' }).look()
    expect(run.all('overruled')).toEqual([])
    expect(run.sent).toBe('hold drain')
  })

  test('is put back, and the incarnation is known from then on', () => {
    const run = held().look().set({ own: 'ready' }).scope('w1', { incarnation: 'w1.2' }).look()
    run.answer().set({ own: 'ready' }).look()
    expect(run.outcome).toBe('overruled')
  })

  test('of a held idle is put back with idle kept if nothing was seen', () => {
    const run = idle().settle().set({ own: 'ready' })
    run.scope('w1', { incarnation: 'w1.2', arrivals: 0 }).look()
    expect(run.said).toEqual([])
    expect(run.phase).toBe('idle')
  })

  test('of a held and sealed idle is put back with idle kept', () => {
    const run = idle({ seal: 'gentle' }).settle().set({ own: 'ready' })
    run.scope('w1', { incarnation: 'w1.2', arrivals: 0 }).look()
    expect(run.said).toEqual([])
  })

  test('of a held and sealed idle with work is lost', () => {
    const run = idle({ seal: 'gentle' }).settle().set({ own: 'ready' })
    run.scope('w1', { incarnation: 'w1.2', active: 1 }).look()
    expect(run.said).toContain('idle-lost')
  })

  test('of a held idle without a seal is lost, to be sealed again', () => {
    const run = held({ seal: 'gentle' }).lookAt(100).lookAt(1_000).refuse(failure('FORBIDDEN'))
    run.look().settle().set({ own: 'ready' }).scope('w1', { incarnation: 'w1.2', arrivals: 0 })
    expect(run.look().said).toContain('idle-lost')
  })

  test('an incarnation that held the wish is known from then on', () => {
    const run = held()
      .look()
      .scope('w1', { incarnation: 'w1.2' })
      .look()
      .set({ own: 'ready' })
      .look()
    expect(run.outcome).toBe('overruled')
  })
})

describe('a lower state in the same process', () => {
  test('was set by another client, which ends the drain', () => {
    const run = held().look().set({ own: 'ready' }).look()
    expect(run.said).toEqual(['overruled', 'phase'])
    expect(run.outcome).toBe('overruled')
    expect(run.error?.code).toBe('DRAIN_OVERRULED')
    expect(run.phase).toBe('active')
    expect(run.sent).toBe(null)
  })

  test('is reported with the wished and the found state', () => {
    const run = held({ hold: 'maint' }).look().set({ own: 'drain' }).look()
    expect(run.all('overruled')).toMatchObject([
      { expected: 'maint', found: 'drain', reset: false },
    ])
  })

  test('leaves no pause behind', () => {
    const run = held().look().set({ own: 'ready' }).look()
    expect(run.state.hold.notBefore).toBeLessThanOrEqual(run.now)
  })

  test('ends the drain for good, without further put-backs', () => {
    const run = held().look().set({ own: 'ready' }).look()
    expect(run.state.ending.holding).toBe(false)
    expect(run.looks(1_000).sentSoFar).toEqual(['hold drain'])
  })

  test('at the first look after the hold too', () => {
    expect(held().set({ own: 'ready' }).look().outcome).toBe('overruled')
  })

  test('is not an overrule in a look asked for before the change', () => {
    const run = held().set({ own: 'ready' })
    run.look({ asked: run.origin - 1 })
    expect(run.all('overruled')).toEqual([])
  })

  test('of an idle member takes back its idle first', () => {
    const run = idle().set({ own: 'ready' }).look()
    expect(run.said).toEqual(['idle-lost', 'phase', 'overruled', 'phase'])
    expect(run.outcome).toBe('overruled')
  })

  test('of an idle member whose run has settled is a loss', () => {
    const run = idle().settle().set({ own: 'ready' }).look()
    expect(run.effects).toContainEqual({
      type: 'lost',
      error: expect.objectContaining({ code: 'DRAIN_OVERRULED' }) as unknown,
    })
    expect(run.outcome).toBe('idle')
  })

  test('under a refused hold, set by another client, overrules', () => {
    const run = started().look().refuse(failure('CONFLICT', true)).set({ own: 'drain' }).look()
    expect(run.phase).toBe('draining')
    expect(run.set({ own: 'ready' }).look().outcome).toBe('overruled')
  })

  test('that is unknown takes back an idle', () => {
    expect(idle().set({ own: 'unknown' }).look().said).toEqual(['idle-lost', 'phase'])
  })

  test('was set by another client even before a hold of ours was there', () => {
    const run = started({ own: 'drain' }).look().answer('unchanged').set({ own: 'ready' }).look()
    expect(run.outcome).toBe('overruled')
  })
})

describe('onOverrule reapply', () => {
  test('puts the hold back after 250 ms', () => {
    const run = held({ onOverrule: 'reapply' }).look().set({ own: 'ready' }).look()
    expect(run.all('overruled')[0]?.reset).toBe(true)
    expect(run.look({ after: 249 }).sent).toBe(null)
    expect(run.look({ after: 1 }).sent).toBe('hold drain')
  })

  test('reports each overrule once', () => {
    const run = held({ onOverrule: 'reapply' }).look().set({ own: 'ready' }).look().look().look()
    expect(run.all('overruled')).toHaveLength(1)
  })

  test('waits longer each time, and ends at the fourth overrule', () => {
    const run = held({ onOverrule: 'reapply' }).look()
    for (const wait of [250, 1_000, 4_000]) {
      run.set({ own: 'ready' }).look()
      expect(run.look({ after: wait - 1 }).sent).toBe(null)
      expect(run.look({ after: 1 }).sent).toBe('hold drain')
      run.answer().look()
    }
    run.set({ own: 'ready' }).look()
    expect(run.outcome).toBe('overruled')
    expect(run.all('overruled').map(({ reset }) => reset)).toEqual([true, true, true, false])
  })

  test('reports an overrule again after another client put the drain back', () => {
    const run = held({ onOverrule: 'reapply' }).look().set({ own: 'ready' }).look()
    run.set({ own: 'drain' }).look().set({ own: 'ready' }).look()
    expect(run.all('overruled')).toHaveLength(2)
  })

  test('reports an overrule again right after our put-back', () => {
    const run = held({ onOverrule: 'reapply' }).look().set({ own: 'ready' }).look()
    run.look({ after: 250 }).answer().set({ own: 'ready' }).look()
    expect(run.all('overruled')).toHaveLength(2)
  })

  test('is an overrule for why() until the change is under way', () => {
    const run = held({ onOverrule: 'reapply' }).look().set({ own: 'ready' }).look()
    expect(run.codes).toContain('overruled')
    run.look({ after: 250 })
    expect(run.codes).not.toContain('overruled')
  })

  test('puts back at once after a reload in between', () => {
    const run = held({ onOverrule: 'reapply' }).look().set({ own: 'ready' }).look({ after: 1_000 })
    run.look({ after: 250 }).answer().look()
    run.set({ own: 'ready' }).scope('w1', { incarnation: 'w1.2' }).look()
    expect(run.sent).toBe('hold drain')
  })
})
