import { describe, expect, it } from 'vitest'
import { Costs } from '../../../../src/core/balancer/look/cadence.js'

/** What a look takes after some, each with its end and what it took. */
function after(...looks: readonly (readonly [at: number, took: number])[]): number {
  const costs = new Costs()
  for (const [at, took] of looks) costs.add(at, took)
  return costs.lowest
}

describe('what a look takes at present', () => {
  it('is nothing before the first look', () => {
    expect(after()).toBe(0)
  })

  it('is the least of the last three looks, however long ago', () => {
    expect(after([0, 1], [10_000, 5], [20_000, 7], [30_000, 9])).toBe(5)
    expect(after([10_000, 5], [20_000, 7], [30_000, 9], [40_000, 8])).toBe(7)
  })

  it('is the least of the last quarter of a second, if that is more', () => {
    const looks = [10, 20, 30, 40, 50, 60].map((at) => [at, at / 10] as const)
    expect(after(...looks)).toBe(1)
    expect(after(...looks, [270, 9])).toBe(3)
  })
})
