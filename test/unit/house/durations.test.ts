import { expect, test } from 'vitest'
import { adapterNames } from '../../../scripts/package/entries.ts'
import type { GivenOptions } from '../../support/given-options.js'

const factories = (
  await Promise.all(
    adapterNames().map(async (name) => {
      const file = new URL(`../${name}/given-options.ts`, import.meta.url).href
      return ((await import(file)) as { given: readonly GivenOptions[] }).given
    }),
  )
).flat()

/** What a factory says of one option; nothing if it takes it. */
function said([, given, , make]: GivenOptions, option: string, value: unknown): string {
  try {
    make({ ...given, [option]: value } as never)
    return ''
  } catch (error) {
    return (error as Error).message
  }
}

/** Every option of an adapter that is a duration, by what is said of a text that is none. */
const durations = factories.flatMap((factory) =>
  factory[2]
    .filter((option) => said(factory, option, 'soon').includes('a text with its unit'))
    .map((option) => [`${factory[0]}(): ${option}`, factory, option] as const),
)

test('every adapter with durations is asked', () => {
  expect(durations.map(([name]) => name)).toEqual(
    expect.arrayContaining([
      'haproxyRuntime(): connectTimeout',
      'haproxyDataplane(): reloadTimeout',
      'envoy(): mergeWindow',
      'grpcEndpoints(): loadInterval',
      'envoyListener(): failAfter',
      'f5Bigip(): minInterval',
      'citrixAdc(): sessionTimeout',
    ]),
  )
})

test.each(durations)(
  '%s: a bare number that can mean seconds is asked back',
  (_, factory, option) => {
    expect(said(factory, option, 42)).toMatch(/is 42, .*did you mean '42s'\? Write '42ms'/)
  },
)
