import type { JsonValue } from '../../../kit/json.js'
import { parseItems, pathOf, stateOf } from './members.js'

/**
 * Takes the items of one page, by path.
 *
 * @throws `MALFORMED_REPLY` where the page has one object twice, in two states: neither is to be believed
 */
export function takeItems(list: JsonValue, found: Map<string, JsonValue>): void {
  const page = new Map<string, string>()
  for (const item of parseItems(list)) {
    const path = pathOf(item)
    const state = JSON.stringify(stateOf(item))
    if ((page.get(path) ?? state) !== state) throw item.wrong('one state for each object')
    page.set(path, state)
    found.set(path, item)
  }
}

/** The query of a next page; words of the first that it lost are put back. */
export function withWords(next: string | undefined, first: string): string | undefined {
  if (next === undefined) return undefined
  const given = new URLSearchParams(next)
  const lost = first
    .slice(1)
    .split('&')
    .filter((word) => !given.has(word.split('=')[0] ?? ''))
  return [next, ...lost].join('&')
}
