import { describe, expect, test } from 'vitest'
import { held, idle, started } from './member-run.js'

describe('rule 1: the own state is at least the wished one', () => {
  test('a member at drain under a wish for drain is idle in the end', () => {
    expect(held().looks(2_000).phase).toBe('idle')
  })

  test('a member at maint under a wish for drain is idle in the end', () => {
    const run = started({ own: 'maint' }).look().answer('unchanged').looks(2_000)
    expect(run.own).toBe('maint')
    expect(run.phase).toBe('idle')
  })

  test('a member at drain under a wish for maint is not idle', () => {
    const run = held({ hold: 'maint', onOverrule: 'reapply' }).set({ own: 'drain' })
    expect(run.looks(200).phase).not.toBe('idle')
    expect(run.looks(5_000).all('idle')).toEqual([])
  })

  test('an unknown own state is never idle', () => {
    const run = held().set({ own: 'unknown' }).looks(10_000)
    expect(run.phase).toBe('draining')
    expect(run.sentSoFar).toEqual(['hold drain'])
  })

  test('an inherited drain does not replace the own state', () => {
    const run = held({ onOverrule: 'reapply' }).set({ own: 'ready', inherited: 'drain' })
    expect(run.looks(10_000).all('idle')).toEqual([])
  })

  test('an unknown state in between starts the proof anew', () => {
    const run = held().lookAt(900).set({ own: 'unknown' }).lookAt(950).set({ own: 'drain' })
    run.lookAt(1_000).lookAt(1_900)
    expect(run.phase).toBe('draining')
    run.lookAt(2_000)
    expect(run.phase).toBe('idle')
  })

  test('samples from before an unknown state do not count', () => {
    const run = held().scope('w1', { active: 1 }).looks(2_000).scope('w1', { active: 0 }).look()
    run.set({ own: 'unknown' }).look().set({ own: 'drain' }).mark()
    run.lookAt(100).lookAt(1_000)
    expect(run.phase).toBe('draining')
  })
})

describe('rule 2: every process is listed, read and in force, or ended', () => {
  test('a member without any process is not idle', () => {
    const run = started().unlist('w1').hold().looks(10_000)
    expect(run.phase).toBe('draining')
    expect(run.codes).toEqual(['unreadable'])
  })

  test('a process that can not be read keeps it from idle', () => {
    const run = held({ scopes: { w2: { state: 'unread' } } }).looks(10_000)
    expect(run.phase).toBe('draining')
  })

  test('a process that is not in force keeps it from idle', () => {
    const run = held({ scopes: { w2: { inForce: false } } }).looks(10_000)
    expect(run.phase).toBe('draining')
  })

  test('a process that is not listed any more keeps it from idle', () => {
    const run = held({ scopes: { w2: {} } })
      .unlist('w2')
      .looks(10_000)
    expect(run.phase).toBe('draining')
    expect(run.codes).toEqual(['unreadable'])
  })

  test('a process that was never read keeps it from idle', () => {
    const run = started({ scopes: { w2: { state: 'unread' } } })
      .hold()
      .unlist('w2')
      .looks(10_000)
    expect(run.phase).toBe('draining')
  })

  test('a process that has ended does not keep it from idle', () => {
    const run = held({ scopes: { w2: {} } })
      .lookAt(500)
      .scope('w2', { state: 'ended' })
    run.lookAt(600).unlist('w2').lookAt(1_000)
    expect(run.phase).toBe('idle')
  })

  test('a member whose processes have all ended is idle', () => {
    const run = held().scope('w1', { state: 'ended' }).lookAt(10)
    expect(run.phase).toBe('idle')
    expect(run.all('idle')[0]?.proof.samples).toEqual([])
  })

  test('the work of one process keeps the whole member from idle', () => {
    const run = held({ scopes: { w2: { active: 1 } } }).looks(10_000)
    expect(run.phase).toBe('draining')
  })

  test('a failed look does not show idle', () => {
    const run = held().lookAt(500).lookAt(999)
    run.wait(10).fail().fail()
    expect(run.phase).toBe('draining')
  })
})

