import type {
  AdminState,
  Json,
  LoadScope,
  MaintEffect,
  MemberRef,
  PoolReading,
  Reading,
} from '../../../provider/contract.js'
import { isObject } from '../../../kit/json.js'
import type { MemberRow } from '../codec/members.js'
import { lastPart } from '../codec/names.js'
import { identityOf, type Found, type MemberTarget, type Resolver } from './target.js'
import { isReadUnit, statsOf, type PoolView, type ReadUnit, type UnitView } from './view.js'

/** What composing readings needs beside the views. */
export interface Composer {
  readonly resolver: Resolver
  readonly freshness: number
  /** What to tell a person about a member, beside the figures. */
  readonly hints: (
    ref: MemberRef,
    found: Found,
    pool: PoolView,
    sessions: number,
  ) => readonly string[]
  /** The same of a node. */
  readonly nodeHints: (ref: MemberRef, node: string) => readonly string[]
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

function highest(a: AdminState | 'unknown', b: AdminState | undefined): AdminState | 'unknown' {
  if (a === 'unknown' || b === undefined) return a
  return RANK[a] >= RANK[b] ? a : b
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
  const scopes: LoadScope[] = unreadScopes(views)
  const own: { found: Found; view: PoolView; unit: ReadUnit }[] = []
  const passed: (AdminState | 'unknown')[] = []
  for (const unit of views.filter(isReadUnit)) {
    const view = unit.pools.get(pool)
    const found = view && composer.resolver.findAmong({ rows: view.members, odd: view.odd }, target)
    if (view === undefined || found === undefined) continue
    scopes.push(...memberScopes(composer, unit, view, found))
    if (unit.active) own.push({ found, view, unit })
    else passed.push(found.row.own)
  }
  const [first] = own
  if (first === undefined) return { ref, present: false, scopes }
  const { found, view, unit } = first
  const { row } = found
  const rows = own.flatMap(({ found: f }) => [f.row, ...f.ephemerals])
  const sessions = [row, ...found.ephemerals].reduce(
    (sum, member) => sum + (statsOf(view.stats, member)?.sessions ?? 0),
    0,
  )
  const state = lowest(rows.map((member) => member.own))
  const inherited = inheritedState(unit, view, found)
  const hints = [...composer.hints(ref, found, view, sessions), ...awayHints(views)]
  if (inherited !== undefined) {
    hints.push(
      `its node ${row.node} is disabled: make { pool: '@nodes', member: '${row.node}' } ready`,
    )
  }
  return {
    ref,
    present: true,
    identity: identityOf(row),
    ...(row.address === undefined ? {} : { address: row.address }),
    port: row.port,
    ...(row.ratio === undefined ? {} : { weight: row.ratio }),
    own: state,
    ...(inherited === undefined ? {} : { inherited }),
    serves: own.some(({ found: f, view: v }) => servesAny(f, v)),
    health: row.health,
    scopes,
    maint: maintEffect([view]),
    ...nativeOf(row.native, state, passed),
    changeTime: changeTimeOf(views),
    ...(composer.unverified === undefined ? {} : { unverified: composer.unverified }),
    ...(hints.length === 0 ? {} : { hints }),
  }
}

/**
 * What units that passed traffic before make of a ready member with the next failover: in a group that does not sync by
 * itself, a hold stays on the unit that was active then.
 *
 * @param own - the state on the units that pass traffic now
 * @param passed - the states on those that did before
 */
export function nativeOf(
  native: Json,
  own: AdminState | 'unknown',
  passed: readonly (AdminState | 'unknown')[],
): { readonly native: Json; readonly stored?: 'drain' | 'maint' } {
  const stored = (['maint', 'drain'] as const).find((state) => passed.includes(state))
  if (own !== 'ready' || stored === undefined || !isObject(native)) return { native }
  // An undo asks whether it was found so: it was not.
  return { native: { ...native, passed: stored }, stored }
}

/** A change is one request to each unit that passes traffic, one after the other; in milliseconds. */
export function changeTimeOf(views: readonly UnitView[]): number {
  const active = views.filter(isReadUnit).filter((unit) => unit.active)
  return active.reduce((sum, { device }) => sum + device.session.spending.least, 0)
}

/** A unit that may hold work, and could not be read. */
export function unreadScopes(views: readonly UnitView[]): LoadScope[] {
  return views.flatMap((view) => {
    if (!('error' in view)) return []
    const { device, error } = view
    const zeros = { sampledAt: 0, active: 0, queued: 0, inForce: false }
    const name = { scope: device.host, incarnation: device.role.incarnation }
    return [{ ...name, ...zeros, state: 'unread' as const, note: error.message }]
  })
}

/** Units that are not waited for. */
export function awayHints(views: readonly UnitView[]): readonly string[] {
  return views.flatMap((view) => ('away' in view ? [view.away] : []))
}

/** Who serves in a pool, by the unit that sees fewest. */
export function readPoolTotals(
  pool: string,
  views: readonly PoolView[],
  asked: string,
): PoolReading | undefined {
  const counts = views.map((view) => {
    const real = view.members.filter((member) => !member.template)
    return { serving: real.filter((m) => servesNow(m, view)).length, total: real.length }
  })
  const [fewest] = counts.sort((a, b) => a.serving - b.serving)
  if (fewest === undefined) return undefined
  const groups = views.some(({ attributes }) => attributes.minActiveMembers > 0)
  const [odd] = views.flatMap((view) => view.odd)
  return {
    pool: asked === '' ? pool : asked,
    ...fewest,
    whenNone: groups ? 'spill' : 'refuse',
    ...(odd === undefined ? {} : { unknown: `a row of ${pool} can't be read: ${odd.message}` }),
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
    return toScope(composer, unit, view, member, name)
  })
}

