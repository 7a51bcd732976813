/**
 * The search of the built site. Typedoc's own finds names of the reference and titles of pages. This one also finds the
 * sections of the guides by what they say, and each code by its name: a result leads to the place on the page.
 */
import { readFileSync, readdirSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { deflateSync, inflateSync } from 'node:zlib'

/** The part of lunr that builds the index, which typedoc's page reads. */
interface Lunr {
  readonly Builder: new () => {
    readonly pipeline: { add(step: unknown): void }
    ref(name: string): void
    field(name: string, options?: { boost: number }): void
    add(document: object, options?: { boost: number }): void
    build(): object
  }
  readonly trimmer: unknown
}

/** A result, as typedoc's script shows it. */
interface Row {
  readonly kind: number
  readonly name: string
  readonly url: string
  readonly classes: string
  readonly icon?: number
  /** Shown before the name. */
  readonly parent?: string
}

/** Something of a page that can be found. */
export interface Section {
  readonly name: string
  /** The page's title; none for the page itself. */
  readonly parent?: string
  /** From the folder of the site. */
  readonly url: string
  readonly text: string
  /** Times as much as a name of the reference. */
  readonly boost: number
}

/** `ReflectionKind.Document` of typedoc 0.28. */
const DOCUMENT = 8388608

const GUIDE = 4
/** Of this repository: development, decisions, the theory of the core. Users look for them last. */
const INSIDE = 0.5

/** Makes the guides of a built site findable. */
export function writeSearch(folder: string): void {
  const path = join(folder, 'assets/search.js')
  const rows = rowsOf(readFileSync(path, 'utf8')).filter(({ kind }) => kind !== DOCUMENT)
  const sections = readdirSync(join(folder, 'documents'))
    .sort()
    .flatMap((file) => {
      const at = join(folder, 'documents', file)
      const html = withCodes(readFileSync(at, 'utf8'))
      writeFileSync(at, html)
      return sectionsOf(html, `documents/${file}`)
    })
  const all = [...sections.map(toRow), ...rows]
  const lunr = createRequire(import.meta.url)('lunr') as Lunr
  const builder = new lunr.Builder()
  builder.pipeline.add(lunr.trimmer)
  builder.ref('id')
  builder.field('name', { boost: 10 })
  builder.field('text')
  for (const [id, { name, text, boost }] of sections.entries())
    builder.add({ id, name: words(name), text: words(text) }, { boost })
  for (const [index, { name }] of rows.entries())
    builder.add({ id: sections.length + index, name }, { boost: 1 })
  const data = deflateSync(JSON.stringify({ rows: all, index: builder.build() }))
  writeFileSync(path, `window.searchData = "${data.toString('base64')}";`)
}

function toRow({ name, parent, url }: Section): Row {
  return { kind: DOCUMENT, name, url, classes: '', ...(parent !== undefined && { parent }) }
}

function rowsOf(script: string): readonly Row[] {
  const [, base64 = ''] = /"([^"]*)"/.exec(script) ?? []
  const { rows } = JSON.parse(inflateSync(Buffer.from(base64, 'base64')).toString()) as {
    rows: readonly Row[]
  }
  return rows
}

/** Each code in the first column of a table can be linked to. */
function withCodes(html: string): string {
  return html.replaceAll(
    /<tr>\s*<td><code>([A-Z_]{5,}|[a-z]+(?:-[a-z]+)*)<\/code><\/td>/g,
    (row, code: string) => row.replace('<td>', `<td id="code-${code}">`),
  )
}

/** The page itself, its sections, and the codes of its tables. */
export function sectionsOf(html: string, url: string): readonly Section[] {
  const [, body = ''] =
    /<div class="tsd-panel tsd-typography">([^]*?)<\/div>\s*<\/div>/.exec(html) ?? []
  const title = plain(/<title>(.*?) \| /.exec(html)?.[1] ?? '')
  const boost = INSIDE_PAGES.test(title) ? INSIDE : GUIDE
  const [head = '', ...parts] = body.split(/(?=<h[23] id=)/)
  const sections = parts.map((part): Section => {
    const [, id = '', name = ''] = /^<h[23] id="([^"]+)"[^>]*>(.*?)<a /.exec(part) ?? []
    return { name: plain(name), parent: title, url: `${url}#${id}`, text: plain(part), boost }
  })
  const codes = [...body.matchAll(/<td id="(code-([A-Z_]{5,}))">.*?<\/tr>/gs)].map(
    ([row, id = '', code = '']): Section => ({
      ...{ name: code, parent: title, url: `${url}#${id}`, text: plain(row), boost: 1 },
    }),
  )
  return [{ name: title, url, text: plain(head), boost: 2 * boost }, ...sections, ...codes]
}

const INSIDE_PAGES =
  /^(Working on|The (core|machine|runner|kit|endpoint mapper)|Which test|Contributing|Changelog)|^(Tickets|Leases)[:,]/

/** What a reader reads. */
function plain(html: string): string {
  return html
    .replaceAll(/<[^>]+>/g, ' ')
    .replaceAll('&lt;', '<')
    .replaceAll('&gt;', '>')
    .replaceAll('&quot;', '"')
    .replaceAll('&#39;', "'")
    .replaceAll('&amp;', '&')
    .replaceAll(/\s+/g, ' ')
    .trim()
}

/** Lunr cuts at blanks: a name in a program is a word of its own. */
function words(text: string): string {
  return text.replaceAll(/[^\p{L}\p{N}_]+/gu, ' ')
}
