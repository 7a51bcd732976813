import type { CallContext } from '../../../provider/contract.js'
import { isDrainableError } from '../../../provider/error.js'
import { tooDear } from '../../../kit/look-cost.js'
import type { RoleReading } from '../codec/device.js'
import type { MemberRow, Members, NodeRow, PoolAttributes } from '../codec/members.js'
import { isPossible } from '../codec/names.js'
import { statsKey, statsOf, type StatsTable } from '../codec/stats.js'
import type { Device, ListedPool } from '../session/device.js'
import type { Away, Failed } from '../session/units.js'
import { isHeld, readCounts, type Counted, type NodeLoad } from './counts.js'
import type { Complete } from './target.js'

/** How old the lists may be while a node is held, in milliseconds: they change rarely. */
const LISTS_FOR = 30_000
/** The same before that, so that what was found and the first look at it are one list. */
const FOUND_FOR = 2_000
/** From so many nodes on their list is read. */
const FEW_NODES = 8
/** A unit that reboots again and again is given up after so many looks. */
const ATTEMPTS = 3

/** One pool on one unit at one moment. */
export interface PoolView {
  readonly attributes: PoolAttributes
  readonly members: Members
  /** Undefined: its counters were not read, for the reason that {@link PoolView.uncounted} gives. */
  readonly stats: StatsTable | undefined
  readonly uncounted?: string
  /** Before the counters were asked for, by the call's clock. */
  readonly askedAt: number
}

/** One unit at one moment. */
export interface ReadUnit {
  readonly device: Device
  readonly role: RoleReading
  readonly active: boolean
  /** What was asked for; a pool that is not there is missing. */
  readonly pools: ReadonlyMap<string, PoolView>
  readonly nodes: ReadonlyMap<string, NodeRow>
  /** What the nodes that were asked for hold. */
  readonly loads: ReadonlyMap<string, NodeLoad>
  /** Before anything was asked for, by the call's clock. */
  readonly askedAt: number
}

/** One unit at one moment, or why it was not read. */
export type UnitView = ReadUnit | Failed | Away

export function isReadUnit(view: UnitView): view is ReadUnit {
  return 'role' in view
}

/** What a look wants of a unit. */
export interface Wanted {
  readonly pools: Complete
  /** Every pool, in one list. */
  readonly all: boolean
  /** Nodes by full path: their members' pools are found in the list of all. */
  readonly nodes: ReadonlySet<string>
  /** The role is that of an earlier look, and so are the properties of pools: no client changes them on a member. */
  readonly brief: boolean
}

/** A pool and its members, as lists have them. */
export type Lists = Map<string, ListedPool>

/** A unit of which only the role was asked for. */
export function roleOnly(device: Device, role: RoleReading, askedAt: number): ReadUnit {
  const none = { pools: new Map(), nodes: new Map(), loads: new Map() }
  return { device, role, active: device.role.isActive(role), askedAt, ...none }
}

/** Reads one unit: role, lists, counters, role again. A unit that never was active is asked for its role alone. */
export async function readUnit(
  device: Device,
  wanted: Wanted,
  ctx: CallContext,
): Promise<ReadUnit> {
  for (let attempt = 1; ; attempt += 1) {
    const { lives, steady } = device.role
    try {
      const view = await readOnce(device, wanted, ctx)
      // What was read across a reboot is of two lives: states of the old one, counts of the new.
      if (lives === 0 || device.role.lives === lives || attempt === ATTEMPTS) return view
    } catch (error) {
      device.role.doubt()
      // The role was taken from the last look, and it is another one now.
      const known = steady !== undefined && isDrainableError(error, 'CONFLICT')
      if (ctx.signal.aborted || !known) throw error
    }
  }
}

async function readOnce(device: Device, wanted: Wanted, ctx: CallContext): Promise<ReadUnit> {
  const askedAt = ctx.clock.now()
  const said = wanted.brief ? device.role.said : undefined
  const role = said ?? device.role.steady ?? (await device.role.read(ctx))
  const unit = roleOnly(device, role, askedAt)
  if (!unit.active && !device.role.everActive) return unit
  const held = await readNodes(device, wanted.nodes, ctx)
  const nodes = new Map(held)
  const lists = await readLists(device, wanted, nodes, ctx)
  const counts = await readCounts(device, wanted, lists, held, ctx)
  await addParents(device, counts.tables, lists, nodes, ctx)
  const pools = new Map<string, PoolView>()
  for (const [pool, { pool: attributes, members }] of lists) {
    const { stats, askedAt: at = askedAt }: Partial<Counted> = counts.tables.get(pool) ?? {}
    const why = stats === undefined ? { uncounted: counts.uncounted } : {}
    pools.set(pool, { attributes, members, stats, askedAt: at, ...why })
  }
  if (said === undefined) await device.role.confirm(role, ctx)
  return { ...unit, pools, nodes, loads: counts.loads }
}

