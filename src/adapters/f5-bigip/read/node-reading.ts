import type { LoadScope, PoolReading, Reading } from '../../../provider/contract.js'
import type { MemberRow, NodeRow } from '../codec/members.js'
import { lastPart } from '../codec/names.js'
import {
  awayHints,
  changeTimeOf,
  countsToScope,
  lowest,
  maintEffect,
  nativeOf,
  readPoolTotals,
  servesNow,
  toScope,
  unreadScopes,
  type Composer,
} from './reading.js'
import { membersOfNode, NODES, type NodeTarget } from './target.js'
import { isReadUnit, type PoolView, type ReadUnit, type UnitView } from './view.js'

/**
 * A node over all units: its own state, its own counters, and those of what its FQDN templates made,
 * which have nodes of their own.
 */
export function readNodeTarget(
  composer: Composer,
  target: NodeTarget,
  views: readonly UnitView[],
): Reading {
  const { ref, node } = target
  const scopes: LoadScope[] = unreadScopes(views)
  const own: { row: NodeRow; pools: readonly PoolView[] }[] = []
  const passed: NodeRow['own'][] = []
  for (const unit of views.filter(isReadUnit)) {
    const row = unit.nodes.get(node)
    if (row === undefined) continue
    const pools = poolsOf(unit, node)
    scopes.push(nodeScope(composer, unit, row), ...copies(composer, unit, pools, node))
    if (unit.active) own.push({ row, pools })
    else passed.push(row.own)
  }
  const [first] = own
  if (first === undefined) return { ref, present: false, scopes }
  const { row, pools } = first
  const state = lowest(own.map(({ row: found }) => found.own))
  const hints = [...composer.nodeHints(ref, node), ...awayHints(views)]
  return {
    ref,
    present: true,
    identity: `${row.fullPath} at ${row.address ?? ''}`,
    ...(row.address === undefined ? {} : { address: row.address }),
    own: state,
    serves: pools.some((view) =>
      membersOfNode(view.members, node).some((member) => servesNow(member, view)),
    ),
    health: row.health,
    scopes,
    maint: maintEffect(pools),
    ...nativeOf(row.native, state, passed),
    changeTime: changeTimeOf(views),
    ...(composer.unverified === undefined ? {} : { unverified: composer.unverified }),
    ...(hints.length === 0 ? {} : { hints }),
  }
}

/** The pools that a node has a member in. */
export function poolsOf({ pools }: ReadUnit, node: string): readonly PoolView[] {
  return [...pools.values()].filter(({ members }) => members.some((one) => one.node === node))
}

function nodeScope(composer: Composer, unit: ReadUnit, { fullPath, own }: NodeRow): LoadScope {
  const counts = unit.loads.get(fullPath) ?? { askedAt: unit.askedAt }
  return countsToScope(composer, unit, { scope: unit.device.host, admin: own, counts })
}

/** Whether a template's node reaches what it made is not documented: each tells for itself. */
function copies(
  composer: Composer,
  unit: ReadUnit,
  pools: readonly PoolView[],
  node: string,
): readonly LoadScope[] {
  const made = (member: MemberRow): boolean => member.node !== node
  return pools.flatMap((view) =>
    membersOfNode(view.members, node)
      .filter(made)
      .map((member) => {
        const name = `${unit.device.host} ${view.attributes.fullPath} ${lastPart(member.fullPath)}`
        return toScope(composer, unit, view, member, name)
      }),
  )
}

/**
 * The pool of all nodes: as few serve as in the pool that would be left with fewest. Pools in which none
 * of the nodes' members could serve lose nothing, and count only where there is no other.
 */
export function nodePool(nodes: readonly string[], active: readonly ReadUnit[]): PoolReading {
  const isOurs = ({ node }: MemberRow): boolean => nodes.includes(node)
  const touched = active.flatMap((unit) =>
    [...unit.pools].filter(([, { members }]) => members.some(isOurs)),
  )
  const losing = touched.filter(([, { members }]) =>
    members.some((member) => isOurs(member) && couldServe(member)),
  )
  const totals = (losing.length > 0 ? losing : touched).flatMap(
    ([pool, view]) => readPoolTotals(pool, [view], NODES) ?? [],
  )
  const [fewest] = totals.sort((a, b) => a.serving - b.serving)
  return fewest ?? { pool: NODES, serving: 0, total: 0, whenNone: 'unknown' }
}

/** But for its node. */
function couldServe({ own, health }: MemberRow): boolean {
  return own === 'ready' && (health === 'up' || health === 'unchecked')
}
