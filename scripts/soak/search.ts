import { CASES } from '../../test/unit/machine/search/cases.ts'
import { search } from '../../test/unit/machine/search/search.ts'

/** Searches every case that deep, or those with a name. @returns whether nothing was found */
export function searchDeep(depth: number, only: string, say: (line: string) => void): boolean {
  const startedAt = performance.now()
  let states = 0
  let steps = 0
  let faults = 0
  for (const { name, one, starts } of CASES.filter((known) => known.name.includes(only))) {
    for (const start of starts) {
      const figures = search(start.node, one, { depth })
      states += figures.states
      steps += figures.steps
      faults += figures.faults.length
      say(`${name}, from ${start.name}: ${figures.states} states, ${figures.steps} steps`)
      for (const { rule, path } of figures.faults) say(`  ${rule}\n    ${path.join(', ')}`)
    }
  }
  const took = ((performance.now() - startedAt) / 1_000).toFixed(1)
  say(`${states} states in ${steps} steps, ${depth} deep, ${took} s; ${faults} rules broken`)
  return faults === 0
}
