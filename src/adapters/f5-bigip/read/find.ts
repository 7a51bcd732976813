import { canonicalAddress } from '../../../provider/address.js'
import type { AddressTarget, MemberRef } from '../../../provider/contract.js'
import type { Overview } from '../session/device.js'
import { NODES } from './target.js'

/**
 * What is at an address. With a port: the members there. Without: the node, which is the machine in every
 * pool, and beside it the members that are disabled by themselves, so that opening the machine opens them.
 * What an FQDN template made is named member by member, as BIG-IP refuses changes of such nodes.
 *
 * @throws `MALFORMED_REPLY` where nothing was found, and a row that can't be read may be it
 */
export function findAt(
  { address, port }: AddressTarget,
  { pools, nodes, odd }: Overview,
): readonly MemberRef[] {
  const wished = canonicalAddress(address)
  const isHere = (at: string | undefined): boolean =>
    at !== undefined && canonicalAddress(at) === wished
  const members = pools.flatMap(({ pool, members: all }) =>
    all.rows
      .filter((row) => isHere(row.address) && (port === undefined || row.port === port))
      .map((row) => ({ row, ref: { pool: pool.fullPath, member: row.fullPath } })),
  )
  const doubts = [...odd, ...pools.flatMap(({ members: all }) => all.odd)]
  const found = (refs: readonly MemberRef[]): readonly MemberRef[] => {
    const [doubt] = doubts
    if (refs.length === 0 && doubt !== undefined) throw doubt
    return refs
  }
  if (port !== undefined) return found(members.map(({ ref }) => ref))
  const here = nodes.filter((node) => isHere(node.address) && !node.ephemeral)
  const covered = new Set(here.map(({ fullPath }) => fullPath))
  const single = members.filter(({ row }) => !covered.has(row.node) || row.own !== 'ready')
  return found([
    ...here.map(({ fullPath }) => ({ pool: NODES, member: fullPath })),
    ...single.map(({ ref }) => ref),
  ])
}
