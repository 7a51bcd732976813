import { expect, test } from 'vitest'
import { chunks, PLAYED, playChunk } from '../../../model/chunk.js'
import { LATE_FROM, play } from '../../../model/scenario.js'

test.each(chunks(LATE_FROM, 400))(
  `all that is said agrees with the truth while threads are late, ${PLAYED} seeds from %i`,
  { timeout: 120_000 },
  async (first) => {
    expect(await playChunk(first)).toEqual([])
  },
)

/** Stories in which a core that believes a zero of such a moment says idle too early, and one about the floor. */
const SEEDS = [400000438, 400000501, 400001441, 400001268, 400002557]

test.each(SEEDS)('a zero that may hide work is no proof, seed %i', async (seed) => {
  expect((await play(seed)).faults).toEqual([])
})
