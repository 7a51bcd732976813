import { canonicalAddress } from './address.js'
import type { AdminState, LoadScope, MemberRef } from './contract.js'
import { printable } from './quote.js'

/** A unique text per member, for maps and sets. No name contains a NUL. */
export function refKey(ref: MemberRef): string {
  return `${ref.balancer ?? ''}\0${ref.pool}\0${ref.member}`
}

/** A unique text per pool of one balancer, for maps and sets. */
export function poolKey(of: { readonly pool: string; readonly balancer?: string }): string {
  return `${of.balancer ?? ''}\0${of.pool}`
}

/**
 * Whether two identities may be those of one member. An empty one says that the member has no address now (a name that
 * does not resolve): it does not contradict any other.
 */
export function isSameIdentity(one: string | undefined, other: string | undefined): boolean {
  return one === other || one === '' || other === ''
}

/** Formats a member for people, printable: `web/web1`, or `edgeA:web/web1` behind a combined provider. */
export function formatRef(ref: MemberRef): string {
  const name = printable(`${ref.pool}/${ref.member}`)
  return ref.balancer === undefined ? name : `${printable(ref.balancer)}:${name}`
}

/** The longest name that every product takes, in characters: NetScaler has the lowest limit. */
const LONGEST_NAME = 127

/**
 * Another name for a member whose own name belongs to something at another address. It comes from name and place, so
 * the same member has the same one in every try.
 *
 * It begins as the name does, because callers tell their members by a prefix, and keeps a port at its end, which is
 * part of a member's name in BIG-IP and NetScaler. What is put in between is a hyphen, lower-case letters and digits:
 * all products take these.
 */
export function freeName(
  name: string,
  { address, port }: { readonly address: string; readonly port: number },
): string {
  const [tail = ''] = new RegExp(`[:.]${port}$`).exec(name) ?? []
  const end = `-${markOf(`${canonicalAddress(address)} ${port}`)}${tail}`
  return name.slice(0, name.length - tail.length).slice(0, LONGEST_NAME - end.length) + end
}

/** Eight digits that stand for a text (FNV-1a). */
function markOf(text: string): string {
  let hash = 0x811c9dc5
  for (let i = 0; i < text.length; i += 1) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193)
  return (hash >>> 0).toString(16).padStart(8, '0')
}

const RANK = { none: -1, ready: 0, drain: 1, maint: 2 } as const

/** Whether a state is at least as closed as another. `unknown` never is. */
export function atLeast(state: AdminState | 'none' | 'unknown', to: AdminState | 'none'): boolean {
  return state !== 'unknown' && RANK[state] >= RANK[to]
}

/** Whether a process has taken that state, or no client can reach the member through it any more. */
export function isInForce({ open, inForce, admin }: LoadScope, to: AdminState | 'none'): boolean {
  if (open === false) return true
  return inForce !== false && (admin === undefined || atLeast(admin, to))
}
