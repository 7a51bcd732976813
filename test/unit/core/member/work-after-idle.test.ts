import { describe, expect, test } from 'vitest'
import { idle, type MemberRun, type RunOptions } from './member-run.js'

/** A member whose call has its outcome; it is held on. */
function outcome(options: RunOptions = {}): MemberRun {
  return idle(options).settle().look()
}

/** Whether it was told that the held idle is lost, and in which words. */
function lost(run: MemberRun): string | undefined {
  const told = run.effects.find((effect) => effect.type === 'lost')
  return told?.error.message
}

describe('arrivals after idle', () => {
  test('in a process that is known are work', () => {
    expect(lost(outcome().scope('w1', { arrivals: 101 }).look())).toContain('got work again')
  })

  test('that a new process brings along from before are not', () => {
    const run = outcome().scope('w2', { arrivals: 7 }).look()
    expect(lost(run)).toBe(undefined)
  })

  test('in the process that replaced another one are work', () => {
    const run = outcome()
    run.scope('w1', { incarnation: 'w1.2', arrivals: 0 }).scope('w2', { arrivals: 7 }).look()
    expect(lost(run)).toContain('got work again')
  })

  test('are not seen in a process that replaced another one and had none', () => {
    const run = outcome().unlist('w1').scope('w2', { arrivals: 0 }).look()
    expect(lost(run)).toBe(undefined)
  })

  test('are not seen in a process that has another name now', () => {
    const run = outcome({ scopes: { w1: { arrivals: 40 } } }).unlist('w1')
    run.scope('old', { incarnation: 'w1.1', arrivals: 40 }).look()
    expect(lost(run)).toBe(undefined)
  })

  test('are seen in a counter that began anew in another incarnation', () => {
    const run = outcome().scope('w1', { incarnation: 'w1.2', arrivals: 1 }).look()
    expect(lost(run)).toContain('got work again')
  })

  test('are not seen in a counter that is zero in another incarnation', () => {
    const run = outcome().scope('w1', { incarnation: 'w1.2', arrivals: 0 }).look()
    expect(lost(run)).toBe(undefined)
  })
})

describe('a process that says since when it counts', () => {
  const from = (arrivals: number): RunOptions => ({
    scopes: { w1: { arrivals, countersFrom: 'a' } },
  })

  test('and counts anew, with something, has got work', () => {
    const run = outcome(from(3)).scope('w1', { arrivals: 3, countersFrom: 'b' }).look()
    expect(lost(run)).toContain('got work again')
  })

  test('and counts anew, with nothing, has got none', () => {
    const run = outcome(from(3)).scope('w1', { arrivals: 0, countersFrom: 'b' }).look()
    expect(lost(run)).toBe(undefined)
  })

  test('and counts on has got work by any other number', () => {
    const run = outcome(from(3)).scope('w1', { arrivals: 2 }).look()
    expect(lost(run)).toContain('the counters of w1 began anew')
  })

  test('and did not say so before has got work by any other number', () => {
    const run = outcome({ scopes: { w1: { arrivals: 3 } } })
    run.scope('w1', { arrivals: 5, countersFrom: 'b' }).look()
    expect(lost(run)).toContain('got work again')
  })
})

describe('a count that fell in the same process', () => {
  test('is told as counters that another client cleared', () => {
    const run = outcome().scope('w1', { arrivals: 0 }).look()
    expect(lost(run)).toContain('the counters of w1 began anew')
  })

  test('is told of the process whose count fell', () => {
    const run = outcome({ scopes: { w2: {} } })
      .scope('w2', { arrivals: 99 })
      .look()
    expect(lost(run)).toContain('the counters of w2 began anew')
  })

  test('is told as work where some is in flight', () => {
    const run = outcome().scope('w1', { arrivals: 1, active: 1 }).look()
    expect(lost(run)).toContain('got work again')
  })

  test('is told as work where the count rose', () => {
    const run = outcome().scope('w1', { arrivals: 150 }).look()
    expect(lost(run)).toContain('got work again')
  })
})
