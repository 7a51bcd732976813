import type {
  AbsentReading,
  AdminState,
  LoadScope,
  MaintEffect,
  MemberRef,
  PoolReading,
  Reading,
} from '../../../provider/contract.js'
import type { MemberRow, NodeRow } from '../codec/members.js'
import { lastPart } from '../codec/names.js'
import type { ScopeMemory } from './scopes.js'
import {
  identityOf,
  membersOfNode,
  type Found,
  type MemberTarget,
  type NodeTarget,
  type Resolver,
} from './target.js'
import { statsOf, type PoolView, type ReadUnit, type UnitView } from './read.js'

/** What composing readings needs beside the views. */
export interface Composer {
  readonly resolver: Resolver
  readonly freshness: number
  readonly memory: ScopeMemory
  /** What to tell a person about a member, beside the figures. */
  readonly hints: (
    ref: MemberRef,
    found: Found,
    pool: PoolView,
    sessions: number,
  ) => readonly string[]
  /** What keeps idle from being verified, in one sentence. */
  readonly unverified: string | undefined
}

const RANK = { ready: 0, drain: 1, maint: 2 } as const

/** The lowest of several states: what is not raised everywhere is not raised. */
export function lowest(states: readonly (AdminState | 'unknown')[]): AdminState | 'unknown' {
  let low: AdminState = 'maint'
  for (const state of states) {
    if (state === 'unknown') return 'unknown'
    if (RANK[state] < RANK[low]) low = state
  }
  return states.length === 0 ? 'unknown' : low
}

export function isAtLeast(state: AdminState | 'unknown', to: AdminState): boolean {
  return state !== 'unknown' && RANK[state] >= RANK[to]
}

/** One member over all units. Configuration is that of the active ones, counts are those of all that were active. */
export function readMember(
  composer: Composer,
  target: MemberTarget,
  views: readonly UnitView[],
): Reading {
  const { ref, pool } = target
  const scopes: LoadScope[] = []
  const own: { found: Found; view: PoolView; unit: ReadUnit }[] = []
  for (const unit of views) {
    if ('error' in unit) continue
    const view = unit.pools.get(pool)
    const found = view && composer.resolver.find(view.members, target)
    if (view === undefined || found === undefined) continue
    scopes.push(...memberScopes(composer, unit, view, found))
    if (unit.active) own.push({ found, view, unit })
  }
  const all = composer.memory.complete(ref, scopes, missingScope(views))
  const [first] = own
  if (first === undefined) return absent(ref, all)
  const { found, view, unit } = first
  const { row } = found
  const rows = own.flatMap(({ found: f }) => [f.row, ...f.ephemerals])
  const sessions = [row, ...found.ephemerals].reduce(
    (sum, member) => sum + (statsOf(view.stats, member)?.sessions ?? 0),
    0,
  )
  const inherited = inheritedState(unit, view, found)
  const hints = composer.hints(ref, found, view, sessions)
  return {
    ref,
    present: true,
    identity: identityOf(row),
    ...(row.address === undefined ? {} : { address: row.address }),
    port: row.port,
    ...(row.ratio === undefined ? {} : { weight: row.ratio }),
    own: lowest(rows.map((member) => member.own)),
    ...(inherited === undefined ? {} : { inherited }),
    serves: own.some(({ found: f, view: v }) => servesAny(f, v)),
    health: row.health,
    scopes: all,
    maint: maintEffect([view]),
    native: row.native,
    ...(composer.unverified === undefined ? {} : { unverified: composer.unverified }),
    ...(hints.length === 0 ? {} : { hints }),
  }
}

/** A node over all units: its own state, and the work of its members in every pool. */
export function readNodeTarget(
  composer: Composer,
  target: NodeTarget,
  views: readonly UnitView[],
): Reading {
  const { ref, node } = target
  const scopes: LoadScope[] = []
  const own: { row: NodeRow; pools: PoolView[] }[] = []
  for (const unit of views) {
    if ('error' in unit) continue
    const row = unit.nodes.get(node)
    if (row === undefined) continue
    const pools = [...unit.pools.values()].filter(({ members }) =>
      members.some((member) => member.node === node),
    )
    const held = !unit.active || isAtLeast(row.own, 'drain')
    const before = scopes.length
    for (const view of pools) {
      for (const member of membersOfNode(view.members, node)) {
        // Whether a template's node reaches what it made is not documented: each tells for itself
        const inForce = member.node === node ? held : !unit.active || isHeld(member, view)
        const name = `${unit.device.host} ${view.attributes.fullPath} ${lastPart(member.fullPath)}`
        scopes.push(toScope(composer, unit, view, member, name, inForce))
      }
    }
    if (scopes.length === before) scopes.push(unusedNode(unit, composer, held))
    if (unit.active) own.push({ row, pools })
  }
  const all = composer.memory.complete(ref, scopes, missingScope(views))
  const [first] = own
  if (first === undefined) return absent(ref, all)
  const { row, pools } = first
  return {
    ref,
    present: true,
    identity: `${row.fullPath} at ${row.address ?? ''}`,
    ...(row.address === undefined ? {} : { address: row.address }),
    own: lowest(own.map(({ row: found }) => found.own)),
    serves: pools.some((view) =>
      membersOfNode(view.members, node).some((member) => servesNow(member, view)),
    ),
    health: row.health,
    scopes: all,
    maint: maintEffect(pools),
    native: row.native,
    ...(composer.unverified === undefined ? {} : { unverified: composer.unverified }),
  }
}

