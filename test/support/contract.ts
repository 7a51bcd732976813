import { expect, test } from 'vitest'
import { providerContract, type ContractHarness } from 'drainable/testing'
import type { Skipped } from '../contract/skipped/cases.js'

/**
 * Cases of hundreds of requests that reach no more in a second setup of a product: an adapter writes the names of members alike
 * in all of its versions. The setup that plays them has every other case too.
 */
export const NAMES_PLAYED: Skipped = {
  'lets no name become a command': 'another setup plays it: names are written alike in all',
}

/**
 * The contract suite as tests of the `describe` around. A case that is skipped must be listed with its reason, and one
 * that is listed must be skipped: a hook that a harness lost is a failure.
 *
 * @param skipped - a setup of the provider's file in `test/contract/skipped`
 * @param replaced - cases that a test beside them replaces, with the reason: what the product does is another thing there, or
 *   another setup plays the case
 */
export function contractTests(
  skipped: Skipped,
  open: () => Promise<ContractHarness>,
  replaced: Skipped = {},
): void {
  const all = providerContract(open)
  const cases = all.filter(({ name }) => !(name in replaced))
  for (const each of cases) {
    test(each.name, { timeout: each.timeout }, async (context) => {
      let reason: string | undefined
      await each.run({ skip: (why) => void (reason = why) })
      expect(reason, 'why it is skipped, as test/contract/skipped has it').toBe(skipped[each.name])
      if (reason !== undefined) context.skip(reason)
    })
  }
  test('the list of skipped cases names cases of the suite', () => {
    const names = new Set(all.map(({ name }) => name))
    expect(Object.keys({ ...skipped, ...replaced }).filter((name) => !names.has(name))).toEqual([])
  })
}
