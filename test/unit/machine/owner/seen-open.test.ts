import { describe, expect, test } from 'vitest'
import type { Sight } from '../../../../src/core/machine/input.js'
import { contradicts } from '../../../../src/core/machine/sighted.js'
import { MemberRun, held, idle } from '../member-run.js'

/** Another run of this process has just seen the member. */
function see(run: MemberRun, sight: Partial<Sight> = {}): MemberRun {
  run.wait(10)
  const known = { identity: '10.0.0.1:80', incarnations: new Map([['w1', 'w1.1']]) }
  const now = { askedAt: run.now, at: run.now }
  return run.put({ type: 'sighted', sight: { own: 'ready', ...known, ...now, ...sight } })
}

/** Whether a sight of another run, just now, makes this one look at once. */
function isUrgent({ state, now }: MemberRun): boolean {
  const at = now + 10
  const incarnations = new Map([['w1', 'w1.1']])
  return contradicts(state, {
    own: 'ready',
    identity: '10.0.0.1:80',
    incarnations,
    askedAt: at,
    at,
  })
}

const inEffect = ({ state }: MemberRun): boolean => state.proof.effectiveSince !== null

describe('a member that another run saw opened after our newest look', () => {
  test('is not idle any more, and the next look begins anew', () => {
    const run = see(idle())
    expect([run.phase, run.outcome, run.state.proof.verdict]).toEqual(['draining', null, null])
    expect(run.all('idle-lost')).toHaveLength(1)
    expect(run.look().phase).toBe('draining') // drained again meanwhile: by whom tells nothing of what came
    expect([run.looks(900).phase, run.looks(400).phase]).toEqual(['draining', 'idle'])
    expect(run.outcome).toBe('idle')
  })

  test('is looked at at once, even if it is only held', () => {
    expect(isUrgent(held().look())).toBe(true)
    expect(isUrgent(idle().settle())).toBe(true)
  })

  test('is looked at once until an own look shows it closed', () => {
    const run = see(held().look())
    expect(isUrgent(run)).toBe(false)
    expect(isUrgent(run.look())).toBe(true)
    expect(isUrgent(run.set({ own: 'ready' }).scope('w1', { incarnation: 'w1.2' }).look())).toBe(
      false,
    )
  })

  test('has no quiet time yet', () => {
    const run = see(held().look().looks(800))
    expect([inEffect(run), run.state.proof.inForce]).toEqual([false, false])
    expect([run.looks(900).phase, run.looks(400).phase]).toEqual(['draining', 'idle'])
    expect(run.all('idle-lost')).toEqual([])
  })

  test('is lost if it was only drained and ours was in maint', () => {
    const run = held({ hold: 'maint' }).look()
    expect(inEffect(see(run, { own: 'maint' }))).toBe(true)
    expect(inEffect(see(run, { own: 'drain' }))).toBe(false)
  })

  test.each([
    ['as it is held', held().look(), { own: 'drain' }],
    ['lower than it', held().look(), { own: 'maint' }],
    ['under another identity', held().look(), { identity: '10.0.0.2:80' }],
  ] as const)('is unchanged if it was seen %s', (_, run, sight) => {
    expect(inEffect(see(run, sight))).toBe(true)
  })

  test('is as our own look says if that is as new', () => {
    const run = held().look()
    const askedAt = run.state.last?.askedAt ?? 0
    expect(inEffect(see(run, { askedAt }))).toBe(true)
    expect(inEffect(see(run, { askedAt: askedAt + 1 }))).toBe(false)
  })

  test('is as our own change has left it since', () => {
    const run = held()
    const { confirmedAt } = run.state.hold
    expect(run.state.last?.askedAt).toBe(confirmedAt)
    expect(inEffect(see(run, { askedAt: confirmedAt }))).toBe(true)
    expect(inEffect(see(run, { askedAt: confirmedAt + 1 }))).toBe(false)
  })

  test('is proved anew behind a seal that is under way', () => {
    const run = held({ seal: 'always' }).look()
    for (let i = 0; i < 200 && run.state.hold.pending === null; i += 1) run.look()
    expect(run.state.proof.verdict).not.toBe(null)
    expect(see(run).state.proof.verdict).toBe(null)
    run.answer().look()
    expect([run.looks(900).phase, run.looks(400).phase]).toEqual(['draining', 'idle'])
    expect(run.state.proof.sealed).toBe(true)
  })

  test('is not held before the first hold has its answer', () => {
    const run = new MemberRun().look()
    const { state } = run
    expect(see(run).state).toEqual(state)
  })

  test('is not known before our first look', () => {
    expect(see(new MemberRun()).state).toEqual(new MemberRun().state)
  })

  test('was seen by our own look too', () => {
    const run = idle().set({ own: 'ready' }).look()
    const { state } = run
    expect(see(run).state).toEqual(state)
  })

  test('keeps the outcome of its run', () => {
    expect(see(idle().settle()).phase).toBe('idle')
    const given = see(held().look().put({ type: 'end', outcome: 'aborted' }))
    expect([given.outcome, inEffect(given)]).toEqual(['aborted', true])
  })

  test('does not affect a watch', () => {
    const run = new MemberRun({ goal: { kind: 'watch' }, own: 'drain' }).look().looks(300)
    expect(inEffect(see(run))).toBe(true)
  })
})
