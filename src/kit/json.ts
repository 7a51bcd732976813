/**
 * Reads replies in JSON and checks them. The rules for every adapter:
 *
 * - an absent key means no value, and so does null; but null is not a list
 * - a key with a value of a wrong shape is `MALFORMED_REPLY`, which says what was expected and found
 * - a text that is cut off is `CONNECTION_LOST`: the next reply can be complete
 *
 * So an adapter never draws a conclusion from the missing part of a damaged reply.
 */
import type { Json } from '../provider/contract.js'
import { DrainableError } from '../provider/error.js'
import { quote } from '../provider/quote.js'

/** A JSON object. */
export type JsonObject = Readonly<Record<string, Json>>

/** Whether a value is a JSON object. */
export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** The source of a reply, for error messages. */
export interface Source {
  /** Name of the provider. */
  readonly provider: string
  /** The request, such as `GET /mgmt/tm/sys/ready at 10.0.0.1`. */
  readonly what: string
  /** Removes secrets from a text before it is shown. */
  readonly clean?: (text: string) => string
}

/** Makes the error of a reply with a wrong shape. */
export function malformed(source: Source, expected: string, found: string): DrainableError {
  return new DrainableError(
    'MALFORMED_REPLY',
    `${source.what}: expected ${expected}, found ${found}`,
    { provider: source.provider },
  )
}

/**
 * Makes the error of a reply that was cut off. The message shows none of it, because the last part can be half a
 * secret.
 */
export function cutShort(source: Source, text: string): DrainableError {
  return new DrainableError(
    'CONNECTION_LOST',
    `${source.what}: the answer was cut off, after ${text.length} characters`,
    { provider: source.provider },
  )
}

/**
 * Parses a reply's text into a value to read.
 *
 * @throws `CONNECTION_LOST` if the text was cut off, `MALFORMED_REPLY` if it is not JSON
 */
export function parseJson(text: string, source: Source): JsonValue {
  try {
    return new JsonValue(parseExact(text), source)
  } catch {
    if (isCut(text)) throw cutShort(source, text)
    throw malformed(source, 'JSON', shownText(source, text))
  }
}

/**
 * Parses JSON as `JSON.parse` does, but whole numbers that a number can't hold exactly become texts of their digits:
 * a rounded counter would hide one more request.
 *
 * @throws `SyntaxError`
 */
export function parseExact(text: string): unknown {
  if (!/\d{16}/.test(text)) return JSON.parse(text)
  const exact = (_key: string, value: unknown, context?: { readonly source?: string }): unknown =>
    typeof value === 'number' && !Number.isSafeInteger(value) && /^\d+$/.test(context?.source ?? '')
      ? context?.source
      : value
  return JSON.parse(text, exact)
}

/** The characters that JSON can contain outside of its strings. */
const OUTSIDE = /[\s{}[\]:,0-9+\-.eEtrufalsn]/

