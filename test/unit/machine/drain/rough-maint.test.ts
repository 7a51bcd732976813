import { describe, expect, test } from 'vitest'
import { held, started, type MemberRun, type RunOptions } from '../member-run.js'

/** The change under way is about to be sent. */
function sending(run: MemberRun): MemberRun {
  return run.put({ type: 'recalled' })
}

/** A maint was decided on where it is gentle; then the member is said to cut. */
function roughened(options: RunOptions = {}): MemberRun {
  const run = started({ hold: 'maint', ...options }).look()
  expect(run.sent).toBe('hold maint')
  return run.set({ maint: 'cuts' }).scope('w1', { active: 3 })
}

describe('a maint that is found to cut before it is sent', () => {
  test('is lowered to drain', () => {
    const run = sending(roughened().look())
    expect(run.sent).toBe('hold drain')
    expect(run.state.hold).toMatchObject({ wish: 'drain', confirmed: 'none', floor: 'granted' })
  })

  test("is sent on the caller's word", () => {
    const run = roughened({ onTimeout: 'terminate', timeout: 60_000 }).look()
    const { change } = run
    expect(sending(run).change).toBe(change)
  })

  test('is sent if no look has said so', () => {
    const run = roughened()
    const { change } = run
    expect(sending(run.fail()).change).toBe(change)
  })

  test('is sent if maint is gentle', () => {
    const run = started({ hold: 'maint' }).look().look()
    const { change } = run
    expect(sending(run).change).toBe(change)
    expect(run.effects).toEqual([])
  })

  test('is not sent if it is a seal', () => {
    const run = held({ seal: 'gentle' }).lookAt(100).lookAt(1_000)
    expect(run.sent).toBe('hold maint')
    sending(run.set({ maint: 'cuts' }).look())
    expect(run.looks(2_000).sentSoFar).toEqual(['hold drain', 'hold maint'])
    expect(run.phase).toBe('idle')
    expect(run.state.proof.sealed).toBe(false)
  })

  test('is not sent if it is an escalation', () => {
    const run = held({ escalateAfter: 500, scopes: { w1: { active: 1 } } }).looks(600)
    expect(run.change).toMatchObject({ kind: 'hold', to: 'maint' })
    sending(run.set({ maint: 'cuts' }).look())
    expect(run.looks(5_000).sentSoFar).toEqual(['hold drain', 'hold maint'])
  })
})

describe('an unsent seal that the caller wants, with a maint that cuts', () => {
  const sealing = (): MemberRun => {
    const run = held({ seal: 'always', maint: 'cuts' }).lookAt(100).lookAt(1_000)
    expect(run.sent).toBe('hold maint')
    return run
  }

  test('is sent while the verdict stands', () => {
    const run = sealing().look()
    const { change } = run
    expect(sending(run).change).toBe(change)
  })

  test.each([
    ['work was seen', { active: 2, arrivals: 102 }],
    ['something came and went', { arrivals: 101 }],
  ] as const)('waits for another verdict where %s', (_, figures) => {
    const run = sealing().scope('w1', figures).look()
    sending(run)
    expect(run.sent).toBe(null)
    run.scope('w1', { active: 0 }).look().looks(900)
    expect(run.sentSoFar).toEqual(['hold drain', 'hold maint'])
    expect(run.looks(400).sentSoFar).toEqual(['hold drain', 'hold maint', 'hold maint'])
  })
})
