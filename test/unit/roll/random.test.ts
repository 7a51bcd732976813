import { expect, test } from 'vitest'
import { cases } from '../../support/cases.js'
import { playRoll, storyOf } from '../../model/roll-story.js'

/** `npm run soak -- rolls` plays more. 12 and 700186 have found faults of the core, 78 one of the judge. */
const SEEDS = [...Array.from({ length: cases(25) }, (_, n) => n + 1), 78, 700_186]

test.each(SEEDS)('a random roll tells the truth and ends, seed %i', async (seed) => {
  expect(await playRoll(storyOf(seed))).toEqual([])
})
