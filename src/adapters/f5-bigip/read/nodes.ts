import type { CallContext } from '../../../provider/contract.js'
import type { MemberRow, NodeRow } from '../codec/members.js'
import { isPossible } from '../codec/names.js'
import type { Device } from '../session/device.js'

/** Nodes by name; one that is not there is missing, said twice by a device that is ready. */
export async function readNodes(
  device: Device,
  names: ReadonlySet<string>,
  ctx: CallContext,
): Promise<Map<string, NodeRow>> {
  const nodes = new Map<string, NodeRow>()
  for (const name of names) {
    if (!isPossible(name)) continue
    let node = await device.readNode(name, ctx)
    if (node === undefined) {
      await device.confirmReady(ctx)
      node = await device.readNode(name, ctx)
    }
    if (node !== undefined) nodes.set(name, node)
  }
  return nodes
}

/** The members of a node itself, without what its templates made. */
export function ownMembers(members: readonly MemberRow[], node: string): readonly MemberRow[] {
  return members.filter((member) => member.node === node)
}
