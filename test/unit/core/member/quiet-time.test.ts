import { describe, expect, test } from 'vitest'
import { failure, held, idle, started } from './member-run.js'

describe('arrivals are unchanged for the quiet time', () => {
  test('settle is the quiet time', () => {
    const run = held({ settle: 700 }).lookAt(100).lookAt(699)
    expect(run.phase).toBe('draining')
    expect(run.lookAt(700).phase).toBe('idle')
  })

  test('blind is if it is longer than settle', () => {
    const run = held({ settle: 700, blind: 1_100 }).lookAt(100).lookAt(1_099)
    expect(run.phase).toBe('draining')
    expect(run.lookAt(1_100).phase).toBe('idle')
  })

  test('settle is if it is longer than blind', () => {
    const run = held({ settle: 1_100, blind: 700 }).lookAt(100).lookAt(1_099)
    expect(run.phase).toBe('draining')
    expect(run.lookAt(1_100).phase).toBe('idle')
  })

  test('a rise restarts it', () => {
    const run = held().lookAt(500).scope('w1', { arrivals: 101 }).lookAt(900).lookAt(1_899)
    expect(run.phase).toBe('draining')
    expect(run.lookAt(1_900).phase).toBe('idle')
  })

  test('a fall restarts it', () => {
    const run = held().lookAt(500).scope('w1', { arrivals: 99 }).lookAt(900).lookAt(1_899)
    expect(run.phase).toBe('draining')
    expect(run.lookAt(1_900).phase).toBe('idle')
  })

  test('an arrival makes older samples worthless', () => {
    const run = held().lookAt(500).scope('w1', { arrivals: 101 }).lookAt(900)
    expect(run.proof.scopes.get('w1')?.zeros?.first.sampledAt).toBe(run.origin + 900)
  })

  test('an arrival while work is in flight counts too', () => {
    const run = held({ scopes: { w1: { active: 1 } } }).lookAt(500)
    run.scope('w1', { arrivals: 101 }).lookAt(600).scope('w1', { active: 0 }).lookAt(700)
    run.lookAt(1_599)
    expect(run.phase).toBe('draining')
    expect(run.lookAt(1_600).phase).toBe('idle')
  })

  test('an arrival in another process counts too', () => {
    const run = held({ scopes: { w2: {} } })
      .lookAt(500)
      .scope('w2', { arrivals: 101 })
    run.lookAt(900).lookAt(1_899)
    expect(run.phase).toBe('draining')
    expect(run.lookAt(1_900).phase).toBe('idle')
  })

  test('it runs while the last request is in flight', () => {
    const run = held({ scopes: { w1: { active: 1 } } })
      .looks(5_000)
      .scope('w1', { active: 0 })
    run.mark().lookAt(10).lookAt(30)
    expect(run.phase).toBe('idle')
  })

  test('it runs while work is queued', () => {
    const run = held({ scopes: { w1: { queued: 1 } } })
      .looks(5_000)
      .scope('w1', { queued: 0 })
    run.mark().lookAt(10).lookAt(30)
    expect(run.phase).toBe('idle')
  })

  test('it does not begin before the hold took effect', () => {
    const run = started().set({ own: 'unknown' }).looks(5_000).set({ own: 'ready' })
    run.hold().lookAt(500).lookAt(999)
    expect(run.phase).toBe('draining')
    expect(run.lookAt(1_000).phase).toBe('idle')
  })

  test('it begins with the answer, not with a number that may be old', () => {
    const run = held().lookAt(500).scope('w1', { arrivals: 101 })
    run.lookAt(900, { stale: 300, took: 100 }).lookAt(1_999)
    expect(run.phase).toBe('draining')
    expect(run.lookAt(2_000).phase).toBe('idle')
  })

  test('it does not run in a process that is not in force', () => {
    const run = held({ scopes: { w1: { inForce: false } } }).looks(5_000)
    run.scope('w1', { inForce: true }).mark().lookAt(10).lookAt(1_009)
    expect(run.phase).toBe('draining')
    expect(run.lookAt(1_010).phase).toBe('idle')
  })

  test('it begins with the first reading of a process that joins', () => {
    const run = held().lookAt(500).scope('w2').lookAt(900).lookAt(1_899)
    expect(run.phase).toBe('draining')
    expect(run.lookAt(1_900).phase).toBe('idle')
  })

  test('it begins with the first reading of a process that could not be read', () => {
    const run = held({ scopes: { w2: { state: 'unread' } } }).looks(3_000)
    run.scope('w2', { state: 'read' }).mark().lookAt(10).lookAt(1_009)
    expect(run.phase).toBe('draining')
    expect(run.lookAt(1_010).phase).toBe('idle')
  })

  test('a moment without a reading does not restart it', () => {
    const run = held().lookAt(500).scope('w1', { state: 'unread' }).lookAt(600)
    run.scope('w1', { state: 'read' }).lookAt(900).lookAt(1_000)
    expect(run.phase).toBe('idle')
  })

  test('an arrival in a moment without a reading restarts it', () => {
    const run = held().lookAt(500).scope('w1', { state: 'unread' }).lookAt(600)
    run.scope('w1', { state: 'read', arrivals: 101 }).lookAt(900).lookAt(1_000)
    expect(run.phase).toBe('draining')
  })
})

