import type { MemberRef } from './contract.js'
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
