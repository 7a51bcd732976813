import { expect, test } from 'vitest'
import { cases } from '../../support/cases.js'
import { combinedOf, playCombined } from '../../model/combined-story.js'

/** `npm run soak -- combined` plays more. 1377, 20104, 21082 and 70525 have found faults of the library. */
const SEEDS = [...Array.from({ length: cases(30) }, (_, n) => n + 1), 1_377, 20_104, 21_082, 70_525]

test.each(SEEDS)('story %i tells the truth', async (seed) => {
  const { faults } = await playCombined(combinedOf(seed))
  expect(faults).toEqual([])
})