/** Whether its node is disabled. */
function isOff(member: MemberRow, view: PoolView): boolean {
  return view.off.has(member.node) || statsOf(view.stats, member)?.byParent === true
}

/** Counters of a member as a scope. */
export function toScope(
  composer: Composer,
  unit: ReadUnit,
  view: PoolView,
  member: MemberRow,
  scope: string,
): LoadScope {
  const stats = statsOf(view.stats, member)
  const parent = isOff(member, view) ? nodeState(unit, member) : undefined
  // A template takes no traffic: whatever its statistics call it, what it made tells.
  const enabled = member.template ? undefined : stats?.enabled
  const counts = { ...stats, enabled, askedAt: view.askedAt }
  const missing = view.uncounted ?? (stats === undefined ? 'no row for this member' : stats.wrong)
  return countsToScope(composer, unit, {
    scope,
    admin: highest(member.own, parent),
    counts,
    ...(missing === undefined ? {} : { missing }),
  })
}

/** What a scope is made of. */
export interface Parts {
  readonly scope: string
  readonly admin: AdminState | 'unknown'
  readonly counts: {
    readonly active?: number | undefined
    readonly queued?: number | undefined
    readonly arrivals?: number | undefined
    readonly enabled?: boolean | undefined
    readonly askedAt: number
    readonly note?: string
  }
  readonly missing?: string
}

/**
 * Counters as a scope. `sampledAt` goes back by what the device's statistics lag behind. No client comes to
 * a member through a unit that is standby, whatever its copy of the configuration says. A change that the
 * configuration shows and the traffic processes do not is not in force.
 */
export function countsToScope(
  { freshness }: Composer,
  { device, active: passes }: ReadUnit,
  { scope, admin, counts, missing }: Parts,
): LoadScope {
  const { active, queued, arrivals, askedAt, enabled } = counts
  const held = admin === 'drain' || admin === 'maint'
  const isIgnored = passes && held && enabled === true
  const note = isIgnored
    ? `the configuration of ${device.host} has it disabled, and its statistics call it enabled`
    : counts.note
  const base = {
    scope,
    incarnation: device.role.incarnation,
    sampledAt: askedAt - freshness,
    admin,
    inForce: !isIgnored,
    ...(passes ? {} : { open: false }),
  }
  if (active === undefined || queued === undefined) {
    const why = `statistics of ${device.host}: ${missing ?? note ?? 'a counter is missing'}`
    return { ...base, state: 'unread', active: 0, queued: 0, note: why }
  }
  return {
    ...base,
    state: 'read',
    active,
    queued,
    ...(arrivals === undefined ? {} : { arrivals }),
    ...(note === undefined ? {} : { note }),
  }
}

function inheritedState(unit: ReadUnit, view: PoolView, found: Found): AdminState | undefined {
  const members = found.row.template && found.ephemerals.length > 0 ? found.ephemerals : [found.row]
  if (!members.every((member) => isOff(member, view))) return undefined
  const state = lowest(members.map((member) => nodeState(unit, member)))
  return state === 'unknown' || state === 'ready' ? 'drain' : state
}

/** The state of a node that is known to be disabled: drain, where no more is known. */
function nodeState(unit: ReadUnit, { node }: MemberRow): AdminState {
  return unit.nodes.get(node)?.own === 'maint' ? 'maint' : 'drain'
}

function servesAny(found: Found, view: PoolView): boolean {
  const members = found.row.template ? found.ephemerals : [found.row]
  return members.some((member) => servesNow(member, view))
}

/** Would it get new work: enabled, with its node, and not without a passed check where there is one. */
export function servesNow(member: MemberRow, view: PoolView): boolean {
  if (member.own !== 'ready' || member.template) return false
  if (isOff(member, view) || statsOf(view.stats, member)?.enabled === false) return false
  return member.health === 'up' || member.health === 'unchecked'
}

/** Force offline keeps connections; whether serviceDownAction applies to it is not documented. */
export function maintEffect(pools: readonly PoolView[]): MaintEffect {
  return pools.every(({ attributes }) => attributes.serviceDownAction === 'none')
    ? 'gentle'
    : 'unknown'
}
