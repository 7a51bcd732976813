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

function placesOf(value: unknown, at: Place): Place[] {
  const inner = typeof value === 'object' && value !== null ? Object.entries(value) : []
  const isList = Array.isArray(value)
  return [
    at,
    ...inner.flatMap(([key, item]) => placesOf(item, [...at, isList ? Number(key) : key])),
  ]
}

/** The same JSON with one place damaged: its key dropped, its row twice, or another type in its place. */
function damaged(json: string, place: Place, how: number): string {
  const root = { root: JSON.parse(json) as unknown }
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
  const parsed = JSON.parse(json) as unknown
  const text = JSON.stringify(parsed)
  const places = placesOf(parsed, ['root'])
  const damage = fc
    .tuple(fc.nat(), fc.nat())
    .map(([which, how]) => damaged(text, places[which % places.length]!, how))
  return fc.oneof(
    { weight: 4, arbitrary: damage },
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

/** Texts that stand where a cell was. */
const CELLS = ['', 'nonsense', '-1', '0.5', '1e3', '99999999999999999999', '"']

/**
 * One reply of lines with a damage: a cell of a row replaced or dropped, a row twice, or cut anywhere.
 * What a number could have been as well (another name, another count) is no damage that shows.
 */
export function damagedLines(text: string, separator: string | RegExp): fc.Arbitrary<string> {
  const lines = text.split('\n')
  // An empty line is the frame, not the reply.
  const full = lines.filter((line) => line !== '').length
  const joint = typeof separator === 'string' ? separator : ' '
  const damage = fc.tuple(fc.nat(), fc.nat(), fc.nat()).map(([line, cell, how]) => {
    const at = line % full
    const cells = (lines[at] ?? '').split(separator)
    const place = cell % cells.length
    const numeric = /^\d+$/.test(cells[place] ?? '')
    // A text in place of a text is another name, and no damage.
    const strangers = numeric ? CELLS : ['']
    const choice = how % (strangers.length + 2)
    if (choice < strangers.length) cells[place] = strangers[choice] ?? ''
    else if (choice === strangers.length) cells.splice(place, 1)
    const twice = choice > strangers.length
    const next = [...lines]
    next.splice(at, twice ? 0 : 1, cells.join(joint))
    return next.join('\n')
  })
  return fc.oneof(
    { weight: 4, arbitrary: damage },
    { weight: 1, arbitrary: fc.nat({ max: text.length - 1 }).map((at) => text.slice(0, at)) },
  )
}
