/** Narrowing of replies, whose shapes differ from release to release. */
import { DrainableError } from '../../../provider/error.js'

export type JsonObject = Readonly<Record<string, unknown>>

export function asObject(value: unknown): JsonObject | undefined {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
    ? (value as JsonObject)
    : undefined
}

export function asText(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined
}

/** The objects of a list; an empty list has no `items` at all. */
export function items(value: unknown): readonly JsonObject[] {
  const list = asObject(value)?.['items']
  if (!Array.isArray(list)) return []
  return (list as readonly unknown[]).flatMap((item) => {
    const object = asObject(item)
    return object === undefined ? [] : [object]
  })
}

export function malformed(what: string, found: unknown): DrainableError {
  const shown = JSON.stringify(found) as string | undefined
  return new DrainableError(
    'MALFORMED_REPLY',
    `${what}, found ${(shown ?? 'nothing').slice(0, 200)}`,
  )
}

/**
 * The rows of a `stats` or `show` answer. Since version 12 a row is `entries.<url>.nestedStats.entries`;
 * before, its fields stood right under `entries`. Some answers carry text in place of rows.
 */
export function rows(
  value: unknown,
): readonly { readonly key: string; readonly fields: JsonObject }[] {
  const entries = asObject(asObject(value)?.['entries'])
  if (entries === undefined) return []
  const found: { key: string; fields: JsonObject }[] = []
  for (const [key, entry] of Object.entries(entries)) {
    const nested = asObject(asObject(asObject(entry)?.['nestedStats'])?.['entries'])
    if (nested !== undefined) found.push({ key, fields: nested })
  }
  if (found.length === 0 && Object.values(entries).some(isStatistic)) {
    found.push({ key: '', fields: entries })
  }
  return found
}

function isStatistic(value: unknown): boolean {
  const object = asObject(value)
  return object !== undefined && ('value' in object || 'description' in object)
}

/** A count; undefined where it is missing or is no count: never 0. */
export function count(fields: JsonObject, name: string): number | undefined {
  const value = asObject(fields[name])?.['value']
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : undefined
}

/** A word or a number as text. */
export function description(fields: JsonObject, name: string): string | undefined {
  const entry = asObject(fields[name])
  if (typeof entry?.['description'] === 'string') return entry['description']
  return typeof entry?.['value'] === 'number' ? String(entry['value']) : undefined
}

/** Text of tmsh that stands where rows would. */
export function rawText(value: unknown): string | undefined {
  return asText(asObject(asObject(value)?.['apiRawValues'])?.['apiAnonymous'])
}
