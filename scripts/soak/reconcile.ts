import { play, type Mode } from '../../test/unit/reconcile/story.ts'

const MODES: readonly Mode[] = ['one process', 'two under a lease', 'two without a lease']
/** Between two lines of progress, in milliseconds. */
const PROGRESS = 60_000

/** Plays so many random stories, the modes (or those with a name) in turn. @returns whether nothing was found */
export async function reconcileAtRandom(
  only: string,
  { seed: first, runs }: { readonly seed: number; readonly runs: number },
  say: (line: string) => void,
): Promise<boolean> {
  const startedAt = performance.now()
  let saidAt = startedAt
  let stories = 0
  let broken = 0
  const modes = MODES.filter((one) => one.includes(only))
  // Each story is the only one of its seed: its balancer is known to this process by a name drawn from that.
  for (let seed = first; seed < first + runs; seed += 1) {
    const mode = modes[seed % modes.length]
    if (mode === undefined) return false
    const faults = await play(seed, mode).then(
      ({ wrong }) => wrong,
      (thrown: unknown) => [String(thrown)],
    )
    stories += 1
    if (faults.length > 0) {
      broken += 1
      say(`seed ${seed}, ${mode}: ${faults.join('; ')}`)
    }
    const now = performance.now()
    if (now - saidAt < PROGRESS) continue
    saidAt = now
    say(`${stories} stories, up to seed ${seed}; ${broken} broken`)
  }
  const took = ((performance.now() - startedAt) / 1_000).toFixed(1)
  say(`${stories} stories from seed ${first} in ${took} s; ${broken} broken`)
  return broken === 0
}
