import type { CallContext } from '../../../provider/contract.js'
import { isDrainableError, type DrainableError } from '../../../provider/error.js'
import type { RoleReading } from '../codec/device.js'
import type { MemberRow, NodeRow, PoolAttributes } from '../codec/members.js'
import { isPossible, type Named } from '../codec/names.js'
import { statsKey, type MemberStats, type StatsTable } from '../codec/stats.js'
import type { Device } from '../session/device.js'

/** One pool on one unit at one moment. */
export interface PoolView {
  readonly attributes: PoolAttributes
  readonly members: readonly MemberRow[]
  readonly stats: StatsTable
  /** Before the counters were asked for, by the call's clock. */
  readonly askedAt: number
}

/** One unit at one moment, or why it could not be read. */
export type UnitView =
  | {
      readonly device: Device
      readonly role: RoleReading
      readonly active: boolean
      /** What was asked for; a pool that is not there is missing. */
      readonly pools: ReadonlyMap<string, PoolView>
      readonly nodes: ReadonlyMap<string, NodeRow>
      /** Before anything was asked for, by the call's clock. */
      readonly askedAt: number
    }
  | { readonly device: Device; readonly error: DrainableError }

export type ReadUnit = Extract<UnitView, { readonly role: RoleReading }>

/** What a look wants of a unit. */
export interface Wanted {
  /** Pools by full path; for each the question whether all members looked for are in a list. */
  readonly pools: ReadonlyMap<string, (members: readonly MemberRow[]) => boolean>
  /** Every pool, in one list. */
  readonly all: boolean
  /** Nodes by full path: their members' pools are found in the list of all. */
  readonly nodes: ReadonlySet<string>
}

/** Reads one unit: role, lists, counters, role again. A unit that never was active is asked for its role alone. */
export async function readUnit(
  device: Device,
  wanted: Wanted,
  ctx: CallContext,
): Promise<UnitView> {
  try {
    for (let attempt = 1; ; attempt += 1) {
      const { lives } = device
      const view = await readOnce(device, wanted, ctx)
      // What was read across a reboot is of two lives: states of the old one, counts of the new.
      if (lives === 0 || device.lives === lives || attempt === 3) return view
    }
  } catch (error) {
    if (ctx.signal.aborted || !isDrainableError(error)) throw error
    return { device, error }
  }
}

async function readOnce(device: Device, wanted: Wanted, ctx: CallContext): Promise<UnitView> {
  const askedAt = ctx.clock.now()
  const role = await device.readRole(ctx)
  const active = device.isActive(role)
  const none = { device, role, active, pools: new Map(), nodes: new Map(), askedAt }
  if (!active && !device.everActive) return none
  const lists = await readLists(device, wanted, ctx)
  const pools = new Map<string, PoolView>()
  for (const [pool, { attributes, members }] of lists) {
    const askedAt = ctx.clock.now()
    const stats =
      members.length === 0 ? new Map<string, MemberStats>() : await device.readStats(pool, ctx)
    pools.set(pool, { attributes, members, stats, askedAt })
  }
  const nodes = await readNodes(device, wanted, pools, ctx)
  await device.confirmRole(role, ctx)
  return { device, role, active, pools, nodes, askedAt }
}

type Lists = Map<
  string,
  { readonly attributes: PoolAttributes; readonly members: readonly MemberRow[] }
>

async function readLists(device: Device, wanted: Wanted, ctx: CallContext): Promise<Lists> {
  const lists: Lists = new Map()
  if (wanted.all || wanted.nodes.size > 0) {
    let list = await device.listPools(ctx)
    if (list.length === 0) {
      await device.confirmReady(ctx) // while it loads, the list is empty
      list = await device.listPools(ctx)
    }
    for (const { pool, members } of list) {
      const holds = members.some((member) => wanted.nodes.has(member.node))
      if (!wanted.all && !holds && !wanted.pools.has(pool.fullPath)) continue
      lists.set(pool.fullPath, { attributes: pool, members })
    }
  }
  for (const [pool, complete] of wanted.pools) {
    const listed = lists.get(pool)
    if (!isPossible(pool) || (listed !== undefined && complete(listed.members))) continue
    lists.delete(pool)
    const members = await readMembers(device, pool, complete, ctx)
    if (members === undefined) continue
    lists.set(pool, { attributes: await device.readPool(pool, ctx), members })
  }
  return lists
}

/** Members of a pool; where one that is looked for is missing, once more after the device said that it is ready. */
export async function readMembers(
  device: Device,
  pool: string,
  complete: (members: readonly MemberRow[]) => boolean,
  ctx: CallContext,
): Promise<readonly MemberRow[] | undefined> {
  const first = await device.listMembers(pool, ctx)
  if (first !== undefined && complete(first)) return first
  await device.confirmReady(ctx)
  return device.listMembers(pool, ctx)
}

/** Nodes that were asked for, and those that switch off a member that is looked at. */
async function readNodes(
  device: Device,
  wanted: Wanted,
  pools: ReadonlyMap<string, PoolView>,
  ctx: CallContext,
): Promise<Map<string, NodeRow>> {
  const names = new Set(wanted.nodes)
  for (const { members, stats } of pools.values()) {
    for (const member of members)
      if (statsOf(stats, member)?.byParent === true) names.add(member.node)
  }
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

export function statsOf(table: StatsTable, of: Named): MemberStats | undefined {
  return table.get(statsKey(of.node, of.port))
}
