import { expect, test } from 'vitest'
import { isCi } from '../../support/skipped.js'
import { CASES } from './search/cases.js'
import { search, type Fault } from './search/search.js'

/** One move less on a developer's machine: a tenth of the states. Deeper by command: `npm run soak -- search --depth 6`. */
const ALL = CASES.map(({ depth, ...one }) => ({ ...one, depth: isCi() ? depth : depth - 1 }))

test.each(ALL)(
  'no rule is broken in any state of: $name, $depth moves deep',
  ({ name, one, starts, depth }) => {
    const faults: (Fault & { readonly from: string })[] = []
    const counted: string[] = []
    for (const start of starts) {
      const figures = search(start.node, one, { depth })
      counted.push(`${figures.states} from ${start.name}`)
      faults.push(...figures.faults.map((fault) => ({ from: start.name, ...fault })))
    }
    process.stdout.write(`${name}, ${depth} moves deep: ${counted.join(', ')}\n`)
    expect(faults).toEqual([])
  },
)
