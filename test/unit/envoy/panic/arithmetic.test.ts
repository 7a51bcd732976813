import { describe, expect, test } from 'vitest'
import {
  balanceOf,
  levelsOf,
  type PanicHost,
  type PanicRules,
} from '../../../../src/adapters/envoy/read/panic.js'

/** h healthy, d draining, u unhealthy, g degraded; one text per priority. */
function hosts(...priorities: string[]): PanicHost[] {
  return priorities.flatMap((text, priority) =>
    Array.from(text, (letter) => ({
      priority,
      healthy: letter === 'h' || letter === 'g',
      degraded: letter === 'g',
      excluded: letter === 'd',
      weight: 1,
    })),
  )
}

const RULES: PanicRules = {
  threshold: 50,
  overprovisioning: 140,
  failOnPanic: false,
  isWeighted: false,
}

const panicked = (all: readonly PanicHost[], rules: PanicRules): number[] => [
  ...balanceOf(levelsOf(all), rules).panicked,
]
const loaded = (all: readonly PanicHost[], rules: PanicRules): number[] => [
  ...balanceOf(levelsOf(all), rules).loaded,
]

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
  ] as const)('%s', (_, text, priorities) => {
    expect(panicked(hosts(...text), RULES)).toEqual(priorities)
  })

  test.each([
    ['one without a healthy host gets none beside another', ['hu', 'd'], [0]],
    ['each gets some where all of them panic', ['huu', 'd'], [0, 1]],
    ['a lower one gets none while the upper one takes all', ['dd', 'hh'], [1]],
  ] as const)('%s', (_, text, priorities) => {
    expect(loaded(hosts(...text), RULES)).toEqual(priorities)
  })

  test('does not happen with a threshold of 0, or where it is a 503', () => {
    const all = hosts('dd')
    expect(panicked(all, { ...RULES, threshold: 0 })).toEqual([])
    expect(panicked(all, { ...RULES, failOnPanic: true })).toEqual([])
  })

  test('counts in whole percents what the priorities can take', () => {
    const rules = { ...RULES, overprovisioning: 100 }
    // 33 + 66: not everything.
    expect(panicked(hosts('huu', 'hhu'), rules)).toEqual([0])
    expect(panicked(hosts('hu', 'hu'), rules)).toEqual([])
    // With nothing healthy at all, every host is used, whatever the threshold.
    expect(panicked(hosts('huu'), { ...rules, overprovisioning: 2 })).toEqual([0])
  })

  test('under weighted_priority_health counts a host by its weight', () => {
    const rules = { ...RULES, isWeighted: true }
    const ill = hosts('hu', 'huu')
    const heavy = ill.map((host, i) => ({ ...host, weight: i === 1 ? 9 : 1 }))
    expect(panicked(ill, rules)).toEqual([])
    expect(panicked(heavy, rules)).toEqual([1])
  })
})
