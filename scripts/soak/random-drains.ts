import { engines, type Engine } from '../../test/support/engines.ts'
import type { RandomRun } from '../../test/support/random-run.ts'

/**
 * Plays so many random drains on each installed version of a product.
 *
 * @returns whether idle was never said wrongly
 */
export async function drainAll(
  product: 'haproxy' | 'envoy',
  play: (engine: Engine, seed: number, runs: number) => Promise<RandomRun>,
  { seed, runs }: { readonly seed: number; readonly runs: number },
  say: (line: string) => void,
): Promise<boolean> {
  const results = await Promise.all(
    engines(product).map(async (engine) => {
      const startedAt = performance.now()
      const { outcomes, requests, falseIdles } = await play(engine, seed, runs)
      const took = ((performance.now() - startedAt) / 1_000).toFixed(1)
      say(`${product} ${engine.version}: ${runs} drains over ${requests} requests, ${took} s`)
      for (const [outcome, count] of Object.entries(outcomes)) say(`  ${outcome}: ${count}`)
      for (const line of falseIdles) say(`  FALSE IDLE, ${line}`)
      return falseIdles.length === 0
    }),
  )
  return results.every(Boolean)
}
