import * as fc from 'fast-check'
import { expect, it } from 'vitest'
import { thin, type Point } from '../../../src/cli/report/lane.js'

const points = fc
  .array(
    fc.record({ active: fc.nat(9), queued: fc.nat(9), old: fc.nat(9), complete: fc.boolean() }),
    {
      minLength: 1,
      maxLength: 200,
    },
  )
  .map((all) =>
    all.map((counts, at): Point => ({
      ...counts,
      at,
      oldest: null,
      phase: 'draining',
      own: 'drain',
      health: 'up',
      why: '',
    })),
  )

it('a thinned line is nowhere below what was seen', () => {
  fc.assert(
    fc.property(points, fc.integer({ min: 2, max: 50 }), (all, most) => {
      const left = thin(all, most)
      expect(left.length).toBeLessThanOrEqual(most)
      for (const point of all) {
        const shown = left.findLast(({ at }) => at <= point.at)!
        for (const key of ['active', 'queued', 'old'] as const)
          expect(shown[key]).toBeGreaterThanOrEqual(point[key])
        if (!point.complete) expect(shown.complete).toBe(false)
      }
    }),
  )
})

it('a thinned line keeps its last point as it is', () => {
  fc.assert(
    fc.property(points, (all) => {
      expect(thin(all, 5).at(-1)).toEqual(all.at(-1))
    }),
  )
})
