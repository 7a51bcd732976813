import { expect, test } from 'vitest'
import { play } from '../../../model/scenario.js'

/** Stories beyond those of the chunks that have found something: a fault of the core, or of the judge. */
const SEEDS = [
  4233, 6329, 6375, 6774, 102949, 104505, 108361, 112433, 114091, 115231, 117047, 117507, 200391,
  206780, 209986, 216900, 220560, 223791, 226197, 231332, 301920, 403820, 409583, 505679, 722035,
  793115, 1002303, 1101089, 1104349, 1106915, 1107343,
]

test.each(SEEDS)('the truth agrees with all that is said, seed %i', async (seed) => {
  expect((await play(seed, false, undefined, false)).faults).toEqual([])
})

/** The same of stories with every disturbance, as `npm run soak -- model` plays them. */
const DISTURBED = [7011989, 7051695, 8003530]

test.each(DISTURBED)('the truth agrees with all that is said, disturbed, seed %i', async (seed) => {
  expect((await play(seed)).faults).toEqual([])
})
