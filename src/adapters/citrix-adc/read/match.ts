import type { MemberRef } from '../../../provider/contract.js'
import { parseMember, sameServer } from '../codec/nitro.js'
import type { Entry } from '../codec/rows.js'
import type { Found, PoolState, Wanted } from './pool.js'

/** What reading these members takes, by their pools. */
export function wishesOf(refs: readonly MemberRef[]): ReadonlyMap<string, Wanted> {
  const byPool = Map.groupBy(refs, ({ pool }) => pool)
  return new Map([...byPool].map(([pool, of]) => [pool, wantedOf(of.map(({ member }) => member))]))
}

/** What reading these members of a pool takes. */
function wantedOf(members: readonly string[]): Wanted {
  const names = new Set(members)
  const ports = new Map<string, Set<number | undefined>>()
  for (const member of members) {
    const { server, port } = parseMember(member)
    const known = ports.get(server.toLowerCase()) ?? new Set()
    ports.set(server.toLowerCase(), known.add(port))
  }
  const named = ({ port }: Entry, server: string | undefined): boolean => {
    const wanted = server === undefined ? undefined : ports.get(server.toLowerCase())
    return wanted !== undefined && (wanted.has(port) || wanted.has(undefined))
  }
  return {
    // Only a first sieve: a service named like a server costs a look, `pick` decides.
    members: (entry) =>
      names.has(entry.member) ||
      names.has(`${entry.server}:${entry.port}`) ||
      (entry.subject.kind === 'member' &&
        (named(entry, entry.server) || named(entry, entry.address))),
    missing: (entries) => {
      const known = new Set(entries.map(({ member }) => member))
      return members.some(
        (member) => !known.has(member) && !entries.some((entry) => isMember(entry, member)),
      )
    },
    services: members,
    key: [...names].sort().join('\0'),
  }
}

/** Everything of a pool. */
export const ALL: Wanted = {
  members: () => true,
  missing: (entries) => entries.length === 0,
  services: 'all',
  key: 'all',
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
    const found = this.#find(member)
    const [odd] = this.#pool.odd
    if (found === undefined && odd !== undefined) throw odd
    return found
  }

  #find(member: string): Found | undefined {
    const exact = this.#exact.get(member)
    if (exact !== undefined) return exact
    const fits = this.#pool.entries.filter(({ entry }) => isMember(entry, member))
    return fits.length === 1 ? fits[0] : undefined
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
