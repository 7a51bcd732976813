/** Rows of a `stats` or `show` answer, whose shape differs from release to release. */
import type { JsonValue } from '../../../kit/json.js'

/**
 * The rows of an answer. Since version 12 a row is `entries.<url>.nestedStats.entries`; before, its
 * fields stood right under `entries`. Some answers carry text in place of rows.
 */
export function rows(value: JsonValue): readonly JsonValue[] {
  const entries = value.at('entries')
  const fields = entries.fields()
  if (fields.some(([, field]) => isStatistic(field))) return [entries]
  return fields.map(([, field]) => field.at('nestedStats').needed('an object').at('entries'))
}

function isStatistic(field: JsonValue): boolean {
  return field.at('value').present || field.at('description').present
}

/** A count; undefined where the device has none, never 0. */
export function count(row: JsonValue, name: string): number | undefined {
  return row.at(name).at('value').count()
}

/** A cumulative counter; undefined where the device has none. */
export function counter(row: JsonValue, name: string): number | undefined {
  return row.at(name).at('value').counter()
}

/** A word or a number as text. */
export function description(row: JsonValue, name: string): string | undefined {
  const field = row.at(name)
  return field.at('description').text() ?? field.at('value').word()
}

/** Text of tmsh that stands where rows would. */
export function rawText(value: JsonValue): string | undefined {
  return value.at('apiRawValues').at('apiAnonymous').text()
}
