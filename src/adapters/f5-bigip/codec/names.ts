/**
 * Names on the wire of iControl REST.
 *
 * An object's full path `/Partition/folder/name` is one URL segment in which `/` is written `~`. All
 * else is percent-encoded once: `%` of a route domain becomes `%25` (a URL parser leaves a bare `%1:`
 * as it is and the device then decodes it wrongly), `:` stays raw, as F5's own clients send it.
 *
 * A member's name is its node's NAME, a separator and the port. The separator is `.` where the node's
 * name has a colon (IPv6), else `:`. The node's name need not be its address, and the member's
 * partition need not be its pool's: so members are found in lists, never composed.
 */
import { canonicalAddress } from '../../../provider/address.js'

/** Names the device cannot have; asking for one would ask for something else. */
const IMPOSSIBLE = /[\p{Cc}~]/u
const LONGEST = 512

/** A pool, node or member as a full path: a name without a path is in `partition`. */
export function toFullPath(name: string, partition: string): string {
  return name.startsWith('/') ? name : `/${partition}/${name}`
}

/** Whether an object of this name can exist: what can't is absent without being asked for. */
export function isPossible(fullPath: string): boolean {
  return (
    fullPath.length <= LONGEST &&
    !IMPOSSIBLE.test(fullPath) &&
    fullPath.split('/').every((part, i) => (i === 0 ? part === '' : !/^\.{0,2}$/.test(part)))
  )
}

/** A full path as one segment of a URL. */
export function toSegment(fullPath: string): string {
  return encodeURIComponent(fullPath.replaceAll('/', '~')).replaceAll('%3A', ':')
}

export function poolPath(pool: string): string {
  return `/mgmt/tm/ltm/pool/${toSegment(pool)}`
}

export function membersPath(pool: string): string {
  return `${poolPath(pool)}/members`
}

export function memberPath(pool: string, member: string): string {
  return `${membersPath(pool)}/${toSegment(member)}`
}

export function nodePath(node: string): string {
  return `/mgmt/tm/ltm/node/${toSegment(node)}`
}

/** Services that the device may write by name where a port is meant. */
const SERVICES: Readonly<Record<string, number>> = {
  any: 0,
  ftp: 21,
  ssh: 22,
  telnet: 23,
  smtp: 25,
  domain: 53,
  http: 80,
  pop3: 110,
  imap: 143,
  ldap: 389,
  https: 443,
  ldaps: 636,
  webcache: 8080,
}

/** Node (full path) and port of a member's full path; undefined where it has no port. */
export function splitMember(
  fullPath: string,
): { readonly node: string; readonly port: number } | undefined {
  const slash = fullPath.lastIndexOf('/') + 1
  const name = fullPath.slice(slash)
  const at = name.split(':').length > 2 ? name.lastIndexOf('.') : name.lastIndexOf(':')
  if (at <= 0) return undefined
  const port = toPort(name.slice(at + 1))
  return port === undefined ? undefined : { node: fullPath.slice(0, slash + at), port }
}

/** A port as a number: the device writes well-known ones by name in some places. */
export function toPort(text: string): number | undefined {
  if (/^\d{1,5}$/.test(text)) return Number(text) <= 65_535 ? Number(text) : undefined
  return SERVICES[text]
}

/** A member as a list shows it, as far as finding it goes. */
export interface Named {
  readonly fullPath: string
  readonly node: string
  readonly port: number
  readonly address: string | undefined
}

/**
 * The members of a pool that a name means, best match only: full path, name in the pool's or the
 * default partition, name in any, address and port (`10.0.0.1:80`, `[2001:db8::1]:80`,
 * `2001:db8::1.80`), or the node's name alone.
 */
export function findMembers<M extends Named>(
  members: readonly M[],
  name: string,
  partitions: readonly string[],
): readonly M[] {
  if (name.startsWith('/')) return members.filter((m) => m.fullPath === name)
  for (const partition of partitions) {
    const exact = members.filter((m) => m.fullPath === `/${partition}/${name}`)
    if (exact.length > 0) return exact
  }
  const wished = toEndpoint(name)
  const matches: ((member: M) => boolean)[] = [
    (m) => lastPart(m.fullPath) === name,
    (m) =>
      wished !== undefined &&
      m.port === wished.port &&
      m.address !== undefined &&
      canonicalAddress(m.address) === wished.address,
    (m) => lastPart(m.node) === name,
  ]
  for (const match of matches) {
    const found = members.filter(match)
    if (found.length > 0) return found
  }
  return []
}

function toEndpoint(name: string): { readonly address: string; readonly port: number } | undefined {
  const bracketed = /^\[(.+)\]:(\d+)$/.exec(name)
  const split =
    bracketed === null
      ? splitMember(`/${name}`)
      : { node: `/${bracketed[1] ?? ''}`, port: Number(bracketed[2]) }
  if (split === undefined) return undefined
  return { address: canonicalAddress(split.node.slice(1)), port: split.port }
}

export function lastPart(fullPath: string): string {
  return fullPath.slice(fullPath.lastIndexOf('/') + 1)
}

export function partitionOf(fullPath: string): string {
  return fullPath.split('/')[1] ?? 'Common'
}
