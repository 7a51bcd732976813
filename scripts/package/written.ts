/** What is written from the list of entries into files that hold more than that. */
import { posix } from 'node:path'
import { output, specifier, subpath, type Entry } from './entries.ts'

/** One file, and how the part of it that comes from the list is put into its text. */
export interface Written {
  /** From the root of the repository. */
  readonly path: string
  readonly rewrite: (text: string, entries: readonly Entry[]) => string
}

export const written: readonly Written[] = [
  { path: 'package.json', rewrite: writeExports },
  { path: 'tsconfig.json', rewrite: writePaths },
  { path: 'README.md', rewrite: (text, of) => writeTable(text, of, '') },
  { path: 'docs/README.md', rewrite: (text, of) => writeTable(text, of, 'docs') },
]

/** The JSON schemas that the build writes. */
export const SCHEMAS = [
  'config.schema.json',
  'command.schema.json',
  'command-line.schema.json',
] as const

/** The `exports` of package.json. Each kind of module has its own declarations: they differ in what they import. */
export function exportsField(entries: readonly Entry[]): Record<string, unknown> {
  const fields = entries.map((item) => {
    const base = `./dist/${output(item)}`
    return [
      subpath(item),
      {
        import: { types: `${base}.d.ts`, default: `${base}.js` },
        require: { types: `${base}.d.cts`, default: `${base}.cjs` },
      },
    ] as const
  })
  const schemas = SCHEMAS.map((name) => [`./${name}`, `./dist/${name}`] as const)
  const all: readonly (readonly [string, unknown])[] = [...fields, ...schemas]
  return { ...Object.fromEntries(all), './package.json': './package.json' }
}

/**
 * The same for a compiler that does not read `exports`: `moduleResolution` node10, which TypeScript 5 takes by itself
 * for CommonJS. Jest, Node and bundlers read `exports`.
 */
export function node10Fields(entries: readonly Entry[]): Record<string, unknown> {
  const versions: readonly (readonly [string, readonly string[]])[] = [
    ...entries.map((item) => [output(item), [`./dist/${output(item)}.d.cts`]] as const),
    ...SCHEMAS.map((name) => [name, [`./dist/${name}`]] as const),
  ]
  return {
    main: './dist/index.cjs',
    types: './dist/index.d.cts',
    typesVersions: { '*': Object.fromEntries(versions) },
  }
}

function writeExports(text: string, entries: readonly Entry[]): string {
  const manifest = JSON.parse(text) as Record<string, unknown>
  const ours = { ...node10Fields(entries), exports: exportsField(entries) }
  const fields = Object.entries(manifest).filter(([name]) => !(name in ours))
  // Beside `files`, where a reader of the manifest looks for it.
  const at = fields.findIndex(([name]) => name === 'files')
  fields.splice(at, 0, ...Object.entries(ours))
  return `${JSON.stringify(Object.fromEntries(fields), null, 2)}\n`
}

/** The names that users import, resolved to sources. */
function writePaths(text: string, entries: readonly Entry[]): string {
  const lines = entries.map((item) => `      "${specifier(item)}": ["./${item.source}"]`)
  return replaced(text, /("paths": \{\n)[^}]*(\n {4}\})/, lines.join(',\n'))
}

/** The table of what can be imported, between two comments; links are seen from `folder`. */
function writeTable(text: string, entries: readonly Entry[], folder: string): string {
  const rows = entries.flatMap((item) => {
    if (item.row === undefined) return []
    const { about, page } = item.row
    const name = /([^/]+?)(\/README)?\.md$/.exec(page)?.[1] ?? page
    return `| \`${specifier(item)}\` | ${about} | [${name}](${posix.relative(folder, page)}) |`
  })
  const table = ['', '| import | what it is | page |', '| --- | --- | --- |', ...rows, ''].join(
    '\n',
  )
  return replaced(text, /(<!-- entries -->\n)[^]*?(\n<!-- \/entries -->)/, table)
}

function replaced(text: string, part: RegExp, by: string): string {
  if (!part.test(text)) throw new Error(`there is no ${String(part)} to write to`)
  return text.replace(part, (_, before: string, after: string) => `${before}${by}${after}`)
}
