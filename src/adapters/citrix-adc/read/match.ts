import type { MemberRef } from '../../../provider/contract.js'
import { parseMember, sameServer } from '../codec/nitro.js'
import type { Entry } from '../codec/rows.js'
import type { Found, PoolState } from './read.js'

/** What reading these members takes, by their pools. */
export function wishesOf(refs: readonly MemberRef[]): ReadonlyMap<string, Wanted> {
  const byPool = Map.groupBy(refs, ({ pool }) => pool)
  return new Map(
    [...byPool].map(([pool, of]) => [pool, new Wanted(of.map(({ member }) => member))]),
  )
}

/** What is wanted of a pool: members by their names, or all of them. */
export class Wanted {
  readonly names: readonly string[] | 'all'
  readonly #named: ReadonlySet<string>

  constructor(names: readonly string[] | 'all') {
    this.names = names
    const all = names === 'all' ? [] : names
    this.#named = new Set(all.flatMap((name) => [name, partsOf(parseMember(name))]))
  }

  /**
   * Whether it may be looked at: what costs a request each is asked for these alone. Only a first sieve, a
   * name in another case costs a look: `pick` decides.
   */
  has({ member, server, address, port, subject }: Entry): boolean {
    if (this.names === 'all' || this.#named.has(member)) return true
    if (subject.kind === 'service') return false
    return [server, address ?? server].some(
      (one) =>
        this.#named.has(partsOf({ server: one, port })) ||
        this.#named.has(partsOf({ server: one })) ||
        this.#named.has(`${one}:${port}`),
    )
  }

  /** Whether something is wanted that is not among these. */
  isMissing(entries: readonly Entry[]): boolean {
    if (this.names === 'all') return entries.length === 0
    const known = new Set(entries.map(({ member }) => member))
    return this.names.some(
      (name) => !known.has(name) && !entries.some((entry) => isMember(entry, name)),
    )
  }
}

/** Finds members of one pool by the names that callers give them. */
export class Index {
  readonly #pool: PoolState
  readonly #exact: ReadonlyMap<string, Found>

  constructor(pool: PoolState) {
    this.#pool = pool
    this.#exact = new Map(pool.entries.map((found) => [found.entry.member, found]))
  }

  /**
   * The member of that name: exactly, by its server and port, or by its server alone where it has one port.
   *
   * @throws `MALFORMED_REPLY` where none is, and a row that can't be read may be it
   */
  pick(member: string): Found | undefined {
    const exact = this.#exact.get(member)
    if (exact !== undefined) return exact
    const { entries, odd } = this.#pool
    const [found, ...others] = entries.filter(({ entry }) => isMember(entry, member))
    if (found !== undefined && others.length === 0) return found
    if (odd[0] !== undefined) throw odd[0]
    return undefined
  }
}

function partsOf({ server, port }: { server: string; port?: number | undefined }): string {
  return `${server.toLowerCase()}\0${port ?? ''}`
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
