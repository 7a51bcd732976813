import type { CallContext } from '../../../provider/contract.js'
import { tooDear } from '../../../kit/look-cost.js'
import type { MemberRow, Members, PoolAttributes } from '../codec/members.js'
import { isPossible } from '../codec/names.js'
import type { Device, ListedPool } from '../session/device.js'

/** The pools that are wanted: whether every member that is looked for is among these. */
export type Complete = ReadonlyMap<string, (members: readonly MemberRow[]) => boolean>

/** A pool as it was read; a list has its properties too. */
interface ReadPool {
  readonly members: Members
  readonly attributes: PoolAttributes | undefined
}

/**
 * Members of pools: by one list where that costs less, and one by one. What a list leaves out is asked for alone; one that is
 * missing is asked for once more after the device said that it is ready.
 *
 * @param known - the list, if it was read
 * @returns nothing of a pool that is not there
 */
export async function readPools(
  device: Device,
  wanted: Complete,
  ctx: CallContext,
  known?: readonly ListedPool[],
): Promise<ReadonlyMap<string, ReadPool>> {
  const pays = known === undefined && device.listPays(wanted.size)
  const listed = pays ? await device.listPools(ctx).catch(tooDear) : known
  const byPath = new Map(listed?.map((one) => [one.pool.fullPath, one]))
  const found = new Map<string, ReadPool>()
  for (const [pool, complete] of wanted) {
    if (!isPossible(pool)) continue
    const one = byPath.get(pool)
    if (one !== undefined && complete(one.members.rows)) {
      found.set(pool, { members: one.members, attributes: one.pool })
      continue
    }
    let members = await device.listMembers(pool, ctx)
    if (members === undefined || !complete(members.rows)) {
      await device.confirmReady(ctx)
      members = await device.listMembers(pool, ctx)
    }
    if (members !== undefined) found.set(pool, { members, attributes: undefined })
  }
  return found
}
