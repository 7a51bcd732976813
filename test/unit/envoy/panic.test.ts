import { describe, expect, test } from 'vitest'
import { panickedPriorities, type PanicHost } from '../../../src/adapters/envoy/read/panic.js'

/** h healthy, d draining, u unhealthy, g degraded; one text per priority. */
function hosts(...priorities: string[]): PanicHost[] {
  return priorities.flatMap((text, priority) =>
    Array.from(text, (letter) => ({
      priority,
      healthy: letter === 'h' || letter === 'g',
      degraded: letter === 'g',
      excluded: letter === 'd',
    })),
  )
}

describe('panic', () => {
  test.each([
    ['one of two draining', ['hd'], []],
    ['two of three draining', ['hdd'], []],
    ['all draining', ['dd'], [0]],
    ['two of three unhealthy', ['huu'], [0]],
    ['one draining and two unhealthy of four', ['hduu'], [0]],
    ['half unhealthy', ['hu'], []],
    ['degraded ones count', ['ggu'], []],
    ['another priority takes everything', ['dd', 'hh'], []],
    ['both priorities down', ['dd', 'uu'], [0, 1]],
  ] as const)('%s', (_, text, panicked) => {
    const rules = { threshold: 50, overprovisioning: 140, failOnPanic: false }
    expect([...panickedPriorities(hosts(...text), rules)]).toEqual(panicked)
  })

  test('never with a threshold of 0, or where a panic is a 503', () => {
    const all = hosts('dd')
    expect(
      panickedPriorities(all, { threshold: 0, overprovisioning: 140, failOnPanic: false }).size,
    ).toBe(0)
    expect(
      panickedPriorities(all, { threshold: 50, overprovisioning: 140, failOnPanic: true }).size,
    ).toBe(0)
  })
})
