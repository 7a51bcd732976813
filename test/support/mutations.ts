import fc from 'fast-check'
import { isDrainableError } from '../../src/provider/error.js'

/** Values of every type, to stand where another one was. */
const STRANGERS: readonly unknown[] = [
  null,
  true,
  'nonsense',
  '',
  -1,
  0.5,
  1e300,
  [],
  {},
  [[]],
  { value: {} },
]

type Place = readonly (string | number)[]

function placesOf(value: unknown, at: Place = []): Place[] {
  const inner = typeof value === 'object' && value !== null ? Object.entries(value) : []
  const isList = Array.isArray(value)
  return [
    at,
    ...inner.flatMap(([key, item]) => placesOf(item, [...at, isList ? Number(key) : key])),
  ]
}

/** The same JSON with one place damaged: its key dropped, its row twice, or another type in its place. */
function damaged(json: string, which: number, how: number): string {
  const root = { root: JSON.parse(json) as unknown }
  const places = placesOf(root.root, ['root'])
  const place = places[which % places.length] ?? ['root']
  const key = place.at(-1) ?? 'root'
  type Holder = Record<string | number, unknown>
  const holder = place
    .slice(0, -1)
    .reduce<unknown>((found, name) => (found as Holder)[name], root) as Holder
  const before = holder[key]
  const strangers = STRANGERS.filter((value) => typeOf(value) !== typeOf(before))
  const choice = how % (strangers.length + 1)
  if (choice < strangers.length) holder[key] = strangers[choice]
  else if (Array.isArray(holder)) holder.splice(Number(key), 0, before)
  else Reflect.deleteProperty(holder, key)
  return root.root === undefined ? '' : JSON.stringify(root.root)
}

/** A number is another type than one that can't be a count. */
function typeOf(value: unknown): string {
  if (typeof value === 'number') return Number.isSafeInteger(value) && value >= 0 ? 'count' : 'odd'
  return value === null ? 'null' : Array.isArray(value) ? 'list' : typeof value
}

/** One reply in JSON with a damage: of its shape, or cut anywhere. */
export function damagedJson(json: string): fc.Arbitrary<string> {
  const text = JSON.stringify(JSON.parse(json))
  return fc.oneof(
    { weight: 4, arbitrary: fc.tuple(fc.nat(), fc.nat()).map(([a, b]) => damaged(text, a, b)) },
    { weight: 1, arbitrary: fc.nat({ max: text.length - 1 }).map((at) => text.slice(0, at)) },
  )
}

/** What a decoder makes of a reply; undefined where it says that the reply is damaged. */
export function decoded<T>(decode: (text: string) => T, text: string): T | undefined {
  try {
    return decode(text)
  } catch (error) {
    if (isDrainableError(error, 'MALFORMED_REPLY', 'CONNECTION_LOST')) return undefined
    throw error
  }
}

/** Holds a decoder to the rule: of a damaged reply it says the same, less as `judge` allows, or that it is damaged. */
export function holds<T>(
  reply: string,
  decode: (text: string) => T,
  judge: (before: T, after: T, text: string) => void,
  damage: fc.Arbitrary<string> = damagedJson(reply),
): void {
  const before = decode(reply)
  fc.assert(
    fc.property(damage, (text) => {
      const after = decoded(decode, text)
      if (after !== undefined) judge(before, after, text)
    }),
    { numRuns: 1_500 },
  )
}
