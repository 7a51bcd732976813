import { expect, test } from 'vitest'
import { isCi } from '../../support/skipped.js'
import { searchRow } from './search/row.js'
import { allPairs, coveringRows, nameOf, pairsOf } from './search/switches.js'

/** Other lists, and deeper, by command: `npm run soak -- pairs --seed 2 --depth 3`. */
const SEED = 1
const ROWS = coveringRows(SEED)
/** One row in so many is searched on a developer's machine. */
const SHARE = 8
/** Rows of one test. */
const CHUNK = 40

const rows = [...ROWS.entries()].filter(([i]) => isCi() || i % SHARE === 0)
const chunks = Array.from({ length: Math.ceil(rows.length / CHUNK) }, (_, i) =>
  rows.slice(i * CHUNK, (i + 1) * CHUNK),
)

test('any two values of two switches occur together in a case', () => {
  const covered = new Set(ROWS.flatMap(pairsOf))
  expect(allPairs().filter(({ key }) => !covered.has(key))).toEqual([])
})

test.each(chunks.map((chunk, i) => ({ chunk, part: i + 1 })))(
  'no rule is broken by switches that occur together, part $part',
  ({ chunk }) => {
    const faults = chunk.flatMap(([i, row]) =>
      searchRow(row, SEED * 100_003 + i, { depth: 2, walks: 8, places: 1 }).faults.map((fault) => ({
        row: `${i + 1}: ${nameOf(row)}`,
        ...fault,
      })),
    )
    expect(faults).toEqual([])
  },
)