describe('rule 4: zero in two samples', () => {
  test('one sample is not enough', () => {
    const run = held().scope('w1', { active: 1 }).lookAt(500).scope('w1', { active: 0 })
    run.lookAt(2_000)
    expect(run.phase).toBe('draining')
  })

  test('samples 4 ms apart are one moment', () => {
    const run = held().scope('w1', { active: 1 }).lookAt(500).scope('w1', { active: 0 })
    run.lookAt(2_000).lookAt(2_004)
    expect(run.phase).toBe('draining')
  })

  test('samples 5 ms apart are two', () => {
    const run = held().scope('w1', { active: 1 }).lookAt(500).scope('w1', { active: 0 })
    run.lookAt(2_000).lookAt(2_005)
    expect(run.phase).toBe('idle')
  })

  test('samples closer than freshness are not two', () => {
    const run = held({ freshness: 400 }).scope('w1', { active: 1 }).lookAt(500)
    run.scope('w1', { active: 0 }).lookAt(2_000).lookAt(2_399)
    expect(run.phase).toBe('draining')
  })

  test('samples as far apart as freshness are two', () => {
    const run = held({ freshness: 400 }).scope('w1', { active: 1 }).lookAt(500)
    run.scope('w1', { active: 0 }).lookAt(2_000).lookAt(2_400)
    expect(run.phase).toBe('idle')
  })

  test('two answers with the same sample are one sample', () => {
    const run = held().scope('w1', { active: 1 }).lookAt(500).scope('w1', { active: 0 })
    run.lookAt(2_000).lookAt(2_100, { stale: 100 })
    expect(run.phase).toBe('draining')
  })

  test('a sample with one active starts the samples anew', () => {
    const run = held().lookAt(500).scope('w1', { active: 1 }).lookAt(1_500)
    run.scope('w1', { active: 0 }).lookAt(1_600)
    expect(run.phase).toBe('draining')
  })

  test('a sample with one queued starts the samples anew', () => {
    const run = held().lookAt(500).scope('w1', { queued: 1 }).lookAt(1_500)
    run.scope('w1', { queued: 0 }).lookAt(1_600)
    expect(run.phase).toBe('draining')
  })

  test('a sample that could not be read starts the samples anew', () => {
    const run = held().lookAt(500).scope('w1', { state: 'unread' }).lookAt(1_500)
    run.scope('w1', { state: 'read' }).lookAt(1_600)
    expect(run.phase).toBe('draining')
  })

  test('a sample without the process starts the samples anew', () => {
    const run = held().lookAt(500).unlist('w1').lookAt(1_500).scope('w1').lookAt(1_600)
    expect(run.phase).toBe('draining')
  })

  test('two samples are freshness apart, from the first one in force', () => {
    const run = held({ settle: 0, freshness: 400, scopes: { w1: { inForce: false } } })
    run.lookAt(100).scope('w1', { inForce: true }).lookAt(600)
    expect(run.phase).toBe('draining')
    expect(run.lookAt(999).phase).toBe('draining')
    expect(run.lookAt(1_000).phase).toBe('idle')
  })

  test('a look while the hold is under way does not count', () => {
    const run = started().look().set({ own: 'drain' }).look().look()
    expect(run.phase).toBe('active')
    expect(run.proof.effectiveSince).toBe(null)
    expect(run.all('in-force')).toEqual([])
  })

  test('a member found in maint is draining once our hold has its answer', () => {
    expect(started({ own: 'maint' }).look().phase).toBe('active')
  })

  test('a sample that is not in force starts the samples anew', () => {
    const run = held().lookAt(500).scope('w1', { inForce: false }).lookAt(1_500)
    run.scope('w1', { inForce: true }).lookAt(1_600).lookAt(2_590)
    expect(run.phase).toBe('draining')
    expect(run.lookAt(2_600).phase).toBe('idle')
  })

  test('queued work alone keeps it from idle', () => {
    expect(held({ scopes: { w1: { queued: 1 } } }).looks(10_000).phase).toBe('draining')
  })

  test('pooled connections do not keep it from idle', () => {
    expect(held({ scopes: { w1: { pooled: 9 } } }).looks(2_000).phase).toBe('idle')
  })

  test('a sample from when the hold took effect does not count', () => {
    const run = held().lookAt(500, { stale: 500 }).lookAt(1_000, { stale: 0 })
    expect(run.phase).toBe('draining')
    expect(run.proof.scopes.get('w1')?.zeros?.first.sampledAt).toBe(run.origin + 1_000)
  })

  test('a sample from a moment later counts', () => {
    expect(held().lookAt(500, { stale: 499 }).lookAt(1_000).phase).toBe('idle')
  })

  test('a sample from before the end of the quiet time is not the last', () => {
    expect(held().lookAt(500).lookAt(1_500, { stale: 501 }).phase).toBe('draining')
  })

  test('the word that nothing is attached replaces the second sample', () => {
    const run = held().scope('w1', { active: 1 }).lookAt(500)
    run.scope('w1', { active: 0, released: true }).lookAt(2_000)
    expect(run.phase).toBe('idle')
    expect(run.all('idle')[0]?.proof.samples).toHaveLength(1)
  })

  test('that word does not replace the quiet time', () => {
    expect(held({ scopes: { w1: { released: true } } }).lookAt(999).phase).toBe('draining')
  })

  test('that word speaks for its own process only', () => {
    const run = held({ scopes: { w2: { active: 1 } } })
      .scope('w1', { active: 1 })
      .lookAt(500)
    run.scope('w1', { active: 0, released: true }).scope('w2', { active: 0 }).lookAt(2_000)
    expect(run.phase).toBe('draining')
  })
})

