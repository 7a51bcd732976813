import { CASES } from '../../test/unit/machine/search/cases.ts'
import { searchRow, type RowFigures } from '../../test/unit/machine/search/row.ts'
import { search } from '../../test/unit/machine/search/search.ts'
import { allPairs, coveringRows, nameOf } from '../../test/unit/machine/search/switches.ts'

type Say = (line: string) => void

/** Searches every case that deep, or those with a name. @returns whether nothing was found */
export function searchDeep(depth: number, only: string, say: Say): boolean {
  const total = new Total(say)
  for (const { name, one, starts } of CASES.filter((known) => known.name.includes(only))) {
    for (const start of starts) {
      const figures = search(start.node, one, { depth })
      say(`${name}, from ${start.name}: ${figures.states} states, ${figures.steps} steps`)
      total.take(figures)
    }
  }
  return total.end(`${depth} deep`)
}

/** What a search of pairs is made of. */
export interface PairOptions {
  readonly seed: number
  readonly depth: number
  /** Only the row with this number, from 1. */
  readonly row: number | undefined
}

/** How far each row is searched, beside its depth. */
const WALKS = 60
const PLACES = 4

/**
 * Searches a case for each row of a list in which every two values of two switches stand together: from its beginning, and
 * from places that walks at random lead to. @returns whether nothing was found
 */
export function searchPairs({ seed, depth, row: only }: PairOptions, say: Say): boolean {
  const rows = coveringRows(seed)
  say(`${rows.length} cases for ${allPairs().length} pairs of switches, from seed ${seed}`)
  const total = new Total(say)
  for (const [i, row] of rows.entries()) {
    if (only !== undefined && only !== i + 1) continue
    const bounds = { depth, walks: WALKS, places: PLACES }
    const figures = searchRow(row, seed * 100_003 + i, bounds)
    if (figures.faults.length > 0) say(`row ${i + 1}: ${nameOf(row)}`)
    total.take(figures)
  }
  return total.end(`${rows.length} cases, ${depth} deep`)
}

/** What all searches together have come to. */
class Total {
  readonly #say: Say
  readonly #startedAt = performance.now()
  readonly #rules = new Map<string, number>()
  readonly #reached = new Map<string, number>()
  #states = 0
  #steps = 0
  faults = 0

  constructor(say: Say) {
    this.#say = say
  }

  take({ states, steps, reached, faults }: RowFigures): void {
    this.#states += states
    this.#steps += steps
    for (const [what, times] of reached)
      this.#reached.set(what, (this.#reached.get(what) ?? 0) + times)
    this.faults += faults.length
    for (const { rule, path } of faults) {
      this.#rules.set(rule, (this.#rules.get(rule) ?? 0) + 1)
      this.#say(`  ${rule}\n    ${path.join(', ')}`)
    }
  }

  end(what: string): boolean {
    const took = ((performance.now() - this.#startedAt) / 1_000).toFixed(1)
    const reached = [...this.#reached].map(([one, times]) => `${one} ${times}`)
    this.#say(`reached: ${reached.sort().join(', ')}`)
    for (const [rule, times] of this.#rules) this.#say(`${times} times: ${rule}`)
    this.#say(
      `${this.#states} states in ${this.#steps} steps, ${what}, ${took} s; ${this.faults} rules broken`,
    )
    return this.faults === 0
  }
}