describe('the proof says since when', () => {
  test('the moment the hold took effect, where nothing arrived since', () => {
    const run = idle()
    expect(run.all('idle')[0]?.proof.quietSince).toBe(run.all('phase')[0]?.at)
  })

  test('the newest arrival of any process', () => {
    const run = held({ scopes: { w2: {} } })
      .lookAt(300)
      .scope('w2', { arrivals: 101 })
    run.lookAt(400).scope('w1', { arrivals: 101 }).lookAt(600)
    const at = run.iso(run.now)
    expect(run.idle().all('idle')[0]?.proof.quietSince).toBe(at)
  })

  test('the first zero if arrivals are not counted', () => {
    const run = held({ scopes: { w1: { arrivals: undefined as never } } }).lookAt(70)
    const at = run.iso(run.now)
    expect(run.idle().all('idle')[0]?.proof.quietSince).toBe(at)
  })
})

describe('time that the product did not live through', () => {
  const lived = (ms: number) => ({ lived: ms })

  test('must show on its clock as long as it can hide work', () => {
    const run = held({ blind: 1_100 }).scope('w1', lived(50_000)).lookAt(10)
    run.scope('w1', lived(51_099)).lookAt(3_000)
    expect(run.phase).toBe('draining')
    run.scope('w1', lived(51_100)).lookAt(3_010)
    expect(run.phase).toBe('draining')
    expect(run.lookAt(3_020).phase).toBe('idle')
  })

  test('is not shown by the look at which its clock jumps', () => {
    // It stood still in the middle of its work: the look came first, the hidden work in the same turn.
    const run = held({ blind: 1_100 }).scope('w1', lived(50_000)).lookAt(10)
    run.scope('w1', lived(50_900)).lookAt(910).scope('w1', lived(52_000)).lookAt(2_010)
    expect(run.phase).toBe('draining')
    run.scope('w1', { arrivals: 101, lived: 52_010 }).lookAt(2_020)
    expect(run.phase).toBe('draining')
    run.scope('w1', lived(53_110)).lookAt(3_200).lookAt(3_210)
    expect(run.phase).toBe('idle')
  })

  test('is not shown by its clock alone', () => {
    const run = held({ blind: 1_100 }).scope('w1', lived(50_000)).lookAt(10)
    run.scope('w1', lived(90_000)).lookAt(1_099)
    expect(run.phase).toBe('draining')
  })

  test('does not count settle by its clock', () => {
    const run = held({ settle: 3_000, blind: 1_100 }).scope('w1', lived(50_000)).lookAt(10)
    run.scope('w1', lived(51_100)).lookAt(2_000)
    expect(run.lookAt(2_999).phase).toBe('draining')
    expect(run.lookAt(3_000).phase).toBe('idle')
  })

  test('is counted from the newest arrival by its clock', () => {
    const run = held({ blind: 1_100 }).scope('w1', lived(50_000)).lookAt(10)
    run.scope('w1', { arrivals: 101, lived: 51_000 }).lookAt(1_010)
    run.scope('w1', lived(52_099)).lookAt(5_000)
    expect(run.phase).toBe('draining')
    expect(run.scope('w1', lived(52_100)).lookAt(5_010).phase).toBe('draining')
    expect(run.lookAt(5_020).phase).toBe('idle')
  })

  test('is counted from the effect of the hold by its clock', () => {
    const run = started({ blind: 1_100, scopes: { w1: lived(10_000) } }).hold()
    run.scope('w1', lived(50_000)).lookAt(10).scope('w1', lived(51_000)).lookAt(1_500)
    expect(run.phase).toBe('draining')
  })

  test('is counted by its clock after the hold was found in place again', () => {
    const run = held({ blind: 1_100, scopes: { w1: lived(10_000) } }).lookAt(10)
    run.set({ own: 'ready' }).scope('w1', { incarnation: 'w1.2' }).look()
    run.refuse(failure('CONFLICT', true)).set({ own: 'drain' })
    run.scope('w1', lived(20_000)).look().mark()
    run.scope('w1', lived(50_000)).lookAt(10).scope('w1', lived(51_000)).lookAt(1_500)
    expect(run.phase).toBe('draining')
    run.scope('w1', lived(51_100)).lookAt(1_600).lookAt(1_700)
    expect(run.phase).toBe('idle')
  })

  test('does not count slow answers if the product tells its clock', () => {
    const run = held({ scopes: { w1: lived(0) } })
      .lookAt(10)
      .scope('w1', lived(2_000))
    run.lookAt(400, { took: 500 }).scope('w1', lived(2_500)).lookAt(1_000)
    expect(run.phase).toBe('idle')
  })

  test('does not wait for a clock that is not told any more', () => {
    const run = held({ scopes: { w1: lived(0) } })
      .lookAt(10)
      .scope('w1', { lived: undefined as never })
    expect(run.lookAt(1_000).phase).toBe('idle')
  })

  test('counts slow answers if the product does not tell its clock now', () => {
    const run = held({ scopes: { w1: lived(0) } }).lookAt(10)
    run
      .lookAt(400, { took: 500 })
      .scope('w1', { lived: undefined as never })
      .lookAt(1_010)
    expect(run.phase).toBe('draining')
    expect(run.lookAt(1_510).phase).toBe('idle')
  })

  test('restarts the quiet time when its clock fell', () => {
    const run = held({ blind: 1_100 }).scope('w1', lived(50_000)).lookAt(10)
    run.scope('w1', lived(40_000)).lookAt(1_000).scope('w1', lived(60_000)).lookAt(1_500)
    expect(run.lookAt(2_099).phase).toBe('draining')
    expect(run.lookAt(2_100).phase).toBe('idle')
  })

  test('restarts nothing when its clock stands still', () => {
    const run = held({ scopes: { w1: lived(50_000) } })
      .lookAt(10)
      .lookAt(500)
    expect(run.lookAt(1_000).phase).toBe('idle')
  })

  test('is counted from the second look if its clock is told from there', () => {
    const run = held({ blind: 1_100 }).lookAt(10).scope('w1', lived(50_000)).lookAt(500)
    run.scope('w1', lived(51_099)).lookAt(2_000)
    expect(run.phase).toBe('draining')
    expect(run.scope('w1', lived(51_100)).lookAt(2_010).phase).toBe('draining')
    expect(run.lookAt(2_020).phase).toBe('idle')
  })

  test('must show on its clock without arrivals as well', () => {
    const scopes = { w1: { arrivals: undefined as never, lived: 0 } }
    const run = held({ scopes, blind: 1_100 }).lookAt(10)
    expect(run.scope('w1', lived(1_099)).lookAt(5_000).phase).toBe('draining')
    expect(run.scope('w1', lived(1_100)).lookAt(5_010).phase).toBe('draining')
    expect(run.lookAt(5_020).phase).toBe('idle')
  })

  test('includes the whole of an answer of 251 ms', () => {
    const run = held().lookAt(10).lookAt(300, { took: 251 }).lookAt(1_250)
    expect(run.phase).toBe('draining')
    expect(run.lookAt(1_251).phase).toBe('idle')
  })

  test('does not include an answer of 250 ms', () => {
    const run = held().lookAt(10).lookAt(300, { took: 250 })
    expect(run.lookAt(1_000).phase).toBe('idle')
  })

  test('includes both of two slow answers', () => {
    const run = held().lookAt(10).lookAt(100, { took: 300 }).lookAt(500, { took: 300 })
    run.lookAt(1_599)
    expect(run.phase).toBe('draining')
    expect(run.lookAt(1_600).phase).toBe('idle')
  })

  test('does not include a slow answer before an arrival', () => {
    const run = held().lookAt(10).lookAt(100, { took: 300 }).scope('w1', { arrivals: 101 })
    expect(run.lookAt(500).lookAt(1_500).phase).toBe('idle')
  })

  test('does not include a slow answer before the hold took effect', () => {
    const run = started().look({ took: 300 }).answer().mark().lookAt(10)
    expect(run.lookAt(1_000).phase).toBe('idle')
  })

  test('does not include a slow answer that shows an arrival', () => {
    const run = held().lookAt(10).scope('w1', { arrivals: 101 }).lookAt(100, { took: 300 })
    expect(run.lookAt(1_400).phase).toBe('idle')
  })

  test('includes slow answers without arrivals as well', () => {
    const run = held({ scopes: { w1: { arrivals: undefined as never } } }).lookAt(10)
    run.lookAt(100, { took: 300 }).lookAt(3_309)
    expect(run.phase).toBe('draining')
    expect(run.lookAt(3_310).phase).toBe('idle')
  })
})