async function readLists(
  device: Device,
  wanted: Wanted,
  nodes: Map<string, NodeRow>,
  ctx: CallContext,
): Promise<Lists> {
  const byList = await device.poolListPays(wanted.pools.size, ctx)
  const lists: Lists = new Map()
  let listed: readonly ListedPool[] | undefined
  if (wanted.all || nodes.size > 0) {
    const overview = await device.overview(ageOf(wanted, nodes, byList), ctx)
    for (const node of overview.nodes) if (!nodes.has(node.fullPath)) nodes.set(node.fullPath, node)
    listed = overview.pools
    for (const one of listed) {
      const isTheirs = one.members.rows.some((member) => wanted.nodes.has(member.node))
      if (wanted.all || isTheirs) lists.set(one.pool.fullPath, one)
    }
  }
  const known = byList ? listed : undefined
  for (const [name, { members, pool }] of await readPools(device, wanted.pools, ctx, known)) {
    lists.set(name, { members, pool: pool ?? (await device.readPool(name, ctx, wanted.brief)) })
  }
  return lists
}

/** How old the lists may be: those of members tell their states. */
function ageOf({ all }: Wanted, nodes: ReadonlyMap<string, NodeRow>, tellsStates: boolean): number {
  if (all || tellsStates) return 0
  return [...nodes.values()].every(isHeld) ? LISTS_FOR : FOUND_FOR
}

/** Nodes that switch off a member that is looked at, where no list has told. */
async function addParents(
  device: Device,
  tables: ReadonlyMap<string, Counted>,
  lists: Lists,
  nodes: Map<string, NodeRow>,
  ctx: CallContext,
): Promise<void> {
  const names = new Set<string>()
  for (const [pool, { stats }] of tables) {
    for (const { node, port } of lists.get(pool)?.members.rows ?? []) {
      const off = stats.get(statsKey(node, port))?.byParent === true
      if (off && !nodes.has(node)) names.add(node)
    }
  }
  const rows =
    names.size > FEW_NODES
      ? (await device.listNodes(ctx)).nodes
      : (await readNodes(device, names, ctx)).values()
  for (const row of rows) nodes.set(row.fullPath, row)
}

/** Nodes by name; one that is not there is missing, said twice by a device that is ready. */
export async function readNodes(
  device: Device,
  names: ReadonlySet<string>,
  ctx: CallContext,
): Promise<Map<string, NodeRow>> {
  const nodes = new Map<string, NodeRow>()
  for (const name of names) {
    if (!isPossible(name)) continue
    const read = (): Promise<NodeRow | undefined> => device.readNode(name, ctx)
    const node = await device.sure(read, (found) => found !== undefined, ctx)
    if (node !== undefined) nodes.set(name, node)
  }
  return nodes
}

/**
 * Members of pools: by one list where that costs less, and one by one. What a list leaves out is asked for alone; one that is
 * missing is asked for once more after the device said that it is ready.
 *
 * @param known - the list, if it was read
 * @returns nothing of a pool that is not there; its properties where a list has them
 */
export async function readPools(
  device: Device,
  wanted: Complete,
  ctx: CallContext,
  known?: readonly ListedPool[],
): Promise<ReadonlyMap<string, Pick<ListedPool, 'members'> & Partial<ListedPool>>> {
  const pays = known === undefined && (await device.poolListPays(wanted.size, ctx))
  const listed = pays ? await device.listPools(ctx).catch(tooDear) : known
  const byPath = new Map(listed?.map((one) => [one.pool.fullPath, one]))
  const found = new Map<string, Pick<ListedPool, 'members'> & Partial<ListedPool>>()
  for (const [pool, complete] of wanted) {
    if (!isPossible(pool)) continue
    const one = byPath.get(pool)
    if (one !== undefined && complete(one.members.rows)) {
      found.set(pool, one)
      continue
    }
    const read = (): Promise<Members | undefined> => device.listMembers(pool, ctx)
    const isWhole = (rows?: Members): boolean => rows !== undefined && complete(rows.rows)
    const members = await device.sure(read, isWhole, ctx)
    if (members !== undefined) found.set(pool, { members })
  }
  return found
}

/** Whether its node is disabled. */
export function isOff(member: MemberRow, view: PoolView, { nodes }: ReadUnit): boolean {
  const node = nodes.get(member.node)
  if (node !== undefined && node.own !== 'ready') return true
  return statsOf(view.stats, member)?.byParent === true
}