/** Whether a text begins as a JSON object or list, and ends before its end. */
export function isCut(text: string): boolean {
  if (!/^\s*[{[]/.test(text.slice(0, 1_000))) return false
  let depth = 0
  let quoted = false
  for (let at = 0; at < text.length; at += 1) {
    const char = text[at] ?? ''
    if (quoted) {
      if (char === '\\') at += 1
      else if (char === '"') quoted = false
    } else if (char === '"') quoted = true
    else if (!OUTSIDE.test(char)) return false
    else if (char === '{' || char === '[') depth += 1
    else if ((char === '}' || char === ']') && --depth === 0) return false
  }
  return true
}

/** One value of a reply, and its path. Absent and null are the same: `undefined`. */
export class JsonValue {
  /** The value as it came; null becomes undefined. */
  readonly value: Exclude<Json, null> | undefined
  readonly #isNull: boolean
  readonly #source: Source
  readonly #parent: JsonValue | undefined
  readonly #key: string

  constructor(value: unknown, source: Source, parent?: JsonValue, key = '') {
    this.value = (value ?? undefined) as Exclude<Json, null> | undefined
    this.#isNull = value === null
    this.#source = source
    this.#parent = parent
    this.#key = key
  }

  /** Whether there is a value. */
  get present(): boolean {
    return this.value !== undefined
  }

  /** Its path in the reply, such as `items[3].address`. */
  get path(): string {
    const before = this.#parent?.path ?? ''
    return before === '' || this.#key.startsWith('[')
      ? `${before}${this.#key}`
      : `${before}.${this.#key}`
  }

  /** Returns the value under a key; an absent value if there is none. */
  at(key: string): JsonValue {
    const object = this.object()
    const value = object !== undefined && Object.hasOwn(object, key) ? object[key] : undefined
    return new JsonValue(value, this.#source, this, key)
  }

  /** Returns the same value, or throws if there is none. */
  needed(expected = 'a value'): this {
    if (this.present) return this
    throw this.wrong(expected)
  }

  object(): JsonObject | undefined {
    if (this.value === undefined) return undefined
    if (isObject(this.value)) return this.value
    throw this.wrong('an object')
  }

  /** Returns the value under each key. */
  fields(): readonly (readonly [string, JsonValue])[] {
    return Object.entries(this.object() ?? {}).map(
      ([key, value]) => [key, new JsonValue(value, this.#source, this, key)] as const,
    )
  }

  /** Returns the items of a list; none if there is no list. */
  list(): readonly JsonValue[] {
    if (this.value === undefined && !this.#isNull) return []
    if (!Array.isArray(this.value)) throw this.wrong('a list')
    return (this.value as readonly Json[]).map(
      (item, i) => new JsonValue(item, this.#source, this, `[${i}]`),
    )
  }

  /** Returns the objects of a list. */
  rows(): readonly JsonValue[] {
    const rows = this.list()
    for (const row of rows) if (row.object() === undefined) throw row.wrong('an object')
    return rows
  }

  text(): string | undefined {
    if (this.value === undefined || typeof this.value === 'string') return this.value
    throw this.wrong('a text')
  }

  /** Returns a text that must be present and not empty. */
  neededText(): string {
    const text = this.text()
    if (text !== undefined && text !== '') return text
    throw this.wrong('a text that is not empty')
  }

  /** Returns a text, number or boolean as a text: products write one for the other. */
  word(): string | undefined {
    if (typeof this.value === 'object') throw this.wrong('a text or a number')
    return this.value === undefined ? undefined : String(this.value)
  }

  number(): number | undefined {
    if (this.value === undefined || typeof this.value === 'number') return this.value
    throw this.wrong('a number')
  }

  /** Returns a whole number from 0. */
  count(): number | undefined {
    if (this.value === undefined || isCount(this.value)) return this.value
    throw this.wrong(COUNT)
  }

  neededCount(): number {
    const count = this.count()
    if (count !== undefined) return count
    throw this.wrong(COUNT)
  }

  /** Returns a count written as a text of digits, or as a number. */
  digits(): number | undefined {
    if (typeof this.value !== 'string') return this.count()
    const count = /^\d{1,16}$/.test(this.value) ? Number(this.value) : undefined
    if (isCount(count)) return count
    throw this.wrong(COUNT)
  }

  /**
   * Returns a cumulative counter, a number or a text of digits: its last digits, because it may exceed what a number can
   * hold, and all that is asked of it is whether it moved. Two of them can be added.
   */
  counter(): number | undefined {
    const text = this.word()?.trim()
    if (text === undefined || text === '') return undefined
    if (/^\d{1,40}(\.0{1,16})?$/.test(text)) return Number(text.split('.')[0]?.slice(-15))
    throw this.wrong(COUNT)
  }

  flag(): boolean | undefined {
    if (this.value === undefined || typeof this.value === 'boolean') return this.value
    throw this.wrong('true or false')
  }

  /** Makes the error of a value with a wrong shape. */
  wrong(expected: string): DrainableError {
    const { path } = this
    const subject = path === '' ? expected : `${quote(path)} to be ${expected}`
    return malformed(this.#source, subject, this.#shown())
  }

  #shown(): string {
    const { value } = this
    if (value === undefined) return this.#isNull ? 'null' : 'nothing'
    if (typeof value === 'string') return shownText(this.#source, value)
    if (Array.isArray(value)) return `a list of ${value.length}`
    if (typeof value !== 'object') return String(value)
    const keys = Object.keys(value).slice(0, 20).join(', ')
    return keys === ''
      ? 'an object without keys'
      : `an object with ${shownText(this.#source, keys)}`
  }
}

const COUNT = 'a whole number from 0 up'

/** Whether a value is a whole number from 0 up that a number can hold exactly. */
export function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0
}

/**
 * A shown text is cut from this many characters, so that a long reply costs nothing; secrets are removed completely
 * before.
 */
const LOOKED_AT = 4_000

function shownText({ clean }: Source, text: string): string {
  const head = text.slice(0, LOOKED_AT)
  return `'${quote(clean?.(head) ?? head)}'`
}
