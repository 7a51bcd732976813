import { engines } from '../../test/support/engines.ts'
import { drainAtRandom } from '../../test/support/haproxy-random.ts'

/** Plays so many random drains on each installed HAProxy. @returns whether idle was never said wrongly */
export async function drainAll(
  seed: number,
  runs: number,
  say: (line: string) => void,
): Promise<boolean> {
  const results = await Promise.all(
    engines('haproxy').map(async (engine) => {
      const startedAt = performance.now()
      const { outcomes, requests, falseIdles } = await drainAtRandom(engine, seed, runs)
      const took = ((performance.now() - startedAt) / 1_000).toFixed(1)
      say(`HAProxy ${engine.version}: ${runs} drains over ${requests} requests, ${took} s`)
      for (const [outcome, count] of Object.entries(outcomes)) say(`  ${outcome}: ${count}`)
      for (const line of falseIdles) say(`  FALSE IDLE, ${line}`)
      return falseIdles.length === 0
    }),
  )
  return results.every(Boolean)
}
