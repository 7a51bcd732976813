import type { CallContext } from '../../../provider/contract.js'
import { isDrainableError } from '../../../provider/error.js'
import type { Members, NodeRow, PoolAttributes } from '../codec/members.js'
import { statsKey, type StatsTable } from '../codec/stats.js'
import type { Device, ListedPool } from '../session/device.js'
import type { Failed } from '../session/units.js'
import { readCounts } from './counts.js'
import { readNodes } from './nodes.js'
import { readPools } from './pools.js'
import type { Listed, Lists, PoolView, ReadUnit, Wanted } from './view.js'

/** How old the lists may be while a node is held, in milliseconds: they change rarely. */
const LISTS_FOR = 30_000
/** The same before that, so that what was found and the first look at it are one list. */
const FOUND_FOR = 2_000

/** Reads one unit: role, lists, counters, role again. A unit that never was active is asked for its role alone. */
export async function readUnit(
  device: Device,
  wanted: Wanted,
  ctx: CallContext,
): Promise<ReadUnit | Failed> {
  try {
    for (let attempt = 1; ; attempt += 1) {
      const { lives, steady } = device.role
      try {
        const view = await readOnce(device, wanted, ctx)
        // What was read across a reboot is of two lives: states of the old one, counts of the new.
        if (lives === 0 || device.role.lives === lives || attempt === 3) return view
      } catch (error) {
        device.role.doubt()
        // The role was taken from the last look, and it is another one now.
        const known = steady !== undefined && isDrainableError(error, 'CONFLICT')
        if (ctx.signal.aborted || !known) throw error
      }
    }
  } catch (error) {
    if (ctx.signal.aborted || !isDrainableError(error)) throw error
    return { device, error }
  }
}

async function readOnce(device: Device, wanted: Wanted, ctx: CallContext): Promise<ReadUnit> {
  const askedAt = ctx.clock.now()
  const role = device.role.steady ?? (await device.role.read(ctx))
  const active = device.role.isActive(role)
  const base = { device, role, active, askedAt }
  if (!active && !device.role.everActive)
    return { ...base, pools: new Map(), nodes: new Map(), loads: new Map() }
  const held = await readNodes(device, wanted.nodes, ctx)
  const nodes = new Map(held)
  const lists = await readLists(device, wanted, nodes, ctx)
  const counts = await readCounts(device, wanted, { lists, held }, ctx)
  await addParents(device, counts.tables, lists, nodes, ctx)
  const off = new Set([...nodes.values()].filter(({ own }) => own !== 'ready').map(pathOf))
  const pools = new Map<string, PoolView>()
  for (const [pool, listed] of lists) {
    const counted = counts.tables.get(pool)
    const stats = counted?.stats
    const at = counted?.askedAt ?? askedAt
    const why = stats === undefined ? { uncounted: counts.uncounted } : {}
    pools.set(pool, { ...listed, stats, off, askedAt: at, ...why })
  }
  await device.role.confirm(role, ctx)
  return { ...base, pools, nodes, loads: counts.loads }
}

function pathOf({ fullPath }: NodeRow): string {
  return fullPath
}

async function readLists(
  device: Device,
  wanted: Wanted,
  nodes: Map<string, NodeRow>,
  ctx: CallContext,
): Promise<Lists> {
  const byList = device.listPays(wanted.pools.size)
  let listed: readonly ListedPool[] | undefined
  if (wanted.all || nodes.size > 0) {
    const overview = await device.overview(ageOf(wanted, nodes, byList), ctx)
    for (const node of overview.nodes) if (!nodes.has(node.fullPath)) nodes.set(node.fullPath, node)
    listed = overview.pools
  }
  const whole = (listed ?? []).filter(({ members: { rows } }) => {
    return wanted.all || rows.some((member) => wanted.nodes.has(member.node))
  })
  const lists: Lists = new Map(
    whole.map(({ pool, members }) => [pool.fullPath, toListed(pool, members)]),
  )
  const known = byList ? listed : undefined
  for (const [pool, { members, attributes }] of await readPools(device, wanted.pools, ctx, known)) {
    lists.set(pool, toListed(attributes ?? (await device.readPool(pool, ctx)), members))
  }
  return lists
}

function toListed(attributes: PoolAttributes, { rows: members, odd }: Members): Listed {
  return { attributes, members, odd }
}

/** How old the lists may be: those of members tell their states. */
function ageOf({ all }: Wanted, nodes: ReadonlyMap<string, NodeRow>, tellsStates: boolean): number {
  if (all || tellsStates) return 0
  const held = [...nodes.values()].every(({ own }) => own === 'drain' || own === 'maint')
  return held ? LISTS_FOR : FOUND_FOR
}

/** From so many nodes on their list is read. */
const FEW_NODES = 8

/** Nodes that switch off a member that is looked at, where no list has told. */
async function addParents(
  device: Device,
  tables: ReadonlyMap<string, { readonly stats: StatsTable }>,
  lists: Lists,
  nodes: Map<string, NodeRow>,
  ctx: CallContext,
): Promise<void> {
  const names = new Set<string>()
  for (const [pool, { stats }] of tables) {
    for (const member of lists.get(pool)?.members ?? []) {
      const off = stats.get(statsKey(member.node, member.port))?.byParent === true
      if (off && !nodes.has(member.node)) names.add(member.node)
    }
  }
  const rows =
    names.size > FEW_NODES
      ? (await device.listNodes(ctx)).nodes
      : (await readNodes(device, names, ctx)).values()
  for (const row of rows) nodes.set(row.fullPath, row)
}
