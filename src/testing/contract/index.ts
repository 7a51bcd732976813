import { Bench } from './bench.js'
import { changes } from './changes.js'
import { damage } from './damage.js'
import { failures } from './failures.js'
import type { ContractCase, ContractHarness } from './harness.js'
import { load } from './load.js'
import { reads } from './reads.js'

export type { ContractCase, ContractHarness } from './harness.js'

/** Long enough for a slow product's bounds, which a case keeps itself; reached only by one that hangs. */
const TIMEOUT = 60_000

/**
 * What every provider owes the core, as plain data bound to no test runner.
 *
 * What a product cannot do is tested to be refused properly, so no case is ever left out. Each case
 * opens a harness of its own and disposes of it.
 *
 * @param open - makes a balancer and a provider connected to it
 *
 * @example
 * ```ts
 * import { test } from 'node:test'
 * import { fakeProvider, providerContract } from 'drainable/testing'
 *
 * const cases = providerContract(() => {
 *   const provider = fakeProvider({ pools: { web: ['web1', 'web2'] } })
 *   const [a, b] = ['web1', 'web2'].map((member) => ({ pool: 'web', member }))
 *   return Promise.resolve({
 *     provider,
 *     pool: 'web',
 *     members: [a!, b!],
 *     occupy: (ref) => {
 *       const end = provider.occupy(ref)
 *       return Promise.resolve(() => Promise.resolve(end()))
 *     },
 *     setBehind: (ref, to) => Promise.resolve(provider.setBehind(ref, to)),
 *     reload: () => Promise.resolve(provider.reload()),
 *     disconnect: () => Promise.resolve(provider.disconnect()),
 *     requests: () => provider.requests.length,
 *     [Symbol.asyncDispose]: () => provider.close(),
 *   })
 * })
 * for (const c of cases) test(c.name, { timeout: c.timeout }, c.run)
 * ```
 */
export function providerContract(open: () => Promise<ContractHarness>): readonly ContractCase[] {
  return Object.entries({ ...reads, ...changes, ...load, ...failures, ...damage }).map(
    ([name, check]) => ({
      name,
      timeout: TIMEOUT,
      run: async () => {
        await using harness = await open()
        await check(await Bench.over(harness))
      },
    }),
  )
}
