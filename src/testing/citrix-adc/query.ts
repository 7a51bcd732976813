import type { Plain } from './config.js'

/** What stands behind the question mark, decoded once: `args` and `filter` have pairs of their own. */
export interface Query {
  readonly words: ReadonlyMap<string, string>
  readonly args: ReadonlyMap<string, string>
  readonly filter: ReadonlyMap<string, string>
}

export function parseQuery(text: string): Query {
  const raw = new Map<string, string>()
  for (const part of text.split('&')) {
    const at = part.indexOf('=')
    if (part !== '') raw.set(at < 0 ? part : part.slice(0, at), at < 0 ? '' : part.slice(at + 1))
  }
  const words = new Map([...raw].map(([key, value]) => [key.toLowerCase(), decode(value)]))
  return { words, args: pairs(raw.get('args') ?? ''), filter: pairs(raw.get('filter') ?? '') }
}

/** Colons and commas separate as they stand; encoded ones belong to the value. */
function pairs(raw: string): Map<string, string> {
  const found = new Map<string, string>()
  // A client that encodes the whole value is understood too, as long as no value holds a separator.
  const text = raw.includes(':') || !/%3a/i.test(raw) ? raw : decode(raw)
  for (const pair of text.split(',')) {
    const at = pair.indexOf(':')
    if (at > 0) found.set(decode(pair.slice(0, at)).toLowerCase(), decode(pair.slice(at + 1)))
  }
  return found
}

/** A name in a path: the appliance decodes it twice, the second time as a form does. */
export function decodeName(segment: string): string {
  return decode(decode(segment).replaceAll('+', ' '))
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

/** `filter`, `count`, `pagesize` and `attrs` on rows. */
export function shape(rows: readonly Plain[], query: Query): readonly Plain[] {
  let found = rows.filter((row) =>
    [...query.filter].every(([key, wanted]) => matches(textOf(row, key), wanted)),
  )
  if (query.words.get('count')?.toLowerCase() === 'yes') return [{ __count: found.length }]
  const size = Number(query.words.get('pagesize') ?? 0)
  if (size > 0) {
    const page = Math.max(1, Number(query.words.get('pageno') ?? 1))
    found = found.slice((page - 1) * size, page * size)
  }
  const attrs = query.words.get('attrs')?.split(',')
  if (attrs === undefined) return found
  return found.map((row) =>
    Object.fromEntries(Object.entries(row).filter(([key]) => attrs.includes(key))),
  )
}

function textOf(row: Plain, key: string): string {
  const entry = Object.entries(row).find(([name]) => name.toLowerCase() === key)
  return entry === undefined ? '' : String(entry[1])
}

function matches(value: string, wanted: string): boolean {
  const pattern = /^\/(.*)\/$/.exec(wanted)?.[1]
  if (pattern === undefined) return value === wanted
  try {
    return new RegExp(pattern).test(value)
  } catch {
    return false
  }
}
