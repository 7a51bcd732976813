import { expect, test } from 'vitest'
import { chunks, PLAYED, playChunk } from '../../../model/chunk.js'

test.each(chunks(1, 1_000))(
  `the truth agrees with all that is said, ${PLAYED} seeds from %i`,
  { timeout: 120_000 },
  async (first) => {
    expect(await playChunk(first)).toEqual([])
  },
)
