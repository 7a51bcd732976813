import { playRoll, storyOf } from '../../test/model/roll-story.ts'

/** Plays so many random rolls. @returns whether nothing was found */
export async function rollAtRandom(
  { seed: first, runs }: { readonly seed: number; readonly runs: number },
  say: (line: string) => void,
): Promise<boolean> {
  const startedAt = performance.now()
  let broken = 0
  for (let seed = first; seed < first + runs; seed += 1) {
    const faults = await playRoll(storyOf(seed)).catch((thrown: unknown) => [String(thrown)])
    if (faults.length === 0) continue
    broken += 1
    say(`seed ${seed}: ${faults.join('; ')}`)
  }
  const took = ((performance.now() - startedAt) / 1_000).toFixed(1)
  say(`${runs} rolls from seed ${first} in ${took} s; ${broken} broken`)
  return broken === 0
}
