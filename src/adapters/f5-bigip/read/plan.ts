import type { CallContext, MemberRef } from '../../../provider/contract.js'
import { formatDuration } from '../../../provider/duration.js'
import { caught } from '../../../kit/errors.js'
import { refKey } from '../../../provider/member-ref.js'
import { parseItems, pathOf } from '../codec/members.js'
import { partitionOf } from '../codec/names.js'
import type { Settings } from '../options.js'
import type { Device, Overview } from '../session/device.js'
import { listed } from '../../../provider/quote.js'
import type { Rights } from './rights.js'
import { NODES } from './target.js'

const VIRTUALS = '/mgmt/tm/ltm/virtual?$select=name,partition,fullPath,pool'
/** Requests of one look at a node. */
const NODE_LOOK = 4
/** The core takes at most one part in that many of the time for looking. */
const SHARE = 5
/** Samples that have to be as far apart as statistics can lag: in force, second, sealed. */
const SAMPLES = 3

/** What the refs found at an address hit, how long that takes, and what the user's role does not allow, by ref. */
export async function planOf(
  device: Device,
  refs: readonly MemberRef[],
  { pools, nodes }: Overview,
  settings: Settings,
  rights: Rights,
  ctx: CallContext,
): Promise<ReadonlyMap<string, readonly string[]>> {
  const virtuals = await readVirtuals(device, ctx)
  const plans = new Map<string, readonly string[]>()
  const members = refs.filter(({ pool }) => pool !== NODES)
  for (const ref of refs) {
    const node = nodes.find(({ fullPath }) => fullPath === ref.member)
    const hit = pools.filter(({ pool, members: rows }) =>
      ref.pool === NODES
        ? rows.rows.some((row) => row.node === ref.member)
        : pool.fullPath === ref.pool,
    )
    const names = hit.map(({ pool }) => pool.fullPath)
    const partition = partitionOf(node?.fullPath ?? ref.member)
    plans.set(refKey(ref), [
      ...(ref.pool === NODES
        ? listed(
            `one change of the node reaches ${names.length} ${names.length === 1 ? 'pool' : 'pools'}`,
            names,
          )
        : [`one of ${members.length} members that are changed one by one`]),
      ...(virtuals === undefined
        ? ['which virtual servers are in front could not be read']
        : listed(
            'virtual servers in front',
            names.flatMap((name) => virtuals.get(name) ?? []),
          )),
      timeOf(device, ref.pool === NODES ? 1 : members.length, settings),
      ...rights.limits(partition),
    ])
  }
  return plans
}

/** Without traffic: the changes, then samples as far apart as statistics lag, and the looks between. */
function timeOf(
  { session: { spending } }: Device,
  changes: number,
  { freshness, minInterval }: Settings,
): string {
  const pause = Math.max(minInterval, spending.last * NODE_LOOK * SHARE)
  const look = spending.last * NODE_LOOK
  // One to hold each, one to seal it.
  const writes = (2 * changes + 2) * spending.last
  const proof = SAMPLES * (Math.max(freshness, pause) + look) + writes
  return `without traffic it takes about ${formatDuration(Math.ceil(proof / 1_000) * 1_000)} to be proved idle (${2 * changes} changes with the seal, a request ${formatDuration(Math.round(spending.last))}, statistics up to ${formatDuration(freshness)} old)`
}

/** Virtual servers by their default pool; content rules can send to others. */
async function readVirtuals(
  device: Device,
  ctx: CallContext,
): Promise<ReadonlyMap<string, readonly string[]> | undefined> {
  const read = async (): Promise<ReadonlyMap<string, readonly string[]> | undefined> => {
    const found = await device.session.get(VIRTUALS, ctx)
    if (found === undefined) return undefined
    const byPool = new Map<string, string[]>()
    for (const item of parseItems(found)) {
      const pool = item.at('pool').text()
      if (pool !== undefined) byPool.set(pool, [...(byPool.get(pool) ?? []), pathOf(item)])
    }
    return byPool
  }
  return caught(ctx, read, () => undefined)
}
