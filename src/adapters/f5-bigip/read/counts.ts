import type { CallContext } from '../../../provider/contract.js'
import { tooDear } from '../../../kit/look-cost.js'
import type { MemberRow, NodeRow } from '../codec/members.js'
import { partitionOf } from '../codec/names.js'
import { statsOf, type StatsTable } from '../codec/stats.js'
import type { Device } from '../session/device.js'
import type { Lists, Wanted } from './unit.js'

/** How long a look at everything may take over pools that can only be counted one by one, in milliseconds. */
const BUDGET = 10_000
/** So many pools are counted one by one as second evidence, where no answer tells of all. */
const FEW = 8

/** The counters of one pool's members. */
export interface Counted {
  readonly stats: StatsTable
  /** Before they were asked for, by the call's clock. */
  readonly askedAt: number
}

/** What a node holds over all its pools, and beside them. */
export interface NodeLoad {
  readonly active: number | undefined
  readonly queued: number | undefined
  readonly arrivals: number | undefined
  /** What the traffic processes go by; undefined: they do not say. */
  readonly enabled?: boolean | undefined
  /** Before the counters were asked for, by the call's clock. */
  readonly askedAt: number
  /** Where the numbers come from, if they are weaker than usual. */
  readonly note?: string
}

/** The counters of a look. */
interface Counts {
  readonly tables: ReadonlyMap<string, Counted>
  readonly loads: ReadonlyMap<string, NodeLoad>
  /** Why a pool that was listed was not counted. */
  readonly uncounted: string
}

const EVERYTHING =
  'a look at everything counts pools outside /Common for at most 10 s: name the pool'
const BY_NODE = 'counted with its node'

type Pools = readonly (readonly [string, readonly MemberRow[]])[]

/**
 * Counters of pools and nodes, in as few requests as tell the truth.
 *
 * @param held - the nodes that were asked for
 */
export async function readCounts(
  device: Device,
  wanted: Wanted,
  lists: Lists,
  held: ReadonlyMap<string, NodeRow>,
  ctx: CallContext,
): Promise<Counts> {
  const tables = new Map<string, Counted>()
  const loads = new Map<string, NodeLoad>()
  const asked = [...lists].flatMap(([pool, { members }]) =>
    wanted.all || wanted.pools.has(pool) ? [[pool, members.rows] as const] : [],
  )
  const until = wanted.all ? ctx.clock.now() + BUDGET : Infinity
  await countPools(device, asked, tables, { until }, ctx)
  for (const row of held.values()) {
    loads.set(row.fullPath, await countNode(device, row, lists, tables, ctx))
  }
  return { tables, loads, uncounted: wanted.all ? EVERYTHING : BY_NODE }
}

/** Each pool, or many in one answer. */
async function countPools(
  device: Device,
  pools: Pools,
  tables: Map<string, Counted>,
  { until = Infinity, most = Infinity }: { readonly until?: number; readonly most?: number },
  ctx: CallContext,
): Promise<void> {
  const open = pools.filter(([pool]) => !tables.has(pool))
  const common = open.filter(([pool]) => partitionOf(pool) === 'Common')
  if (await device.statsListPays(common.length, ctx)) {
    const askedAt = ctx.clock.now()
    const all = await device.readAllStats(ctx).catch(tooDear)
    for (const [pool, members] of common) {
      const stats = all?.get(pool)
      const whole = members.every((member) => statsOf(stats, member) !== undefined)
      if (stats !== undefined && whole) tables.set(pool, { stats, askedAt })
    }
  }
  const alone = open.filter(([pool]) => !tables.has(pool))
  for (const [pool, members] of alone.slice(0, most)) {
    if (ctx.clock.now() > until) return
    const askedAt = ctx.clock.now()
    const none: StatsTable = new Map()
    const stats = members.length === 0 ? none : await device.readStats(pool, ctx)
    tables.set(pool, { stats, askedAt })
  }
}

/**
 * What a node holds: its own counters tell for every pool in one answer. What waits in queues is in no
 * counter of a node, so pools that have them are read; and so are others, as second evidence that
 * nothing is left.
 */
async function countNode(
  device: Device,
  row: NodeRow,
  lists: Lists,
  tables: Map<string, Counted>,
  ctx: CallContext,
): Promise<NodeLoad> {
  const node = row.fullPath
  const own = [...lists].flatMap(([pool, { pool: attributes, members }]) => {
    const rows = members.rows.filter((member) => member.node === node)
    return rows.length === 0 ? [] : { pool: [pool, rows] as const, attributes }
  })
  const pools: Pools = own.map(({ pool }) => pool)
  const queueing = own.filter(({ attributes }) => attributes.queues !== false)
  const needed = own.filter(
    ({ attributes, pool: [, rows] }) =>
      attributes.queues !== false || rows.some(({ template }) => template),
  )
  const askedAt = ctx.clock.now()
  const stats = await device.readNodeStats(node, ctx)
  const { active, arrivals, enabled } = stats ?? {}
  if (active === undefined || arrivals === undefined) {
    await countPools(device, pools, tables, {}, ctx)
    if (pools.length === 0) {
      const note = 'it is in no pool, and the device has no counters for it'
      return { active: undefined, queued: undefined, arrivals: undefined, askedAt, note }
    }
    const note = 'the node has no counters of its own: those of its members are added up'
    return { ...sumOf(pools, tables), askedAt, note }
  }
  const whole = needed.map(({ pool }) => pool)
  await countPools(device, whole, tables, {}, ctx)
  const key = `${row.own} ${device.role.incarnation} ${arrivals}`
  const due = active === 0 && isHeld(row) && device.evidence.isDue(node, key, ctx)
  if (due) await countPools(device, pools, tables, { most: FEW }, ctx)
  const counted = pools.filter(([pool]) => tables.has(pool))
  const inPools = sumOf(counted, tables).active ?? 0
  // While they show work that the node does not, they are read with every look.
  if (due && inPools === 0) device.evidence.note(node, key, ctx)
  const queued = sumOf(
    queueing.map(({ pool }) => pool),
    tables,
  ).queued
  return { active: Math.max(active, inPools), queued, arrivals, enabled, askedAt }
}

export function isHeld({ own }: NodeRow): boolean {
  return own === 'drain' || own === 'maint'
}

/** What the rows of a node's members come to; what is missing in one is missing in the sum. */
function sumOf(
  pools: Pools,
  tables: ReadonlyMap<string, Counted>,
): Pick<NodeLoad, 'active' | 'queued' | 'arrivals'> {
  const all = pools.flatMap(([pool, rows]) =>
    rows.map((member) => statsOf(tables.get(pool)?.stats, member)),
  )
  const add = (of: 'active' | 'queued' | 'arrivals'): number | undefined => {
    const counts = all.flatMap((stats) => stats?.[of] ?? [])
    return counts.length < all.length ? undefined : counts.reduce((a, b) => a + b, 0)
  }
  return { active: add('active'), queued: add('queued'), arrivals: add('arrivals') }
}
