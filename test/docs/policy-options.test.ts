import { readFileSync } from 'node:fs'
import { Command } from 'commander'
import { expect, test } from 'vitest'
import { policy } from '../../src/cli/flags.js'
import { policyNames } from '../../src/core/calls/policy.js'
import { givenShape } from '../../src/core/tickets/options-table.js'

/** The rows of "All options": the name of each, what stands for its values, and its default. */
function rows(): ReadonlyMap<string, { readonly values: string; readonly byDefault: string }> {
  const page = readFileSync(new URL('../../docs/policies.md', import.meta.url), 'utf8')
  const [, section = ''] = page.split('## All options\n')
  const found = [...section.matchAll(/^\| (`.+?`) +\| (.*?) *\| (.+?) +\|$/gm)]
  return new Map(
    found.flatMap(([, names = '', values = '', byDefault = '']) =>
      [...names.matchAll(/`(\w+)`/g)].map(
        ([, name = '']) => [name, { values, byDefault }] as const,
      ),
    ),
  )
}

const words = (text: string): string[] =>
  [...text.replaceAll(/\(.*?\)/g, '').matchAll(/`'(\w+)'`/g)].map(([, word = '']) => word).sort()

/** An option of some words, as its schema has it. */
interface Words {
  readonly def: {
    readonly defaultValue?: unknown
    readonly innerType?: { readonly def: { readonly entries?: Readonly<Record<string, string>> } }
  }
}

test('policies.md lists every option of a drain, and no other', () => {
  expect([...rows().keys()].sort()).toEqual([...policyNames()].sort())
})

const ofWords = Object.entries(givenShape() as unknown as Record<string, Words>).flatMap(
  ([name, { def }]) => {
    const entries = def.innerType?.def.entries
    return entries === undefined ? [] : [[name, Object.keys(entries).sort(), def.defaultValue]]
  },
)

test.each(ofWords)(
  'policies.md has the values and the default of %s',
  (name, values, byDefault) => {
    const row = rows().get(String(name))
    expect(words(row?.values ?? '')).toEqual(values)
    expect(row?.byDefault).toBe(`\`'${String(byDefault)}'\``)
  },
)

test('the command has a flag for every option that is plain data', () => {
  const flags = policy(new Command('drain')).options.map((option) => option.attributeName())
  expect(flags).toEqual(expect.arrayContaining(Object.keys(givenShape())))
})
