import fc from 'fast-check'
import { Figures } from '../../test/model/figures.ts'
import { combinedOf, combinedStory, playCombined } from '../../test/model/combined-story.ts'

/** Between two lines of progress, in milliseconds. */
const PROGRESS = 60_000

type Say = (line: string) => void

/** Plays so many random stories over several balancers. @returns whether nothing was found */
export async function combineAtRandom(
  {
    seed: first,
    runs,
    trace,
  }: { readonly seed: number; readonly runs: number; readonly trace: boolean },
  say: Say,
): Promise<boolean> {
  const startedAt = performance.now()
  let saidAt = startedAt
  let broken = 0
  const figures = new Figures()
  for (let seed = first; seed < first + runs; seed += 1) {
    const { faults, counts } = await playCombined(combinedOf(seed), trace ? say : undefined).catch(
      (thrown: unknown) => ({ faults: [String((thrown as Error).stack)], counts: new Map() }),
    )
    for (const [what, n] of counts as ReadonlyMap<string, number>) figures.add(what, n)
    if (faults.length > 0) {
      broken += 1
      say(`seed ${seed}: ${faults.join('; ')}`)
    }
    if (performance.now() - saidAt < PROGRESS) continue
    saidAt = performance.now()
    say(`${seed - first + 1} of ${runs}, ${broken} broken`)
  }
  for (const [what, n] of figures.entries()) say(`  ${what.padEnd(34)} ${n}`)
  const took = ((performance.now() - startedAt) / 1_000).toFixed(1)
  say(`${runs} stories over several balancers from seed ${first} in ${took} s; ${broken} broken`)
  return broken === 0
}

/** Makes the story of a seed as small as it can be, so that it still fails by the same rule, and tells it. */
export async function shrinkCombined(seed: number, say: Say): Promise<void> {
  const rulesOf = (faults: readonly string[]): readonly string[] =>
    faults.map((fault) => fault.slice(0, fault.indexOf(':')))
  const { faults } = await playCombined(combinedOf(seed))
  const [rule] = rulesOf(faults)
  const { counterexample } = await fc.check(
    fc.asyncProperty(combinedStory, async (told) => {
      const played = await playCombined(told)
      return rule === undefined || !rulesOf(played.faults).includes(rule)
    }),
    { seed, numRuns: 1 },
  )
  const [smallest] = counterexample ?? []
  if (smallest === undefined) return
  say(JSON.stringify(smallest, null, 1))
  await playCombined(smallest, say)
}
