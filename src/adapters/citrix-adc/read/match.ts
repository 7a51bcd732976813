import type { MemberRef } from '../../../provider/contract.js'
import { parseMember, sameServer } from '../codec/nitro.js'
import type { Entry } from '../codec/rows.js'
import type { Found, PoolState, Wanted } from './pool.js'

/** What is asked for, by the names of pools. */
export type Wishes = ReadonlyMap<string, Wanted>

/** What reading these members takes, by their pools. */
export function wishesOf(refs: readonly MemberRef[]): Wishes {
  const byPool = Map.groupBy(refs, ({ pool }) => pool)
  return new Map([...byPool].map(([pool, of]) => [pool, of.map(({ member }) => member)]))
}

/** Whether something is wanted that is not among these. */
export function isShort(entries: readonly Entry[], wanted: Wanted): boolean {
  if (wanted === 'all') return entries.length === 0
  const names = new Names(entries)
  return wanted.some((member) => names.fitting(member).length === 0)
}

/** Those of these that are wanted: what costs a request each is asked for these alone. */
export function wantedOf(entries: readonly Entry[], wanted: Wanted): ReadonlySet<Entry> {
  if (wanted === 'all') return new Set(entries)
  const names = new Names(entries)
  const fitting = new Set(wanted.flatMap((member) => names.fitting(member)))
  return new Set(entries.filter((entry) => fitting.has(entry)))
}

/** Members of one pool by the names that callers give them. */
class Names {
  readonly #entries: readonly Entry[]
  readonly #exact: ReadonlyMap<string, Entry>

  constructor(entries: readonly Entry[]) {
    this.#entries = entries
    this.#exact = new Map(entries.map((entry) => [entry.member, entry]))
  }

  /** The one of exactly that name, else all of that server, or address, and port; of any port where none is given. */
  fitting(member: string): readonly Entry[] {
    const exact = this.#exact.get(member)
    return exact === undefined ? this.#entries.filter((entry) => isMember(entry, member)) : [exact]
  }
}

/** What was found of one pool, by the names that callers give. */
export class Index {
  readonly #pool: PoolState
  readonly #names: Names
  readonly #found: ReadonlyMap<Entry, Found>

  constructor(pool: PoolState) {
    this.#pool = pool
    this.#names = new Names(pool.entries.map(({ entry }) => entry))
    this.#found = new Map(pool.entries.map((found) => [found.entry, found]))
  }

  /**
   * The member of that name; none where several have it.
   *
   * @throws `MALFORMED_REPLY` where none is, and a row that can't be read may be it
   */
  pick(member: string): Found | undefined {
    const [entry, second] = this.#names.fitting(member)
    if (entry !== undefined && second === undefined) return this.#found.get(entry)
    const [odd] = this.#pool.odd
    if (odd !== undefined) throw odd
    return undefined
  }
}

function isMember(entry: Entry, member: string): boolean {
  if (entry.subject.kind === 'service') return false
  // Without brackets the port of an IPv6 address could be its last group.
  if (member === `${entry.server}:${entry.port}`) return true
  const { server, port } = parseMember(member)
  if (port !== undefined && port !== entry.port) return false
  const { address } = entry
  return sameServer(server, entry.server) || (address !== undefined && sameServer(server, address))
}
