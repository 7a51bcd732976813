import { expect, test } from 'vitest'
import { chunks, PLAYED, playChunk } from '../../../model/chunk.js'
import { LATE_FROM } from '../../../model/scenario.js'

test.each(chunks(LATE_FROM, 400))(
  `all that is said agrees with the truth while threads are late, ${PLAYED} seeds from %i`,
  { timeout: 120_000 },
  async (first) => {
    expect(await playChunk(first)).toEqual([])
  },
)
