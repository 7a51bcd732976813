/** The links of the built reference: each leads to a page that is there, and to a place on it. */
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'

interface Page {
  readonly ids: ReadonlySet<string>
  readonly links: readonly string[]
}

/** What is wrong, a line each; empty where nothing is. */
export function brokenLinks(folder: string): readonly string[] {
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' })
  const pages = new Map(
    files.filter((file) => file.endsWith('.html')).map((file) => [file, read(join(folder, file))]),
  )
  return [...pages].flatMap(([file, { links }]) =>
    links.flatMap((link) => {
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
    links: [...new Set(links)].filter((link) => !/^[a-z]+:/.test(link) && link !== '#'),
  }
}

function isFile(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isFile() === true
}
