import { Random } from '../../../model/random.js'
import { pairCase, walk } from './pairs.js'
import { search, type Fault } from './search.js'
import type { Row } from './switches.js'

/** How far the case of one row is searched. */
export interface RowBounds {
  /** From its beginning; from a place inside one move less. */
  readonly depth: number
  /** So many walks are taken from its beginning. */
  readonly walks: number
  /** And so many of the places they lead to are searched from. */
  readonly places: number
}

/** What the search of one row has come to. */
export interface RowFigures {
  readonly states: number
  readonly steps: number
  readonly reached: ReadonlyMap<string, number>
  readonly faults: readonly Fault[]
}

/** The longest walk, in moves. */
const LONGEST = 30

/** Searches the case of one row of switches: from its beginning, and from places that walks at random lead to. */
export function searchRow(row: Row, seed: number, { depth, walks, places }: RowBounds): RowFigures {
  const random = new Random(seed)
  const { one, starts } = pairCase(row)
  const reached = new Map<string, number>()
  const faults: Fault[] = []
  let states = 0
  let steps = 0
  const searchFrom = (
    start: Parameters<typeof search>[0],
    way: readonly string[],
    deep: number,
  ) => {
    const figures = search(start, one, { depth: deep })
    states += figures.states
    steps += figures.steps
    for (const [what, times] of figures.reached) reached.set(what, (reached.get(what) ?? 0) + times)
    faults.push(...figures.faults.map(({ rule, path }) => ({ rule, path: [...way, ...path] })))
  }
  for (const { node } of starts) {
    searchFrom(node, [], depth)
    for (let n = 0; n < walks; n += 1) {
      const way = walk(node, one, random, random.int(2, LONGEST))
      steps += way.path.length
      for (const what of way.reached) reached.set(what, (reached.get(what) ?? 0) + 1)
      faults.push(...way.faults)
      if (n < places && way.faults.length === 0) searchFrom(way.node, way.path, depth - 1)
    }
  }
  return { states, steps, reached, faults }
}
