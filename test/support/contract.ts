import { expect, test } from 'vitest'
import { providerContract, type ContractHarness } from 'drainable/testing'
import type { Skipped } from '../contract/skipped/cases.js'

/**
 * The contract suite as tests of the `describe` around. A case that is skipped must be listed with its reason, and one
 * that is listed must be skipped: a hook that a harness lost is a failure.
 *
 * @param skipped - a setup of the provider's file in `test/contract/skipped`
 */
export function contractTests(skipped: Skipped, open: () => Promise<ContractHarness>): void {
  const cases = providerContract(open)
  for (const each of cases) {
    test(each.name, { timeout: each.timeout }, async (context) => {
      let reason: string | undefined
      await each.run({ skip: (why) => void (reason = why) })
      expect(reason, 'why it is skipped, as test/contract/skipped has it').toBe(skipped[each.name])
      if (reason !== undefined) context.skip(reason)
    })
  }
  test('the list of skipped cases names cases of the suite', () => {
    const names = new Set(cases.map(({ name }) => name))
    expect(Object.keys(skipped).filter((name) => !names.has(name))).toEqual([])
  })
}
