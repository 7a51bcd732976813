import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, matchesGlob } from 'node:path'
import ts from 'typescript'
import { describe, expect, it, onTestFinished } from 'vitest'
import { present, root, specifier } from '../../../scripts/package/entries.ts'
import { brokenLinks } from '../../../scripts/package/site.ts'

const read = (path: string): string => readFileSync(`${root}${path}`, 'utf8')
const { projectDocuments } = JSON.parse(read('typedoc.json')) as { projectDocuments: string[] }

const pages = ['docs', 'docs/adapters', 'docs/decisions'].flatMap((folder) =>
  readdirSync(`${root}${folder}`)
    .filter((name) => name.endsWith('.md'))
    .map((name) => `${folder}/${name}`),
)

describe('the reference has the guides', () => {
  it.each(pages)('%s', (page) => {
    expect(projectDocuments.some((pattern) => matchesGlob(page, pattern))).toBe(true)
  })
})

it('lists every decision on the page of decisions', () => {
  const notes = readdirSync(`${root}docs/decisions`).filter((name) => name !== 'README.md')
  const index = read('docs/decisions/README.md')
  expect(notes.filter((name) => !index.includes(`](${name})`))).toEqual([])
})

describe('a module is named as it is imported', () => {
  it.each(present.map((item) => [item.source, specifier(item)]))('%s', (source, name) => {
    expect(read(source)).toMatch(new RegExp(`^ \\* @module ${name}$`, 'm'))
  })
})

/** The functions that a program calls by name from `drainable`. */
const program = ts.createProgram([`${root}src/index.ts`], { noResolve: false, noLib: true })
const checker = program.getTypeChecker()
const entry = program.getSourceFile(`${root}src/index.ts`)
const exported = entry === undefined ? undefined : checker.getSymbolAtLocation(entry)
const functions = (exported === undefined ? [] : checker.getExportsOfModule(exported)).flatMap(
  (symbol) => {
    const real = symbol.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol
    const declared = (real.declarations ?? []).filter(ts.isFunctionDeclaration)
    return declared.length === 0 ? [] : [{ name: symbol.name, declared }]
  },
)

describe('a function of the main entry', () => {
  it('is found', () => {
    expect(functions.map(({ name }) => name)).toEqual(
      expect.arrayContaining([
        'drain',
        'startDrain',
        'ready',
        'restore',
        'roll',
        'select',
        'watch',
      ]),
    )
  })

  it.each(functions)('$name has an example', ({ declared }) => {
    const tags = declared.flatMap((node) => ts.getJSDocTags(node).map((tag) => tag.tagName.text))
    expect(tags).toContain('example')
  })

  it.each(functions)('$name has parameters with a name', ({ declared }) => {
    const names = declared.flatMap((node) => node.parameters.map((one) => one.name.getText()))
    expect(names.filter((name) => name.length < 3)).toEqual([])
  })
})

it('finds broken links of a site', () => {
  const folder = mkdtempSync(join(tmpdir(), 'site-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const html =
    '<a href="b.html">b</a><a href="b.html#there">x</a><a href="b.html#gone">y</a><a href="c.html">c</a><img src="d.svg">'
  writeFileSync(join(folder, 'a.html'), html)
  writeFileSync(join(folder, 'b.html'), '<p id="there"></p>')
  expect(brokenLinks(folder)).toEqual([
    'a.html: b.html#gone: no such place',
    'a.html: c.html: there is no such file',
    'a.html: d.svg: there is no such file',
  ])
})
