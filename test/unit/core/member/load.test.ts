import { describe, expect, test } from 'vitest'
import { held, idle, started, type MemberRun } from './member-run.js'

function last(run: MemberRun) {
  const loads = run.all('load')
  return loads[loads.length - 1]!
}

function count(run: MemberRun): number {
  return run.all('load').length
}

describe('the load of a member', () => {
  test('is the work in flight and queued over all processes', () => {
    const run = held({ scopes: { w1: { active: 2, queued: 1 }, w2: { active: 4 } } }).look()
    expect(last(run)).toMatchObject({ active: 6, queued: 1, complete: true })
  })

  test('is a lower bound while one process can not be read', () => {
    const run = held({ scopes: { w1: { active: 2 }, w2: { active: 3, state: 'unread' } } }).look()
    expect(last(run)).toMatchObject({ active: 2, complete: false })
  })

  test('is incomplete without any process', () => {
    expect(last(started().unlist('w1').look())).toMatchObject({ complete: false })
  })

  test('is emitted with all that a live view shows', () => {
    const run = held({ scopes: { w1: { active: 2 }, w2: { active: 3, state: 'unread' } } }).look()
    expect(last(run)).toMatchObject({ phase: 'draining', own: 'drain', health: 'unchecked' })
    expect(last(run).scopes.map(({ scope, state }) => [scope, state])).toEqual([
      ['w1', 'read'],
      ['w2', 'unread'],
    ])
  })

  test('is emitted with the reasons', () => {
    expect(last(held({ scopes: { w1: { active: 2 } } }).look()).why[0]).toMatchObject({
      code: 'in-flight',
      count: 2,
    })
  })

  test('is emitted when it changes', () => {
    const run = held({ scopes: { w1: { active: 2 } } }).look()
    const before = count(run)
    expect(count(run.look())).toBe(before)
    expect(count(run.scope('w1', { active: 1 }).look())).toBe(before + 1)
    expect(count(run.scope('w1', { queued: 1 }).look())).toBe(before + 2)
  })

  test('is emitted again after a second', () => {
    const run = started({ scopes: { w1: { active: 2 } } }).look()
    const before = count(run)
    expect(count(run.look({ after: 999 }))).toBe(before)
    expect(count(run.look({ after: 1 }))).toBe(before + 1)
  })

  test('is emitted again when the reason changes', () => {
    const run = held({ scopes: { w2: {} } }).look()
    const before = count(run)
    expect(count(run.scope('w2', { inForce: false }).look())).toBe(before + 1)
  })

  test('is emitted once while the member is idle', () => {
    const run = idle()
    const before = count(run)
    expect(count(run.looks(5_000))).toBe(before)
  })

  test('is emitted while idle if a process can not be read', () => {
    const run = idle().settle()
    const before = count(run)
    run.scope('w1', { state: 'unread' }).look()
    expect(count(run)).toBe(before + 1)
    expect(last(run)).toMatchObject({ complete: false })
  })

  test('is complete with one process', () => {
    expect(last(held({ scopes: { w1: { active: 2 } } }).look())).toMatchObject({ complete: true })
  })

  test('has moments of the wall clock', () => {
    const run = started({ lateBound: 5_000 }).look().lose().look().lose().look({ after: 1_000 })
    const { why } = last(run)
    // Of a hold that was sent again the newest can come last.
    expect(why.map(({ text }) => text)).toEqual([
      expect.stringContaining(`until ${run.iso(run.now + 5_000)}`),
    ])
  })

  test('comes before the phase that it leads to', () => {
    const run = held({ seal: 'gentle' }).lookAt(100).lookAt(1_000).answer().look()
    const types = run.effects.map((effect) =>
      effect.type === 'emit' ? effect.event.type : effect.type,
    )
    expect(types).toEqual(['in-force', 'load', 'phase', 'idle'])
  })

  test('is emitted after looks only', () => {
    const run = started().look()
    const before = count(run)
    expect(count(run.answer().fail())).toBe(before)
  })

  test('is not emitted for a gone member', () => {
    const run = held().scope('w1', { state: 'ended' }).vanish().look()
    const before = count(run)
    expect(count(run.look({ after: 20 }))).toBe(before)
  })

  test('is emitted under goal watch', () => {
    expect(count(started({ goal: { kind: 'watch' } }).look())).toBe(1)
  })

  test('has the age of the oldest work if the product tells it', () => {
    const scopes = { w1: { active: 1, oldest: 7_000 }, w2: { active: 1, oldest: 9_000 }, w3: {} }
    expect(last(held({ scopes }).look()).oldest).toBe(9_000)
    expect(last(held({ scopes: { w1: { active: 1 } } }).look()).oldest).toBe(null)
    expect(last(held({ scopes: { w1: { active: 1, oldest: 0 } } }).look()).oldest).toBe(0)
  })

  test('has no state of an absent member', () => {
    const run = held({ scopes: { w1: { active: 1 } } })
      .look()
      .vanish()
      .look()
    expect(last(run)).toMatchObject({ own: null, health: null })
  })

  test('comes first if the phase is the first event', () => {
    const run = started({ goal: { kind: 'watch' }, own: 'drain' }).look()
    expect(run.effects.map((one) => one.type === 'emit' && one.event.type)).toEqual([
      'load',
      'phase',
    ])
  })
})