describe('a look from before the change was confirmed', () => {
  test('does not count if it was asked for before the hold was confirmed', () => {
    const run = held()
    run.lookAt(2_000, { asked: run.origin - 1 })
    run.lookAt(4_000, { asked: run.origin - 1 })
    expect(run.phase).toBe('draining')
    expect(run.all('idle')).toEqual([])
  })

  test('does not count if it was asked for in the same instant', () => {
    const run = held()
    run.lookAt(1_000, { asked: run.origin }).lookAt(2_000, { asked: run.origin })
    expect(run.all('in-force')).toEqual([])
    expect(run.phase).toBe('draining')
  })

  test('counts if it was asked for a moment later', () => {
    const run = held()
    run.lookAt(500, { asked: run.origin + 1 }).lookAt(1_000)
    expect(run.phase).toBe('idle')
  })
})

describe('a restart', () => {
  test('starts the proof of its process anew', () => {
    const run = held().lookAt(500).scope('w1', { incarnation: 'w1.2' }).lookAt(900)
    run.lookAt(1_000).lookAt(1_899)
    expect(run.phase).toBe('draining')
    expect(run.lookAt(1_900).phase).toBe('idle')
  })

  test('leaves the proof of the other processes alone', () => {
    const run = held({ scopes: { w2: {} } }).lookAt(500)
    run.scope('w1', { incarnation: 'w1.2' }).lookAt(600)
    expect(run.proof.scopes.get('w2')?.quietFrom).toBe(run.origin)
    expect(run.proof.scopes.get('w1')?.quietFrom).toBe(run.origin + 600)
  })
})

