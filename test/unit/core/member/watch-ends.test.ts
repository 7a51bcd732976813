import { describe, expect, test } from 'vitest'
import { started, type MemberRun, type RunOptions } from './member-run.js'

function watching(options: RunOptions = {}): MemberRun {
  return started({ goal: { kind: 'watch' }, own: 'drain', ...options })
}

describe('the end of a watch', () => {
  test('is final: a later drain is not followed', () => {
    const run = watching({ own: 'ready' }).look().end('unreachable')
    expect(run.set({ own: 'drain' }).looks(500).phase).toBe('active')
  })

  test('of a removed member reports its absence', () => {
    const run = watching({ settle: 0 }).look().vanish().looks(500)
    expect(run.outcome).toBe('gone')
    expect(run.error?.message).toContain('is not in the pool any more')
  })

  test('of a replaced member reports another one', () => {
    const run = watching().look().set({ identity: 'x' }).look().look({ after: 20 })
    expect(run.error?.message).toContain('is another member now')
  })

  test('of a removed member without a process comes at once', () => {
    const run = watching({ own: 'ready' }).unlist('w1').look().vanish().look()
    expect(run.look({ after: 20 }).outcome).toBe('gone')
    expect(run.all('idle')).toEqual([])
  })

  test('of a removed member does not wait for what is not counted later', () => {
    const run = watching({ countsAfterRemove: false, scopes: { w1: { active: 2 } } }).look()
    run.vanish().unlist('w1').look({ ended: [] }).look({ after: 20 })
    expect(run.outcome).toBe('gone')
    expect(run.proof.lost).toMatchObject([{ scope: 'w1', active: 2 }])
  })

  test('of a removed idle member needs a new proof if work was seen', () => {
    const run = watching().looks(2_000)
    expect(run.phase).toBe('idle')
    run.scope('w1', { active: 1, arrivals: 101 }).vanish().look().look({ after: 20 })
    expect(run.outcome).toBe(null)
    expect(run.all('idle-lost')).toHaveLength(1)
  })

  test('of an idle member removed with its counters comes at once', () => {
    const run = watching()
      .looks(2_000)
      .scope('w1', { arrivals: undefined as never })
    run.vanish().look().look({ after: 20 })
    expect([run.outcome, run.all('idle-lost').length]).toEqual(['gone', 0])
  })

  test('of a removed idle member waits if clients came since', () => {
    const run = watching().looks(2_000).scope('w1', { arrivals: 101 })
    run.vanish().look().look({ after: 20 })
    expect([run.outcome, run.all('idle-lost').length]).toEqual([null, 1])
    expect(run.looks(2_000).outcome).toBe('gone')
  })
})

describe('a watch says that the member is sealed', () => {
  test('if every process is in maint, as it is', () => {
    const run = watching({ own: 'maint', scopes: { w1: { admin: 'maint' } } }).looks(2_000)
    expect(run.proof.sealed).toBe(true)
  })

  test('not if one stayed at drain', () => {
    const scopes = { w1: { admin: 'maint' as const }, w2: { admin: 'drain' as const } }
    const run = watching({ own: 'maint', scopes }).looks(2_000)
    expect([run.phase, run.proof.sealed]).toEqual(['idle', false])
  })
})
