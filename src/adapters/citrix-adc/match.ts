import { parseMember, sameServer } from './codec.js'
import type { Entry } from './codec-rows.js'
import type { Found, PoolState, Wanted } from './reads.js'

/** What reading these members of a pool takes. */
export function wantedOf(members: readonly string[], counts = true): Wanted {
  return {
    members: (entry) => members.some((member) => isMember(entry, member)),
    services: members,
    counts,
  }
}

/** The member of that name: exactly, by its server and port, or by its server alone where it has one port. */
export function pick(pool: PoolState, member: string): Found | undefined {
  const fits = pool.entries.filter(({ entry }) => isMember(entry, member))
  return (
    fits.find(({ entry }) => entry.member === member) ?? (fits.length === 1 ? fits[0] : undefined)
  )
}

function isMember(entry: Entry, member: string): boolean {
  if (entry.member === member) return true
  if (entry.subject.kind === 'service') return false
  // Without brackets the port of an IPv6 address could be its last group.
  if (member === `${entry.server}:${entry.port}`) return true
  const { server, port } = parseMember(member)
  if (port !== undefined && port !== entry.port) return false
  return (
    sameServer(server, entry.server) ||
    (entry.address !== undefined && sameServer(server, entry.address))
  )
}
