/** The site: the guides and the reference of every entry, with a search over both. */
import { spawnSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { dirname, join, matchesGlob, relative } from 'node:path'
import { entries, present, root } from './entries.ts'
import { writeSearch } from './search.ts'

/** Builds it into a folder, and says what is wrong with it. A status as of a process. */
export function buildSite(folder: string, args: readonly string[] = []): number {
  for (const item of entries) {
    if (!present.includes(item))
      console.error(`not documented, its source is missing: ${item.source}`)
  }
  const points = present.flatMap((item) => ['--entryPoints', item.source])
  const { status } = spawnSync('typedoc', [...points, '--out', folder, ...args], {
    cwd: root,
    stdio: 'inherit',
  })
  if (status !== 0) return status ?? 1
  writeSearch(folder)
  const broken = [...brokenLinks(folder), ...untitled(folder)]
  for (const line of broken) console.error(line)
  return broken.length > 0 ? 1 : 0
}

/** A page, as far as links go. */
interface Page {
  readonly ids: ReadonlySet<string>
  readonly links: readonly string[]
}

/**
 * Links that lead to no page, or to no place on it, a line each; empty where there are none. A page of the site is linked within
 * the site, and not in the repository.
 */
export function brokenLinks(folder: string): readonly string[] {
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' })
  const pages = new Map(
    files.filter((file) => file.endsWith('.html')).map((file) => [file, read(join(folder, file))]),
  )
  return [...pages].flatMap(([file, { links }]) =>
    links.flatMap((link) => {
      const [, inRepository] = /^https:.*\/blob\/main\/([^#]+)/.exec(link) ?? []
      if (inRepository !== undefined) return wrongInRepository(file, inRepository)
      const [path = '', anchor = ''] = link.split('#').map(decodeURIComponent)
      const at = path === '' ? file : relative(folder, join(folder, dirname(file), path))
      const target = at === '' || link.endsWith('/') ? join(at, 'index.html') : at
      const page = pages.get(target)
      if (page === undefined)
        return isFile(join(folder, target)) ? [] : [`${file}: ${link}: there is no such file`]
      return anchor === '' || page.ids.has(anchor) ? [] : [`${file}: ${link}: no such place`]
    }),
  )
}

function wrongInRepository(file: string, path: string): readonly string[] {
  if (!existsSync(join(root, path))) return [`${file}: ${path}: it is not in the repository`]
  return guides().some((pattern) => matchesGlob(path, pattern))
    ? [`${file}: ${path}: the page stands in the site`]
    : []
}

function guides(): readonly string[] {
  const text = readFileSync(join(root, 'typedoc.json'), 'utf8')
  return (JSON.parse(text) as { projectDocuments: readonly string[] }).projectDocuments
}

/** The guides of a built reference whose heading is not there, or twice: typedoc prints none for them. */
export function untitled(folder: string): readonly string[] {
  const pages = readdirSync(join(folder, 'documents')).filter((file) => file.endsWith('.html'))
  return pages.flatMap((file) => {
    const found = readFileSync(join(folder, 'documents', file), 'utf8').match(/<h1\b/g)?.length ?? 0
    return found === 1
      ? []
      : [`documents/${file}: ${found} headings of the first level, expected one`]
  })
}

function read(path: string): Page {
  const html = readFileSync(path, 'utf8')
  const all = (pattern: RegExp): string[] =>
    [...html.matchAll(pattern)].map((match) => (match[1] ?? '').replaceAll('&amp;', '&'))
  const links = [...all(/<a\b[^>]*\bhref="([^"]+)"/g), ...all(/<img\b[^>]*\bsrc="([^"]+)"/g)]
  return {
    ids: new Set(all(/\bid="([^"]+)"/g)),
    links: [...new Set(links)].filter(
      (link) => (!/^[a-z]+:/.test(link) || link.includes('/blob/main/')) && link !== '#',
    ),
  }
}

function isFile(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isFile() === true
}
