import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import {
  entries,
  exportsField,
  present,
  root,
  specifier,
} from '../../../scripts/package/entries.ts'

const read = (name: string): unknown => JSON.parse(readFileSync(`${root}${name}`, 'utf8'))

it('exports in package.json what the list of entries says (npm run entries)', () => {
  const manifest = read('package.json') as { exports: unknown }
  expect(manifest.exports).toEqual(exportsField())
})

it('resolves the same names to sources in tsconfig.json', () => {
  const { compilerOptions } = read('tsconfig.json') as {
    compilerOptions: { paths: Record<string, string[]> }
  }
  const expected = entries.map((item) => [specifier(item), [`./${item.source}`]])
  expect(compilerOptions.paths).toEqual(Object.fromEntries(expected))
})

it('has the source of every entry', () => {
  expect(entries.filter((item) => !present.includes(item)).map((item) => item.source)).toEqual([])
})
