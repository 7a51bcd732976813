/**
 * Every function of the entries that users call, with what a program in JavaScript can pass by mistake: it says which
 * argument is wrong, and no `TypeError` from the middle of the package comes out.
 */
import { describe, expect, test } from 'vitest'
import { isDrainableError } from 'drainable'
import { present, root, specifier, type Entry } from '../../../scripts/package/entries.ts'

type Names = Readonly<Record<string, unknown>>

/** What is built on, and not called by users, is left out. */
const inner = new Set(['envoy/grpc', 'kit', 'provider'])
const isFake = ({ name }: Entry): boolean => name.startsWith('testing/')
const load = async (item: Entry): Promise<[string, Names]> => [
  specifier(item),
  (await import(/* @vite-ignore */ `${root}${item.source}`)) as Names,
]
const called = present.filter((item) => !inner.has(item.name) && !isFake(item))
const entries = await Promise.all(called.map(load))
const fakes = await Promise.all(present.filter(isFake).map(load))
const wrong: readonly (readonly unknown[])[] = [[], [null], [{}], ['x'], [5], [{}, {}], [[], {}]]

type Fn = (...args: readonly unknown[]) => unknown

/** What a call throws or rejects with at once; a handle that ends by itself is asked by its `done`. */
async function thrownBy(fn: Fn, args: readonly unknown[]): Promise<unknown> {
  try {
    const given = fn(...args)
    await (Object(given) as { readonly done?: unknown }).done
    await given
    return undefined
  } catch (error) {
    return error
  }
}

describe.each(entries)('%s', (_, names) => {
  const functions = Object.entries(names).filter(
    (entry): entry is [string, Fn] =>
      typeof entry[1] === 'function' && !/^class\b/.test(String(entry[1])),
  )

  test.each(functions)('%s() names the wrong argument', async (_name, fn) => {
    for (const args of wrong) {
      const error = await thrownBy(fn, args)
      if (error !== undefined) expect(error).toSatisfy((e) => isDrainableError(e))
    }
  })
})

test.each(fakes)('startFake(null) of %s says what was expected', async (_, { startFake }) => {
  const error = await thrownBy(startFake as Fn, [null])
  expect(error).toMatchObject({ code: 'INVALID_OPTIONS' })
  expect((error as Error).message).toMatch(/^startFake\(\): .*expected an object/)
})