/** Who serves in a pool, by the unit that sees fewest. */
export function readPoolTotals(
  pool: string,
  view: readonly PoolView[],
  asked: string,
): PoolReading | undefined {
  const counts = view.map(({ members, stats, attributes, askedAt }) => {
    const real = members.filter((member) => !member.template)
    const one = { members, stats, attributes, askedAt }
    return { serving: real.filter((m) => servesNow(m, one)).length, total: real.length }
  })
  const [fewest] = counts.sort((a, b) => a.serving - b.serving)
  if (fewest === undefined) return undefined
  const groups = view.some(({ attributes }) => attributes.minActiveMembers > 0)
  return { pool: asked === '' ? pool : asked, ...fewest, whenNone: groups ? 'spill' : 'refuse' }
}

function absent(ref: MemberRef, scopes: readonly LoadScope[]): AbsentReading {
  return { ref, present: false, scopes }
}

/** A unit that does not answer still holds what it held; one that answers has the scope no more. */
function missingScope(views: readonly UnitView[]): Parameters<ScopeMemory['complete']>[2] {
  return (scope) => {
    const host = scope.scope.split(' ')[0]
    const unit = views.find((view) => view.device.host === host)
    if (unit !== undefined && 'error' in unit) {
      return { state: 'unread', note: unit.error.message }
    }
    return { state: 'ended', note: `not in the configuration of ${host ?? 'the unit'} any more` }
  }
}

function memberScopes(
  composer: Composer,
  unit: ReadUnit,
  view: PoolView,
  found: Found,
): readonly LoadScope[] {
  const { host } = unit.device
  return [found.row, ...found.ephemerals].map((member) => {
    const name = member === found.row ? host : `${host} ${lastPart(member.fullPath)}`
    return toScope(composer, unit, view, member, name, !unit.active || isHeld(member, view))
  })
}

/** Held by itself or by its node. */
function isHeld(member: MemberRow, view: PoolView): boolean {
  return isAtLeast(member.own, 'drain') || statsOf(view.stats, member)?.byParent === true
}

/** Counters as a scope. `sampledAt` goes back by what the device's statistics lag behind. */
function toScope(
  composer: Composer,
  unit: ReadUnit,
  view: PoolView,
  member: MemberRow,
  scope: string,
  inForce: boolean,
): LoadScope {
  const stats = statsOf(view.stats, member)
  const base = {
    scope,
    incarnation: unit.device.incarnation,
    sampledAt: view.askedAt - composer.freshness,
    inForce,
  }
  if (stats?.active === undefined || stats.queued === undefined) {
    const missing = stats === undefined ? 'no row for this member' : 'a counter is missing'
    const note = `statistics of ${unit.device.host}: ${missing}`
    return { ...base, state: 'unread', active: 0, queued: 0, note }
  }
  return {
    ...base,
    state: 'read',
    active: stats.active,
    queued: stats.queued,
    ...(stats.arrivals === undefined ? {} : { arrivals: stats.arrivals }),
  }
}

/** A node in no pool holds no work that these counters could show. */
function unusedNode(unit: ReadUnit, composer: Composer, inForce: boolean): LoadScope {
  return {
    scope: unit.device.host,
    incarnation: unit.device.incarnation,
    state: 'read',
    sampledAt: unit.askedAt - composer.freshness,
    active: 0,
    queued: 0,
    arrivals: 0,
    inForce,
    note: 'in no pool',
  }
}

function inheritedState(unit: ReadUnit, view: PoolView, found: Found): AdminState | undefined {
  const members = found.row.template && found.ephemerals.length > 0 ? found.ephemerals : [found.row]
  if (!members.every((member) => statsOf(view.stats, member)?.byParent === true)) return undefined
  const states = members.map((member) => unit.nodes.get(member.node)?.own ?? 'drain')
  const state = lowest(states)
  return state === 'unknown' || state === 'ready' ? 'drain' : state
}

function servesAny(found: Found, view: PoolView): boolean {
  const members = found.row.template ? found.ephemerals : [found.row]
  return members.some((member) => servesNow(member, view))
}

/** Would it get new work: enabled, with its node, and not without a passed check where there is one. */
function servesNow(member: MemberRow, view: PoolView): boolean {
  if (member.own !== 'ready' || member.template) return false
  if (statsOf(view.stats, member)?.byParent === true) return false
  return member.health === 'up' || member.health === 'unchecked'
}

/** Force offline keeps connections; whether serviceDownAction applies to it is not documented. */
function maintEffect(pools: readonly PoolView[]): MaintEffect {
  return pools.every(({ attributes }) => attributes.serviceDownAction === 'none')
    ? 'gentle'
    : 'unknown'
}
