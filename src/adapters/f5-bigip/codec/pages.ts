import type { JsonValue } from '../../../kit/json.js'
import { isDrainableError, type DrainableError } from '../../../provider/error.js'
import { quote } from '../../../provider/quote.js'
import { parseItems, pathOf, stateOf } from './members.js'

/** The items of a list over its pages. */
export class Items {
  readonly #found = new Map<string, JsonValue>() // by path: a list that changes while it is paged repeats items
  readonly #odd = new Map<string, DrainableError>()

  /** Takes one page. An object that it has twice, in two states, is odd: neither is to be believed. */
  take(list: JsonValue): void {
    const page = new Map<string, string>()
    for (const [i, item] of parseItems(list).entries()) {
      try {
        const path = pathOf(item)
        const state = JSON.stringify(stateOf(item))
        if ((page.get(path) ?? state) !== state) {
          this.#odd.set(path, item.wrong(`one state for ${quote(path, 120)}`))
        }
        page.set(path, state)
        this.#found.set(path, item)
      } catch (error) {
        if (!isDrainableError(error, 'MALFORMED_REPLY')) throw error
        this.#odd.set(`${this.count} ${i}`, error)
      }
    }
  }

  /** How many there are, the odd ones too. */
  get count(): number {
    return new Set([...this.#found.keys(), ...this.#odd.keys()]).size
  }

  get items(): readonly JsonValue[] {
    return [...this.#found].flatMap(([path, item]) => (this.#odd.has(path) ? [] : item))
  }

  get odd(): readonly DrainableError[] {
    return [...this.#odd.values()]
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
