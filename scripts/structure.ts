/**
 * `npm run structure [-- FOLDER [BEFORE]]`: the size of each part of `src`, its largest files, the groups of
 * files that import each other in a circle (types too), and how many lines stand in two places. With BEFORE,
 * another checkout, both columns.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'

/** So many lines one after the other in two places are a repetition. */
const RUN = 6

interface Source {
  readonly path: string
  readonly lines: readonly string[]
  readonly imports: readonly string[]
}

function read(root: string): ReadonlyMap<string, Source> {
  const src = join(root, 'src')
  const names = readdirSync(src, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts') && !/(^|[/\\])gen[/\\]/.test(name))
    .sort()
  return new Map(
    names.map((name) => {
      const text = readFileSync(join(src, name), 'utf8')
      const imports = [...text.matchAll(/(?:from|import)\s+'(\.[^']+)'/g)].map(([, to = '']) =>
        relative(src, resolve(src, dirname(name), to.replace(/\.js$/, '.ts'))),
      )
      return [name, { path: name, lines: text.split('\n').slice(0, -1), imports }]
    }),
  )
}

/** Groups of files that reach each other (Tarjan), the largest first. */
function circles(sources: ReadonlyMap<string, Source>): string[][] {
  const index = new Map<string, number>()
  const low = new Map<string, number>()
  const stack: string[] = []
  const found: string[][] = []
  const visit = (name: string): void => {
    index.set(name, index.size)
    low.set(name, index.get(name) ?? 0)
    stack.push(name)
    for (const to of sources.get(name)?.imports ?? []) {
      if (!sources.has(to)) continue
      if (!index.has(to)) visit(to)
      else if (!stack.includes(to)) continue
      low.set(name, Math.min(low.get(name) ?? 0, low.get(to) ?? 0))
    }
    if (low.get(name) !== index.get(name)) return
    const group = stack.splice(stack.indexOf(name))
    if (group.length > 1) found.push(group.sort())
  }
  for (const name of sources.keys()) if (!index.has(name)) visit(name)
  return found.sort((a, b) => b.length - a.length)
}

/** Lines that are part of a run of {@link RUN} which stands in another place too; blanks, imports and braces aside. */
function repeated(sources: readonly Source[]): number {
  const places = new Map<string, string[]>()
  for (const { path, lines } of sources) {
    const told = lines.flatMap((line, i) => {
      const text = line.trim()
      return text.length < 4 || /^(import|export \{|\*|\/\*|\/\/)/.test(text) ? [] : [{ text, i }]
    })
    for (let i = 0; i + RUN <= told.length; i++) {
      const run = told.slice(i, i + RUN)
      const key = run.map(({ text }) => text).join('\n')
      const at = run.map((line) => `${path}:${line.i}`)
      places.set(key, [...(places.get(key) ?? []), ...at])
    }
  }
  const again = [...places.values()].filter((at) => at.length > RUN)
  return new Set(again.flat()).size
}

/** The folder that counts as one part: of the adapters and the core one each, else the first. */
function partOf(path: string): string {
  const [first = '', second = ''] = dirname(path).split('/')
  return (first === 'adapters' || first === 'core') && second !== '' ? `${first}/${second}` : first
}

function figures(root: string): ReadonlyMap<string, string> {
  const sources = read(root)
  const rows = new Map<string, string>()
  const all = [...sources.values()]
  for (const part of new Set(all.map(({ path }) => partOf(path))).values()) {
    const own = all.filter(({ path }) => partOf(path) === part)
    const lines = own.reduce((sum, source) => sum + source.lines.length, 0)
    rows.set(part, `${lines} in ${own.length}`)
  }
  const largest = [...all].sort((a, b) => b.lines.length - a.lines.length)
  rows.set('all', `${all.reduce((sum, s) => sum + s.lines.length, 0)} in ${all.length}`)
  rows.set('files over 400 lines', String(largest.filter((s) => s.lines.length > 400).length))
  rows.set('largest file', `${largest[0]?.path ?? ''} ${largest[0]?.lines.length ?? 0}`)
  rows.set(
    'circles of imports',
    circles(sources)
      .map(({ length }) => length)
      .join(' ') || '0',
  )
  const adapters = all.filter(({ path }) => path.startsWith('adapters/'))
  rows.set('lines repeated in adapters', String(repeated(adapters)))
  rows.set('lines repeated in all', String(repeated(all)))
  return rows
}

const [now = '.', before] = process.argv.slice(2)
const current = figures(now)
const former = before === undefined ? undefined : figures(before)
for (const [name, value] of current) {
  console.log(
    `| ${name} | ${former === undefined ? '' : `${former.get(name) ?? '-'} | `}${value} |`,
  )
}
for (const group of circles(read(now))) console.log(`circle: ${group.join(', ')}`)
