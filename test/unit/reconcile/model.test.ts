import { describe, expect, it } from 'vitest'
import { play } from './story.js'

/** So many seeds a test; `RECONCILE_RUNS` and `RECONCILE_FROM` play more of them. */
const RUNS = Number(globalThis.process.env['RECONCILE_RUNS'] ?? 8)
const FROM = Number(globalThis.process.env['RECONCILE_FROM'] ?? 1)

describe('a reconciler in a random world', () => {
  it.each([
    ['one process', FROM],
    ['one process', FROM + RUNS],
    ['two under a lease', FROM + 2 * RUNS],
    ['two without a lease', FROM + 3 * RUNS],
  ] as const)(
    'touches ours, keeps the floor, ends as wanted: %s, seeds from %d',
    async (mode, from) => {
      const wrong: string[] = []
      let taken = 0
      for (let seed = from; seed < from + RUNS; seed += 1) {
        const end = await play(seed, mode)
        for (const what of end.wrong) wrong.push(`seed ${seed}: ${what}`)
        taken += end.taken
      }
      expect(wrong).toEqual([])
      expect(taken).toBeGreaterThan(RUNS)
    },
    120_000,
  )
})
