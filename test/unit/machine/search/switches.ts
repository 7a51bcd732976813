import type { AdminState } from 'drainable/provider'
import { Random } from '../../../model/random.js'
import type { Group } from './world.js'

/** Every switch of a policy, of what a product can do, of a goal and of the world, with the values it is searched with. */
export const SWITCHES = {
  goal: ['drain', 'anybody', 'healthy', 'own check', 'watch'],
  hold: ['drain', 'maint'],
  seal: ['never', 'gentle', 'always'],
  maint: ['gentle', 'cuts', 'none'],
  until: ['idle', 'removed'],
  onTimeout: ['fail', 'terminate', 'proceed'],
  onOverrule: ['fail', 'reapply'],
  onMinimum: ['fail', 'wait'],
  escalateAfter: [null, 100],
  timeout: [null, 200, 8_000],
  terminate: [true, false],
  countsAfterRemove: [true, false],
  counts: ['arrivals', 'no arrivals', 'none'],
  blind: [0, 90],
  freshness: [0, 50],
  lateBound: [100, 2_000],
  listsAll: [false, true],
  persistent: [true, false],
  tellsClock: [false, true],
  sealed: ['untold', 'told'],
  unverified: [false, true],
  own: ['ready', 'drain', 'maint'],
  contradicts: [false, true],
  second: ['alive', 'unborn'],
  plays: groups(),
  playsToo: groups(),
} as const satisfies Record<string, readonly (string | number | boolean | null)[]>

function groups(): readonly (Group | 'nothing more')[] {
  return [
    'nothing more',
    'stops',
    'blinks',
    'queues',
    'partial',
    'unlisted',
    'contradicts',
    'half-made',
    'state-file',
    'returns',
    'given-up',
    'next-run',
    'steps',
    'floor',
    'doubts',
    'health',
    'inherits',
    'elsewhere',
  ]
}

type Switch = keyof typeof SWITCHES
/** One value for each switch. */
export type Row = { readonly [S in Switch]: (typeof SWITCHES)[S][number] }
type Loose = Partial<Record<Switch, Row[Switch]>>

export const NAMES = Object.keys(SWITCHES) as readonly Switch[]

/** Pairs of values that no caller can have, and why. */
const IMPOSSIBLE: readonly (readonly [Loose, why: string])[] = [
  [{ onTimeout: 'terminate', terminate: false }, 'a policy that cuts wants a product that can'],
  [{ hold: 'maint', maint: 'none' }, 'there is no maint to hold with'],
  [{ own: 'maint', maint: 'none' }, 'there is no maint to be found in'],
  [{ onTimeout: 'terminate', timeout: null }, 'no deadline, nothing to cut at'],
  [{ onTimeout: 'proceed', timeout: null }, 'no deadline, nothing to go on after'],
  [{ listsAll: true, plays: 'unlisted' }, 'what is not listed has ended'],
  [{ listsAll: true, playsToo: 'unlisted' }, 'what is not listed has ended'],
  [{ counts: 'none', plays: 'queues' }, 'a product that counts nothing counts no queue'],
  [{ counts: 'none', playsToo: 'queues' }, 'a product that counts nothing counts no queue'],
]

function isPossible(row: Loose): boolean {
  return IMPOSSIBLE.every(
    ([loose]) => !NAMES.filter((name) => name in loose).every((name) => row[name] === loose[name]),
  )
}

interface Pair {
  readonly one: Switch
  readonly other: Switch
  readonly row: Loose
  readonly key: string
}

function keyOf(one: Switch, a: Row[Switch], other: Switch, b: Row[Switch]): string {
  return `${one}=${String(a)} ${other}=${String(b)}`
}

/** Every pair of values of two switches that is possible. */
export function allPairs(): readonly Pair[] {
  const pairs: Pair[] = []
  for (const [i, one] of NAMES.entries())
    for (const other of NAMES.slice(i + 1))
      for (const a of SWITCHES[one])
        for (const b of SWITCHES[other]) {
          const row = { [one]: a, [other]: b }
          if (isPossible(row)) pairs.push({ one, other, row, key: keyOf(one, a, other, b) })
        }
  return pairs
}

/** The pairs that one row covers. */
export function pairsOf(row: Row): readonly string[] {
  return NAMES.flatMap((one, i) =>
    NAMES.slice(i + 1).map((other) => keyOf(one, row[one], other, row[other])),
  )
}

/** How many rows are tried for each that is taken. */
const TRIES = 12

/** Rows that together have every possible pair of values: one seed, one list. */
export function coveringRows(seed: number): readonly Row[] {
  const random = new Random(seed)
  const open = new Map(allPairs().map((pair) => [pair.key, pair]))
  const rows: Row[] = []
  while (open.size > 0) {
    let best: Row | undefined
    let most = 0
    for (let i = 0; i < TRIES; i += 1) {
      const row = grow(random, [...open.values()])
      const news = row === undefined ? 0 : pairsOf(row).filter((key) => open.has(key)).length
      if (news > most) [best, most] = [row, news]
    }
    if (best === undefined) throw new Error(`no row has ${[...open.keys()].join('; ')}`)
    for (const key of pairsOf(best)) open.delete(key)
    rows.push(best)
  }
  return rows
}

/** A row that has one of the pairs, and for each other switch the value that brings most of them. */
function grow(random: Random, open: readonly Pair[]): Row | undefined {
  const wanted = new Set(open.map(({ key }) => key))
  let row: Loose = random.pick(open).row
  const rest = NAMES.filter((name) => !(name in row))
  while (rest.length > 0) {
    const [name] = rest.splice(random.int(0, rest.length - 1), 1)
    if (name === undefined) break
    const values = SWITCHES[name].filter((value) => isPossible({ ...row, [name]: value }))
    if (values.length === 0) return undefined
    const known = NAMES.filter((other) => other in row)
    const gains = values.map((value) => gainOf(name, value, { row, known, wanted }))
    const most = Math.max(...gains)
    row = { ...row, [name]: random.pick(values.filter((_, i) => gains[i] === most)) }
  }
  return row as Row
}

interface Growing {
  readonly row: Loose
  readonly known: readonly Switch[]
  readonly wanted: ReadonlySet<string>
}

function gainOf(name: Switch, value: Row[Switch], { row, known, wanted }: Growing): number {
  const at = NAMES.indexOf(name)
  return known.filter((other) => {
    const there = row[other]
    if (there === undefined) return false
    const first = NAMES.indexOf(other) < at
    return wanted.has(first ? keyOf(other, there, name, value) : keyOf(name, value, other, there))
  }).length
}

/** The row in a few words: what differs from a plain drain. */
export function nameOf(row: Row): string {
  const told = NAMES.filter((name) => row[name] !== SWITCHES[name][0])
  return told.map((name) => `${name} ${String(row[name])}`).join(', ')
}

/** A state a member can be found in. */
export type FoundState = Extract<Row['own'], AdminState>
