import { expect, test } from 'vitest'
import { chunks, PLAYED, playChunk } from '../../../model/chunk.js'

test.each(chunks(1001, 1_000))(
  `all that is said agrees with the truth, ${PLAYED} seeds from %i`,
  { timeout: 120_000 },
  async (first) => {
    expect(await playChunk(first)).toEqual([])
  },
)
