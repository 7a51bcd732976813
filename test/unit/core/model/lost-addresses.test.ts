import { expect, test } from 'vitest'
import { chunks, PLAYED, playChunk } from '../../../model/chunk.js'
import { NAMES_FROM } from '../../../model/scenario.js'

test.each(chunks(NAMES_FROM, 400))(
  `all that is said agrees with the truth while names do not resolve, ${PLAYED} seeds from %i`,
  { timeout: 120_000 },
  async (first) => {
    expect(await playChunk(first)).toEqual([])
  },
)
