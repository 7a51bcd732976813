import { playLease } from '../../test/model/lease-story.ts'

/** Plays so many random stories of contenders for one lease. @returns whether nothing was found */
export async function leasesAtRandom(
  { seed: first, runs }: { readonly seed: number; readonly runs: number },
  say: (line: string) => void,
): Promise<boolean> {
  const startedAt = performance.now()
  let broken = 0
  let acts = 0
  let terms = 0
  for (let seed = first; seed < first + runs; seed += 1) {
    const story = await playLease(seed)
    acts += story.acts
    terms += story.terms
    if (story.faults.length === 0) continue
    broken += 1
    say(`seed ${seed}: ${story.faults.slice(0, 5).join('; ')}`)
  }
  const took = ((performance.now() - startedAt) / 1_000).toFixed(1)
  say(
    `${runs} stories from seed ${first} in ${took} s: ${terms} terms, ${acts} acts; ${broken} broken`,
  )
  return broken === 0
}