describe('a product that does not count arrivals', () => {
  const uncounted = { scopes: { w1: { arrivals: undefined as never } } }

  test('is proved by zeros over 3 s', () => {
    const run = held(uncounted).lookAt(10).lookAt(3_009)
    expect(run.phase).toBe('draining')
    run.lookAt(3_010)
    expect(run.phase).toBe('idle')
    expect(run.all('idle')[0]?.proof.arrivals).toBe('unknown')
    expect(run.look().said).toEqual([])
  })

  test('is proved by zeros over settle if that is longer', () => {
    const run = held({ ...uncounted, settle: 5_000 })
      .lookAt(10)
      .lookAt(5_009)
    expect(run.phase).toBe('draining')
    expect(run.lookAt(5_010).phase).toBe('idle')
  })

  test('is proved by zeros over blind if that is longer', () => {
    const run = held({ ...uncounted, blind: 5_000 })
      .lookAt(10)
      .lookAt(5_009)
    expect(run.phase).toBe('draining')
    expect(run.lookAt(5_010).phase).toBe('idle')
  })

  test('is proved by zeros over freshness if that is longer', () => {
    const run = held({ ...uncounted, freshness: 4_000 })
      .lookAt(10)
      .lookAt(4_009)
    expect(run.phase).toBe('draining')
    expect(run.lookAt(4_010).phase).toBe('idle')
  })

  test('does not wait for freshness once nothing is attached by its word', () => {
    const scopes = { w1: { arrivals: undefined as never, released: true } }
    const run = held({ scopes, freshness: 4_000 }).lookAt(10).lookAt(3_010)
    expect(run.phase).toBe('idle')
  })

  test('starts the 3 s anew with one sample with work', () => {
    const run = held(uncounted).lookAt(10).scope('w1', { active: 1 }).lookAt(1_000)
    run.scope('w1', { active: 0 }).lookAt(1_100).lookAt(4_099)
    expect(run.phase).toBe('draining')
    expect(run.lookAt(4_100).phase).toBe('idle')
  })

  test('makes the whole proof the weaker kind with one such process', () => {
    const run = idle({ scopes: { w2: { arrivals: undefined as never } } })
    expect(run.all('idle')[0]?.proof.arrivals).toBe('unknown')
  })
})

describe('a product that counts nothing', () => {
  test('is not proved by zeros', () => {
    expect(held({ counts: 'none' }).looks(10_000).phase).toBe('draining')
  })

  test('is idle by its own word, unverified', () => {
    const run = held({ counts: 'none' }).scope('w1', { released: true }).look()
    expect(run.phase).toBe('idle')
    expect(run.proof.unverified).toContain('does not count')
    expect(run.all('idle')[0]?.proof.arrivals).toBe('unknown')
  })

  test('is idle by its word, whatever else it counts', () => {
    const run = held({ counts: 'none' }).scope('w1', { released: true, active: 1 }).look()
    expect(run.phase).toBe('idle')
    expect(run.all('idle')[0]?.proof.samples).toHaveLength(1)
  })

  test('is not idle by its word of a process that is not listed any more', () => {
    const run = held({ counts: 'none', scopes: { w2: { released: true } } })
      .look()
      .unlist('w2')
    expect(run.scope('w1', { released: true }).looks(1_000).phase).toBe('draining')
  })

  test('tells in its reading what it can not see', () => {
    const run = held({ counts: 'none', present: { unverified: 'no view of node 2' } })
    run.scope('w1', { released: true }).look()
    expect(run.proof.unverified).toBe('no view of node 2')
  })

  test('is not idle by a word from before the hold took effect', () => {
    const run = held({ counts: 'none', scopes: { w1: { released: true } } })
    run.lookAt(10, { stale: 10 })
    expect(run.phase).toBe('draining')
  })

  test('is not idle by the word of one process only', () => {
    const run = held({ counts: 'none', scopes: { w2: {} } }).scope('w1', { released: true })
    expect(run.looks(1_000).phase).toBe('draining')
  })

  test('is idle by its word only while the hold is in force', () => {
    const scopes = { w1: { released: true, inForce: false } }
    expect(held({ counts: 'none', scopes }).looks(1_000).phase).toBe('draining')
  })
})
