import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { searchPause } from '../../../src/core/balancer/look/cadence.js'

describe('the pause between two searches for drains of others', () => {
  test.each([
    [1, undefined, 1_000],
    [30, undefined, 3_000],
    [30, 50, 3_000],
    [50, 30, 3_000],
  ])('is a hundred looks long, and a second at least: %d ms', (took, before, pause) => {
    expect(searchPause(took, before)).toBe(pause)
  })

  test('does not grow with one slow look', () => {
    expect(searchPause(10_000, 5)).toBe(1_000)
  })

  test('is a minute at most, also while every call runs into its limit', () => {
    expect(searchPause(10_000)).toBe(60_000)
    expect(searchPause(30_000, 30_000)).toBe(60_000)
  })

  test('lies between a second and a minute, whatever the looks took', () => {
    fc.assert(
      fc.property(
        fc.double({ min: 0, noNaN: true }),
        fc.double({ min: 0, noNaN: true }),
        (a, b) => {
          expect(searchPause(a, b)).toBeGreaterThanOrEqual(1_000)
          expect(searchPause(a, b)).toBeLessThanOrEqual(60_000)
        },
      ),
    )
  })
})
