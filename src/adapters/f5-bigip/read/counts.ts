import type { CallContext } from '../../../provider/contract.js'
import { tooDear } from '../../../kit/look-cost.js'
import type { NodeRow } from '../codec/members.js'
import { partitionOf } from '../codec/names.js'
import type { StatsTable } from '../codec/stats.js'
import type { Device } from '../session/device.js'
import { ownMembers } from './nodes.js'
import { statsOf, type Listed, type Lists, type NodeLoad, type Wanted } from './view.js'

/** How long a look at everything may take over pools that can only be counted one by one, in milliseconds. */
const BUDGET = 10_000
/** So many pools are counted one by one as second evidence, where no answer tells of all. */
const FEW = 8

/** The counters of one pool's members. */
export interface Counted {
  readonly stats: StatsTable
  readonly askedAt: number
}

/** The counters of a look. */
export interface Counts {
  readonly tables: ReadonlyMap<string, Counted>
  readonly loads: ReadonlyMap<string, NodeLoad>
  /** Why a pool that was listed was not counted. */
  readonly uncounted: string
}

interface Known {
  readonly lists: Lists
  /** The nodes that were asked for. */
  readonly held: ReadonlyMap<string, NodeRow>
}

const EVERYTHING =
  'a look at everything counts pools outside /Common for at most 10 s: name the pool'
const BY_NODE = 'counted with its node'

/** Counters of pools and nodes, in as few requests as tell the truth. */
export async function readCounts(
  device: Device,
  wanted: Wanted,
  { lists, held }: Known,
  ctx: CallContext,
): Promise<Counts> {
  const tables = new Map<string, Counted>()
  const loads = new Map<string, NodeLoad>()
  const asked = [...lists].filter(([pool]) => wanted.all || wanted.pools.has(pool))
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
  pools: readonly (readonly [string, Listed])[],
  tables: Map<string, Counted>,
  { until = Infinity, most = Infinity }: { readonly until?: number; readonly most?: number },
  ctx: CallContext,
): Promise<void> {
  const open = pools.filter(([pool]) => !tables.has(pool))
  const common = open.filter(([pool]) => partitionOf(pool) === 'Common')
  if (device.statsPay(common.length)) {
    const askedAt = ctx.clock.now()
    const all = await device.readAllStats(ctx).catch(tooDear)
    for (const [pool, { members }] of common) {
      const stats = all?.get(pool)
      const whole = members.every((member) => statsOf(stats, member) !== undefined)
      if (stats !== undefined && whole) tables.set(pool, { stats, askedAt })
    }
  }
  let left = most
  for (const [pool, { members }] of open) {
    if (tables.has(pool) || left <= 0 || ctx.clock.now() > until) continue
    left -= 1
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
  const pools = [...lists].filter(([, { members }]) => ownMembers(members, node).length > 0)
  const askedAt = ctx.clock.now()
  const stats = await device.readNodeStats(node, ctx)
  const whole = stats?.active !== undefined && stats.arrivals !== undefined
  const queueing = pools.filter(([, { attributes }]) => attributes.queues !== false)
  const templated = pools.filter(([, { members }]) =>
    ownMembers(members, node).some(({ template }) => template),
  )
  await countPools(device, whole ? [...queueing, ...templated] : pools, tables, {}, ctx)
  const key = `${row.own} ${device.role.incarnation} ${stats?.arrivals ?? ''}`
  const due = whole && stats.active === 0 && isHeld(row) && device.evidence.isDue(node, key, ctx)
  if (due) await countPools(device, pools, tables, { most: FEW }, ctx)
  const ofPools = sumOf(
    pools.filter(([pool]) => tables.has(pool)),
    node,
    tables,
  )
  // While they show work that the node does not, they are read with every look.
  if (due && (ofPools.active ?? 0) === 0) device.evidence.note(node, key, ctx)
  if (!whole && pools.length === 0) {
    const note = 'it is in no pool, and the device has no counters for it'
    const none = { active: undefined, queued: undefined, arrivals: undefined, sessions: 0 }
    return { ...none, askedAt, note }
  }
  if (!whole) {
    const note = 'the node has no counters of its own: those of its members are added up'
    return { ...ofPools, askedAt, note }
  }
  const { queued } = sumOf(queueing, node, tables)
  const active = Math.max(stats.active, ofPools.active ?? 0)
  const { arrivals, sessions = 0, enabled } = stats
  return { active, queued, arrivals, sessions, enabled, askedAt }
}

function isHeld({ own }: NodeRow): boolean {
  return own === 'drain' || own === 'maint'
}

/** What the rows of a node's members come to; what is missing in one is missing in the sum. */
function sumOf(
  pools: readonly (readonly [string, Listed])[],
  node: string,
  tables: ReadonlyMap<string, Counted>,
): Pick<NodeLoad, 'active' | 'queued' | 'arrivals' | 'sessions'> {
  const all = pools.flatMap(([pool, { members }]) =>
    ownMembers(members, node).map((member) => statsOf(tables.get(pool)?.stats, member)),
  )
  const add = (of: 'active' | 'queued' | 'arrivals'): number | undefined => {
    const counts = all.flatMap((stats) => stats?.[of] ?? [])
    return counts.length < all.length ? undefined : counts.reduce((a, b) => a + b, 0)
  }
  return {
    active: add('active'),
    queued: add('queued'),
    arrivals: add('arrivals'),
    sessions: all.reduce((total, stats) => total + (stats?.sessions ?? 0), 0),
  }
}
