import { describe, expect, test } from 'vitest'
import { held, idle, started } from '../member-run.js'

describe('arrivals are unchanged for the quiet time', () => {
  test('settle is the quiet time', () => {
    const run = held({ settle: 700 }).lookAt(100).lookAt(699)
    expect(run.phase).toBe('draining')
    expect(run.lookAt(700).phase).toBe('idle')
  })

  test('blind is, where it is longer than settle', () => {
    const run = held({ settle: 700, blind: 1_100 }).lookAt(100).lookAt(1_099)
    expect(run.phase).toBe('draining')
    expect(run.lookAt(1_100).phase).toBe('idle')
  })

  test('settle is, where it is longer than blind', () => {
    const run = held({ settle: 1_100, blind: 700 }).lookAt(100).lookAt(1_099)
    expect(run.phase).toBe('draining')
    expect(run.lookAt(1_100).phase).toBe('idle')
  })

  test('a rise starts it anew', () => {
    const run = held().lookAt(500).scope('w1', { arrivals: 101 }).lookAt(900).lookAt(1_899)
    expect(run.phase).toBe('draining')
    expect(run.lookAt(1_900).phase).toBe('idle')
  })

  test('a fall starts it anew', () => {
    const run = held().lookAt(500).scope('w1', { arrivals: 99 }).lookAt(900).lookAt(1_899)
    expect(run.phase).toBe('draining')
    expect(run.lookAt(1_900).phase).toBe('idle')
  })

  test('an arrival makes older samples worthless', () => {
    const run = held().lookAt(500).scope('w1', { arrivals: 101 }).lookAt(900)
    expect(run.state.proof.scopes.get('w1')?.zeros?.first.sampledAt).toBe(run.origin + 900)
  })

  test('an arrival while work is in flight is one too', () => {
    const run = held({ scopes: { w1: { active: 1 } } }).lookAt(500)
    run.scope('w1', { arrivals: 101 }).lookAt(600).scope('w1', { active: 0 }).lookAt(700)
    run.lookAt(1_599)
    expect(run.phase).toBe('draining')
    expect(run.lookAt(1_600).phase).toBe('idle')
  })

  test('an arrival in another process is one too', () => {
    const run = held({ scopes: { w2: {} } })
      .lookAt(500)
      .scope('w2', { arrivals: 101 })
    run.lookAt(900).lookAt(1_899)
    expect(run.phase).toBe('draining')
    expect(run.lookAt(1_900).phase).toBe('idle')
  })

  test('it runs while a last request is in flight', () => {
    const run = held({ scopes: { w1: { active: 1 } } })
      .looks(5_000)
      .scope('w1', { active: 0 })
    run.mark().lookAt(10).lookAt(30)
    expect(run.phase).toBe('idle')
  })

  test('it runs while the member is queued for', () => {
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

  test('it begins with the answer, not with the number that may be old', () => {
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

  test('a moment without a reading does not start it anew', () => {
    const run = held().lookAt(500).scope('w1', { state: 'unread' }).lookAt(600)
    run.scope('w1', { state: 'read' }).lookAt(900).lookAt(1_000)
    expect(run.phase).toBe('idle')
  })

  test('an arrival in a moment without a reading starts it anew', () => {
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

  test('the first zero, where arrivals are not counted', () => {
    const run = held({ scopes: { w1: { arrivals: undefined as never } } }).lookAt(70)
    const at = run.iso(run.now)
    expect(run.idle().all('idle')[0]?.proof.quietSince).toBe(at)
  })
})

describe('time the product did not live through', () => {
  const lived = (ms: number) => ({ lived: ms })

  test('its own clock must show the time for which it can hide work', () => {
    const run = held({ blind: 1_100 }).scope('w1', lived(50_000)).lookAt(10)
    run.scope('w1', lived(51_099)).lookAt(3_000)
    expect(run.phase).toBe('draining')
    run.scope('w1', lived(51_100)).lookAt(3_010)
    expect(run.phase).toBe('idle')
  })

  test('its clock alone is not enough', () => {
    const run = held({ blind: 1_100 }).scope('w1', lived(50_000)).lookAt(10)
    run.scope('w1', lived(90_000)).lookAt(1_099)
    expect(run.phase).toBe('draining')
  })

  test('settle is not counted by its clock', () => {
    const run = held({ settle: 3_000, blind: 1_100 }).scope('w1', lived(50_000)).lookAt(10)
    expect(run.scope('w1', lived(51_100)).lookAt(3_000).phase).toBe('idle')
  })

  test('its clock counts from the newest arrival', () => {
    const run = held({ blind: 1_100 }).scope('w1', lived(50_000)).lookAt(10)
    run.scope('w1', { arrivals: 101, lived: 51_000 }).lookAt(1_010)
    run.scope('w1', lived(52_099)).lookAt(5_000)
    expect(run.phase).toBe('draining')
    expect(run.scope('w1', lived(52_100)).lookAt(5_010).phase).toBe('idle')
  })

  test('its clock counts from the effect of the hold', () => {
    const run = started({ blind: 1_100, scopes: { w1: lived(10_000) } }).hold()
    run.scope('w1', lived(50_000)).lookAt(10).scope('w1', lived(51_000)).lookAt(1_500)
    expect(run.phase).toBe('draining')
  })

  test('slow answers do not lengthen it where its own clock tells', () => {
    const run = held({ scopes: { w1: lived(0) } })
      .lookAt(10)
      .scope('w1', lived(2_000))
    run.lookAt(400, { took: 500 }).scope('w1', lived(2_500)).lookAt(1_000)
    expect(run.phase).toBe('idle')
  })

  test('a clock that is not told any more does not hold it back', () => {
    const run = held({ scopes: { w1: lived(0) } })
      .lookAt(10)
      .scope('w1', { lived: undefined as never })
    expect(run.lookAt(1_000).phase).toBe('idle')
  })

  test('slow answers lengthen it where its clock is not told now', () => {
    const run = held({ scopes: { w1: lived(0) } }).lookAt(10)
    run
      .lookAt(400, { took: 500 })
      .scope('w1', { lived: undefined as never })
      .lookAt(1_010)
    expect(run.phase).toBe('draining')
    expect(run.lookAt(1_510).phase).toBe('idle')
  })

  test('a clock that fell starts it anew', () => {
    const run = held({ blind: 1_100 }).scope('w1', lived(50_000)).lookAt(10)
    run.scope('w1', lived(40_000)).lookAt(1_000).scope('w1', lived(60_000)).lookAt(2_099)
    expect(run.phase).toBe('draining')
    expect(run.lookAt(2_100).phase).toBe('idle')
  })

  test('a clock that stands still starts nothing anew', () => {
    const run = held({ scopes: { w1: lived(50_000) } })
      .lookAt(10)
      .lookAt(500)
    expect(run.lookAt(1_000).phase).toBe('idle')
  })

  test('a clock that is told from the second look on counts from there', () => {
    const run = held({ blind: 1_100 }).lookAt(10).scope('w1', lived(50_000)).lookAt(500)
    run.scope('w1', lived(51_099)).lookAt(2_000)
    expect(run.phase).toBe('draining')
    expect(run.scope('w1', lived(51_100)).lookAt(2_010).phase).toBe('idle')
  })

  test('without arrivals its clock must show it as well', () => {
    const scopes = { w1: { arrivals: undefined as never, lived: 0 } }
    const run = held({ scopes, blind: 1_100 }).lookAt(10)
    expect(run.scope('w1', lived(1_099)).lookAt(5_000).phase).toBe('draining')
    expect(run.scope('w1', lived(1_100)).lookAt(5_010).phase).toBe('idle')
  })

  test('an answer of 251 ms lengthens it by what it took', () => {
    const run = held().lookAt(10).lookAt(300, { took: 251 }).lookAt(1_250)
    expect(run.phase).toBe('draining')
    expect(run.lookAt(1_251).phase).toBe('idle')
  })

  test('an answer of 250 ms does not', () => {
    const run = held().lookAt(10).lookAt(300, { took: 250 })
    expect(run.lookAt(1_000).phase).toBe('idle')
  })

  test('two slow answers lengthen it by both', () => {
    const run = held().lookAt(10).lookAt(100, { took: 300 }).lookAt(500, { took: 300 })
    run.lookAt(1_599)
    expect(run.phase).toBe('draining')
    expect(run.lookAt(1_600).phase).toBe('idle')
  })

  test('a slow answer before an arrival lengthens nothing', () => {
    const run = held().lookAt(10).lookAt(100, { took: 300 }).scope('w1', { arrivals: 101 })
    expect(run.lookAt(500).lookAt(1_500).phase).toBe('idle')
  })

  test('a slow answer before the hold took effect lengthens nothing', () => {
    const run = started().look({ took: 300 }).answer().mark().lookAt(10)
    expect(run.lookAt(1_000).phase).toBe('idle')
  })

  test('a slow answer that shows an arrival lengthens nothing', () => {
    const run = held().lookAt(10).scope('w1', { arrivals: 101 }).lookAt(100, { took: 300 })
    expect(run.lookAt(1_400).phase).toBe('idle')
  })

  test('without arrivals slow answers lengthen it as well', () => {
    const run = held({ scopes: { w1: { arrivals: undefined as never } } }).lookAt(10)
    run.lookAt(100, { took: 300 }).lookAt(3_309)
    expect(run.phase).toBe('draining')
    expect(run.lookAt(3_310).phase).toBe('idle')
  })
})
