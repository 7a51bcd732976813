import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it, test } from 'vitest'
import { adapter, adapterNames, entries, present, root } from '../../../scripts/package/entries.ts'
import { importsOf } from '../../../scripts/package/imports.ts'
import { written } from '../../../scripts/package/written.ts'

const read = (path: string): string => readFileSync(`${root}${path}`, 'utf8')

it('has the source of every entry', () => {
  expect(entries.filter((item) => !present.includes(item)).map((item) => item.source)).toEqual([])
})

describe.each(written)('$path', ({ path, rewrite }) => {
  it('is as the list of entries says (npm run entries)', () => {
    expect(rewrite(read(path), entries)).toBe(read(path))
  })

  it('takes a new adapter from its place in the list, and forgets it', () => {
    const more = [...entries, ...toy]
    const text = rewrite(read(path), more)
    for (const name of toyNames(path)) expect(text).toContain(name)
    expect(rewrite(text, entries)).toBe(read(path))
  })
})

describe.each(adapterNames())('the adapter %s', (name) => {
  test.each([
    'src/adapters/*/index.ts',
    'src/testing/*/index.ts',
    'docs/adapters/*.md',
    'examples/*.ts',
    'test/contract/*.test.ts',
    'test/unit/*/given-options.ts',
    'test/unit/testing/protocol-fakes/*.ts',
  ])('has %s', (pattern) => {
    expect(existsSync(`${root}${pattern.replace('*', name)}`)).toBe(true)
  })
})

const toy = adapter('toy-balancer', {
  about: 'a balancer of toys',
  externals: [],
  kilobytes: 1,
  fake: { kilobytes: 1 },
})

/** What a file has to say of the toy. */
function toyNames(path: string): readonly string[] {
  if (path === 'package.json') return ['"./toy-balancer"', '"./testing/toy-balancer"']
  if (path === 'tsconfig.json') {
    return [
      '"drainable/toy-balancer": ["./src/adapters/toy-balancer/index.ts"]',
      '"drainable/testing/toy-balancer": ["./src/testing/toy-balancer/index.ts"]',
    ]
  }
  return ['| `drainable/toy-balancer` | a balancer of toys | [toy-balancer](']
}

it('gives a new adapter to the lists that tests use', () => {
  const more = [...entries, ...toy]
  expect(adapterNames(more)).toEqual([...adapterNames(), 'toy-balancer'])
  expect(importsOf(more)).toContain("'drainable/testing/toy-balancer'")
})

/** Code that names every adapter would have to be kept by hand. */
it('and the command alone name each adapter in code', () => {
  const naming = ['src', 'test', 'scripts', 'examples', 'bench', '.']
    .flatMap(codeIn)
    .filter((path) => adapterNames().every((name) => new RegExp(`\\b${name}\\b`).test(read(path))))
  const generated = [
    ...written.map(({ path }) => path).filter((path) => !path.endsWith('.md')),
    'bench/results.json',
  ]
  // A URL names a product, and the adapter of that product is loaded where it is asked for.
  const known = [...generated, 'scripts/package/entries.ts', 'src/cli/balancers.ts']
  expect(naming.sort()).toEqual(known.sort())
})

function codeIn(folder: string): string[] {
  return readdirSync(join(root, folder), { recursive: folder !== '.', encoding: 'utf8' })
    .map((name) => join(folder, name))
    .filter((path) => /\.(m|c)?[jt]s$|\.json$/.test(path) && path !== 'package-lock.json')
    .filter((path) => !/^test\/fixtures\/|\/gen\//.test(path))
}
