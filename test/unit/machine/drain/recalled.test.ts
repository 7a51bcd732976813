import { describe, expect, test } from 'vitest'
import { failure, held, idle, started } from '../member-run.js'

describe('a change that is checked once more before it is sent', () => {
  test('does not exist if nothing is under way', () => {
    const run = started().put({ type: 'recalled' })
    expect(run.effects).toEqual([])
    expect(run.state.hold.wish).toBe('none')
    expect(held({ maint: 'cuts' }).put({ type: 'recalled' }).effects).toEqual([])
  })

  test('is sent if it is a drain', () => {
    const run = started({ maint: 'cuts' }).look()
    const { change } = run
    expect(run.put({ type: 'recalled' }).change).toBe(change)
  })

  test('is sent if it is not a hold', () => {
    const run = held({ maint: 'cuts' }).look().open().look()
    const { change } = run
    expect(run.put({ type: 'recalled' }).change).toBe(change)
  })

  test('is not sent if it is a hold and an undo has begun', () => {
    const run = started().look().open()
    run.put({ type: 'recalled' })
    expect(run.state.hold.pending).toBe(null)
    expect(run.look().outcome).toBe('restored')
    expect(run.sentSoFar).toEqual(['hold drain'])
  })

  test('is sent if the member is absent now', () => {
    const run = started({ hold: 'maint' }).look()
    const { change } = run
    run.set({ maint: 'cuts' }).vanish().look()
    expect(run.put({ type: 'recalled' }).change).toBe(change)
  })

  test('is lowered if it puts back a maint that cuts', () => {
    const run = idle({ seal: 'gentle' })
    expect(run.own).toBe('maint')
    run.set({ own: 'ready', maint: 'cuts' }).scope('w1', { incarnation: 'w1.2' }).look()
    expect(run.state.hold).toMatchObject({ wish: 'drain' })
  })

  test('keeps what was confirmed below maint', () => {
    const run = held({ escalateAfter: 500, scopes: { w1: { active: 1 } } }).looks(600)
    expect(run.change).toMatchObject({ to: 'maint' })
    run.set({ maint: 'cuts' }).look().put({ type: 'recalled' })
    expect(run.state.hold).toMatchObject({ wish: 'drain', confirmed: 'drain' })
  })
})

describe('a first hold to maint, refused because maint cuts', () => {
  const refused = (onTimeout: 'fail' | 'terminate') =>
    started({ hold: 'maint', onTimeout, timeout: 60_000 })
      .look()
      .set({ maint: 'cuts' })
      .refuse(failure('CONFLICT', true))
      .look({ after: 300 })

  test('is a drain the next time', () => {
    expect(refused('fail').sent).toBe('hold drain')
  })

  test("is maint again on the caller's word", () => {
    expect(refused('terminate').sent).toBe('hold maint')
  })
})

describe('a seal that a reload forgot, with a maint that cuts', () => {
  test.each(['fail', 'terminate'] as const)('is a drain again under onTimeout %s', (onTimeout) => {
    const run = idle({ seal: 'always', maint: 'cuts', onTimeout, timeout: 60_000 })
    expect(run.own).toBe('maint')
    run.set({ own: 'ready' }).scope('w1', { incarnation: 'w1.2', active: 2 }).look()
    expect(run.sent).toBe('hold drain')
  })
})

describe('a maint that is checked before it is sent', () => {
  test('is sent if the member was gentle and is absent now', () => {
    const run = started({ hold: 'maint', maint: 'cuts', present: { maint: 'gentle' } }).look()
    expect(run.sent).toBe('hold maint')
    const { change } = run
    run.vanish().look()
    expect(run.put({ type: 'recalled' }).change).toBe(change)
  })

  test('is not a seal if it puts an idle member back', () => {
    const run = idle({ hold: 'maint', seal: 'always' })
    run.set({ own: 'ready' }).scope('w1', { incarnation: 'w1.2' }).look()
    expect(run.change).toMatchObject({ to: 'maint' })
    run.set({ maint: 'cuts' }).look().put({ type: 'recalled' })
    expect(run.state.hold.wish).toBe('drain')
  })

  test("puts an idle member back on the caller's word", () => {
    const run = idle({ hold: 'maint', onTimeout: 'terminate', timeout: 60_000 }).settle()
    run.set({ own: 'ready' }).scope('w1', { incarnation: 'w1.2' }).look()
    const { change } = run
    run.set({ maint: 'cuts' }).look()
    expect(run.put({ type: 'recalled' }).change).toBe(change)
  })
})

test('a first hold that an undo finds unsent is recalled', () => {
  const run = started({ hold: 'maint' }).look()
  expect(run.sent).toBe('hold maint')
  run.open().set({ maint: 'cuts' }).look().put({ type: 'recalled' })
  expect(run.state.hold.pending).toBe(null)
  expect(run.state.hold.wish).toBe('none')
  expect(run.look().outcome).toBe('restored')
})
