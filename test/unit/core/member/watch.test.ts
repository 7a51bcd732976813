import { describe, expect, test } from 'vitest'
import { started, type MemberRun, type RunOptions } from './member-run.js'

function watching(options: RunOptions = {}): MemberRun {
  return started({ goal: { kind: 'watch' }, own: 'drain', ...options })
}

describe('goal watch', () => {
  test('changes nothing, whatever it sees', () => {
    const run = watching({ own: 'ready', escalateAfter: 10, timeout: 100 }).looks(500)
    run.set({ own: 'drain' }).looks(3_000).set({ own: 'ready' }).looks(500)
    expect(run.changes).toEqual([])
    expect(run.outcome).toBe(null)
  })

  test('follows a drain of another client to idle', () => {
    const run = watching({ own: 'ready' }).look()
    expect(run.phase).toBe('active')
    expect(run.set({ own: 'drain' }).look().phase).toBe('draining')
    run.mark().lookAt(500).lookAt(999)
    expect(run.phase).toBe('draining')
    run.lookAt(1_000)
    expect(run.said).toEqual(['phase', 'idle'])
  })

  test('begins with the first look that shows a drain', () => {
    const run = watching().look().mark()
    expect(run.proof.effectiveSince).toBe(run.now)
  })

  test('takes an inherited drain for a drain', () => {
    const run = watching({ own: 'ready', present: { inherited: 'drain' } }).looks(2_000)
    expect(run.phase).toBe('idle')
  })

  test('does not take an inherited ready for a drain', () => {
    const run = watching({ own: 'ready', present: { inherited: 'ready' } }).looks(2_000)
    expect(run.phase).toBe('active')
  })

  test('does not take an unknown state for a drain', () => {
    expect(watching().set({ own: 'unknown' }).looks(2_000).phase).toBe('active')
  })

  test('does not verify an idle of a product without counts', () => {
    const run = watching({ counts: 'none', scopes: { w1: { released: true } } }).looks(2_000)
    expect(run.phase).toBe('idle')
    expect(run.why).toMatchObject([{ code: 'unreadable' }])
    expect(run.why[0]?.text).toContain('does not count work')
  })

  test('does not verify an idle of an absent member without counts', () => {
    const run = watching({ counts: 'none', scopes: { w1: { released: false } } }).looks(500)
    run.vanish().looks(200).scope('w1', { released: true }).looks(200)
    expect(run.outcome).toBe('gone')
    expect(run.all('idle')).toHaveLength(1)
    expect(run.proof.unverified).toContain('does not count work')
  })

  test('does not verify an idle of a member absent from the first look on', () => {
    const run = watching({ counts: 'none', scopes: { w1: { released: true } } })
      .vanish()
      .looks(300)
    expect(run.all('idle')).toHaveLength(1)
    expect(run.proof.unverified).toContain('does not count work')
  })

  test('keeps the hints of the time when idle was said', () => {
    const run = watching({ present: { unverified: 'set x' } }).looks(2_000)
    run.set({ unverified: 'set y' }).look()
    expect(run.proof.unverified).toBe('set x')
  })

  test('does not verify an idle of an absent member seen in part', () => {
    const scopes = { w1: { active: 1 } }
    const run = watching({ own: 'ready', present: { unverified: 'set x' }, scopes }).look()
    run.vanish().looks(200).scope('w1', { active: 0 }).looks(2_000)
    expect(run.outcome).toBe('gone')
    expect(run.all('idle')).toHaveLength(1)
    expect(run.proof.unverified).toBe('set x')
  })

  test('waits for a process that stayed at ready, and names it', () => {
    const run = watching({ scopes: { w2: { admin: 'ready', old: true } } }).looks(2_000)
    expect(run.phase).toBe('draining')
    expect(run.why).toMatchObject([{ code: 'old-scope', scope: 'w2' }])
    expect(run.scope('w2', { open: false }).looks(2_000).phase).toBe('idle')
  })

  test('names no process of a serving member', () => {
    const run = watching({ own: 'ready', scopes: { w1: { admin: 'ready' } } }).look()
    expect(run.codes).toEqual([])
  })

  test('takes a process at drain for closed, but not for sealed', () => {
    const run = watching({ own: 'maint', scopes: { w1: { admin: 'drain' } } }).looks(2_000)
    expect(run.phase).toBe('idle')
    expect(run.proof.sealed).toBe(false)
  })

  test('returns to active when the member is opened', () => {
    const run = watching().looks(2_000).set({ own: 'ready' }).look()
    expect(run.phase).toBe('active')
    expect(run.said).toEqual(['phase'])
    expect(run.proof).toMatchObject({ proof: null, verdict: null, sealed: false })
  })

  test('reports a lost idle', () => {
    const run = watching().looks(2_000).scope('w1', { active: 1 }).look()
    expect(run.said).toEqual(['idle-lost', 'phase'])
    expect(run.phase).toBe('draining')
  })

  test('keeps idle where a process can not be read for a moment', () => {
    expect(watching().looks(2_000).scope('w1', { state: 'unread' }).look().said).toEqual([])
  })

  test('says idle once', () => {
    expect(watching().looks(5_000).all('idle')).toHaveLength(1)
  })

  test('is sealed if the member is in maint', () => {
    expect(watching({ own: 'maint' }).looks(2_000).proof.sealed).toBe(true)
    expect(watching().looks(2_000).proof.sealed).toBe(false)
  })

  test('is not verified if the reading says so', () => {
    const run = watching({ present: { unverified: 'no stats socket' } }).looks(2_000)
    expect(run.proof.unverified).toBe('no stats socket')
  })

  test('ends with a member that is surely gone', () => {
    const run = watching().vanish().look()
    expect(run.outcome).toBe(null)
    expect(run.looks(2_000).outcome).toBe('gone')
  })

  test('proves idle first if a process is listed for a removed member', () => {
    const run = watching().scope('w1', { active: 1 }).vanish().looks(2_000)
    expect([run.phase, run.outcome]).toEqual(['draining', null])
    expect(run.scope('w1', { active: 0 }).looks(2_000).outcome).toBe('gone')
    expect([run.all('idle').length, run.all('removed').length]).toEqual([1, 1])
    expect(run.proof.sealed).toBe(false)
  })

  test('ends as gone if idle was said before the removal', () => {
    const run = watching().looks(2_000).vanish().look().look({ after: 20 })
    expect([run.outcome, run.all('idle-lost').length]).toEqual(['gone', 0])
  })

  test('ends with a replaced member', () => {
    const run = watching().look().set({ identity: 'x' }).look().look({ after: 20 })
    expect(run.outcome).toBe('gone')
  })

  test('reports nothing after a failed look', () => {
    const run = watching().lookAt(500).lookAt(1_400)
    expect(run.fail().fail().all('idle')).toEqual([])
  })

  test('is not moved by a failed look, whatever the one before said', () => {
    const scopes = { w1: { released: true, active: 2 } }
    const run = started({ goal: { kind: 'watch' }, own: 'drain', counts: 'none', scopes }).look()
    run.look()
    expect(run.phase).toBe('idle')
    expect(run.fail().said).toEqual(['fault'])
  })

  test('can be released before the first look', () => {
    const run = started({ goal: { kind: 'watch' } })
    run.put({ type: 'release', claim: run.claim.id })
    expect(run.effects).toEqual([])
  })

  test('waits for a first look', () => {
    expect(watching().fail().phase).toBe('active')
  })

  test('reports once that the member is gone, and looks no further', () => {
    const run = watching().vanish().looks(2_000).look().look({ after: 20 })
    expect(run.all('removed')).toHaveLength(1)
  })

  test('keeps its proof if the member is replaced', () => {
    const run = watching().looks(2_000).set({ identity: 'x', own: 'ready' }).look()
    expect(run.phase).toBe('idle')
    expect(run.look({ after: 20 }).phase).toBe('removed')
    expect(run.proof.proof).not.toBe(null)
  })

  test('is not sealed any more once it is opened', () => {
    const run = watching({ own: 'maint' }).looks(2_000).set({ own: 'ready' }).look()
    expect(run.proof.sealed).toBe(false)
  })

  test('is verified if nothing says otherwise', () => {
    expect(watching().looks(2_000).proof.unverified).toBe(null)
  })

  test('counts the clock of the product from the effect on', () => {
    const run = watching({ own: 'ready', blind: 1_100, scopes: { w1: { lived: 0 } } }).look()
    run.set({ own: 'drain' }).scope('w1', { lived: 1_000 }).look().look().mark()
    run.scope('w1', { lived: 1_200 }).lookAt(1_200)
    expect(run.phase).toBe('draining')
  })

  test('starts the rule anew after the member was open', () => {
    const run = watching().lookAt(500).set({ own: 'ready' }).lookAt(900).set({ own: 'drain' })
    run.lookAt(1_000).lookAt(1_500).lookAt(1_999)
    expect(run.phase).toBe('draining')
    expect(run.lookAt(2_000).phase).toBe('idle')
  })
})
