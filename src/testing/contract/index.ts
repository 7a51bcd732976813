import { DrainableError } from '../../provider/error.js'
import { Bench, Skipped } from './bench.js'
import { changes } from './changes.js'
import { clocks } from './clocks.js'
import { damage } from './damage.js'
import { failures } from './failures.js'
import type { CaseContext, ContractCase, ContractHarness } from './harness.js'
import { load } from './load.js'
import { membership } from './membership.js'
import { reads } from './reads.js'
import { secrets } from './secrets.js'

export type { CaseContext, ContractCase, ContractHarness } from './harness.js'

/** Long enough for a slow product's bounds, which a case keeps itself; reached only by one that hangs. */
const TIMEOUT = 60_000

/**
 * The contract tests for a provider, as plain data for any test runner.
 *
 * They also test that a product properly refuses what it can't do. A case is skipped through the context of the test,
 * with the reason, if the harness lacks its hook. Each case opens its own harness and disposes of it.
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
  if (typeof open !== 'function') {
    const words =
      'providerContract(): open: expected a function that opens a balancer and gives its harness'
    throw new DrainableError('INVALID_OPTIONS', words)
  }
  return Object.entries({
    ...reads,
    ...changes,
    ...membership,
    ...load,
    ...failures,
    ...damage,
    ...clocks,
    ...secrets,
  }).map(([name, check]) => ({
    name,
    timeout: TIMEOUT,
    // A rest parameter, because some runners take a declared one for a callback of theirs.
    run: async (...[context]: [CaseContext?]) => {
      const skipped = await whySkipped(open, check)
      if (skipped === undefined) return
      if (typeof context?.skip !== 'function') throw skipped
      context.skip(skipped.message)
    },
  }))
}

/** Runs one case; returns why it was skipped, or undefined if it was not. */
async function whySkipped(
  open: () => Promise<ContractHarness>,
  check: (bench: Bench) => Promise<void>,
): Promise<Skipped | undefined> {
  await using harness = await open()
  try {
    await check(await Bench.over(harness))
    return undefined
  } catch (error) {
    if (error instanceof Skipped) return error
    throw error
  }
}
