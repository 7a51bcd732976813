import { expect, test } from 'vitest'
import { combinedOf, playCombined } from '../../model/combined-story.js'

/** `npm run soak -- combined` plays more. 20104 has found a fault of the core. */
const SEEDS = [...Array.from({ length: 30 }, (_, n) => n + 1), 20_104]

test.each(SEEDS)('a random story over several balancers tells the truth, seed %i', async (seed) => {
  const { faults } = await playCombined(combinedOf(seed))
  expect(faults).toEqual([])
})
