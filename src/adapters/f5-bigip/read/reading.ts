import type {
  AdminState,
  Json,
  LoadScope,
  PoolReading,
  Reading,
} from '../../../provider/contract.js'
import { isObject } from '../../../kit/json.js'
import { atLeast } from '../../../provider/member-ref.js'
import type { MemberRow, NodeRow } from '../codec/members.js'
import { lastPart } from '../codec/names.js'
import { statsOf } from '../codec/stats.js'
import type { Hints } from './hints.js'
import { identityOf, membersOfNode, NODES, type Resolver, type Target } from './target.js'
import { isOff, isReadUnit, type PoolView, type ReadUnit, type UnitView } from './unit.js'

/** What composing readings needs beside the views. */
export interface Composer {
  readonly resolver: Resolver
  readonly freshness: number
  readonly hints: Hints
  /** What keeps idle from being verified, in one sentence. */
  readonly unverified: string | undefined
}

type State = AdminState | 'unknown'

/** The lowest of several states: what is not raised everywhere is not raised. */
export function lowest(states: readonly State[]): State {
  let low: AdminState | undefined
  for (const state of states) {
    if (state === 'unknown') return 'unknown'
    if (low === undefined || !atLeast(state, low)) low = state
  }
  return low ?? 'unknown'
}

function highest(a: State, b: AdminState | undefined): State {
  return a === 'unknown' || b === undefined || atLeast(a, b) ? a : b
}

/** A member or node on one unit. */
interface Spot {
  readonly unit: ReadUnit
  readonly row: MemberRow | NodeRow
  /** What makes it the one it is. */
  readonly names: {
    readonly identity: string
    readonly port?: number
    readonly weight?: number
  }
  /** The states that are its own: its own one, for a member with what its template made. */
  readonly own: readonly State[]
  readonly inherited: AdminState | undefined
  readonly views: readonly PoolView[]
  readonly serves: boolean
  readonly scopes: readonly LoadScope[]
  readonly hints: readonly string[]
}

/** One target over all units. Configuration is that of the active ones, counts are those of all that were active. */
export function readTarget(
  composer: Composer,
  target: Target,
  views: readonly UnitView[],
): Reading {
  const { ref } = target
  const units = views.filter(isReadUnit)
  const spots = units.flatMap((unit) => spotOf(composer, target, unit) ?? [])
  const scopes = [...unreadScopes(views), ...spots.flatMap((spot) => spot.scopes)]
  const active = spots.filter(({ unit }) => unit.active)
  const [first] = active
  if (first === undefined) return { ref, present: false, scopes }
  const { row, names, inherited } = first
  const own = lowest(active.flatMap((spot) => spot.own))
  const passed = spots.flatMap(({ unit, row: { own: state } }) => (unit.active ? [] : state))
  // Units that are not waited for
  const away = views.flatMap((view) => ('away' in view ? view.away : []))
  const hints = [...first.hints, ...away]
  // Force offline keeps connections; whether serviceDownAction applies to it is not documented.
  const isGentle = first.views.every(({ attributes }) => attributes.serviceDownAction === 'none')
  return {
    ref,
    present: true,
    ...names,
    ...(row.address === undefined ? {} : { address: row.address }),
    own,
    ...(inherited === undefined ? {} : { inherited }),
    serves: active.some(({ serves }) => serves),
    health: row.health,
    scopes,
    maint: isGentle ? 'gentle' : 'unknown',
    ...nativeOf(row.native, own, passed),
    // A change is one request to each unit that passes traffic, one after the other.
    changeTime: units.reduce((ms, { active: passes, device }) => {
      return ms + (passes ? device.session.spending.least : 0)
    }, 0),
    ...(composer.unverified === undefined ? {} : { unverified: composer.unverified }),
    ...(hints.length === 0 ? {} : { hints }),
  }
}

function spotOf(composer: Composer, target: Target, unit: ReadUnit): Spot | undefined {
  const { ref } = target
  const { host } = unit.device
  if (target.kind === 'node') {
    const row = unit.nodes.get(target.node)
    if (row === undefined) return undefined
    const views = [...unit.pools.values()].filter(({ members }) =>
      members.rows.some((one) => one.node === target.node),
    )
    const behind = views.flatMap((view) =>
      membersOfNode(view.members.rows, target.node).map((member) => ({ view, member })),
    )
    // Whether a template's node reaches what it made is not documented: each tells for itself.
    const copies = behind.filter(({ member }) => member.node !== target.node)
    const counts = unit.loads.get(row.fullPath) ?? { askedAt: unit.askedAt }
    const whole = { scope: host, admin: row.own, counts }
    const scopes = copies.map(({ view, member }) => {
      const scope = `${host} ${view.attributes.fullPath} ${lastPart(member.fullPath)}`
      return memberScope(composer, unit, view, member, scope)
    })
    return {
      unit,
      row,
      names: { identity: `${row.fullPath} at ${row.address ?? ''}` },
      own: [row.own],
      inherited: undefined,
      views,
      serves: behind.some(({ member, view }) => servesNow(member, view, unit)),
      scopes: [countsToScope(composer, unit, whole), ...scopes],
      hints: composer.hints.ofNode(ref, row),
    }
  }
  const view = unit.pools.get(target.pool)
  const found = view && composer.resolver.find(view.members, target)
  if (view === undefined || found === undefined) return undefined
  const { row, ephemerals } = found
  const rows = [row, ...ephemerals]
  const inherited = inheritedState(ephemerals.length > 0 ? ephemerals : [row], view, unit)
  const closed =
    inherited === undefined
      ? []
      : [`its node ${row.node} is disabled: make { pool: '@nodes', member: '${row.node}' } ready`]
  return {
    unit,
    row,
    names: {
      identity: identityOf(row),
      port: row.port,
      ...(row.ratio === undefined ? {} : { weight: row.ratio }),
    },
    own: rows.map(({ own }) => own),
    inherited,
    views: [view],
    serves: rows.some((member) => servesNow(member, view, unit)),
    scopes: rows.map((member) => {
      const scope = member === row ? host : `${host} ${lastPart(member.fullPath)}`
      return memberScope(composer, unit, view, member, scope)
    }),
    hints: [...composer.hints.of(ref, found, view), ...closed],
  }
}

/** The state that all of these inherit. */
function inheritedState(
  members: readonly MemberRow[],
  view: PoolView,
  unit: ReadUnit,
): AdminState | undefined {
  const states = members.flatMap((member) => stateOfNode(member, view, unit) ?? [])
  if (states.length < members.length) return undefined
  return states.includes('drain') ? 'drain' : 'maint'
}

/** The state of a node that is known to be disabled: drain, where no more is known. */
function stateOfNode(
  member: MemberRow,
  view: PoolView,
  unit: ReadUnit,
): 'drain' | 'maint' | undefined {
  if (!isOff(member, view, unit)) return undefined
  return unit.nodes.get(member.node)?.own === 'maint' ? 'maint' : 'drain'
}

/**
 * What units that passed traffic before make of a ready member with the next failover: in a group that does not sync by
 * itself, a hold stays on the unit that was active then.
 *
 * @param own - the state on the units that pass traffic now
 * @param passed - the states on those that did before
 */
function nativeOf(
  native: Json,
  own: State,
  passed: readonly State[],
): { readonly native: Json; readonly stored?: 'drain' | 'maint' } {
  const stored = (['maint', 'drain'] as const).find((state) => passed.includes(state))
  if (own !== 'ready' || stored === undefined || !isObject(native)) return { native }
  // An undo asks whether it was found so: it was not.
  return { native: { ...native, passed: stored }, stored }
}

/** Units that may hold work, and could not be read. */
function unreadScopes(views: readonly UnitView[]): readonly LoadScope[] {
  return views.flatMap((view) => {
    if (!('error' in view)) return []
    const { device, error } = view
    const name = { scope: device.host, incarnation: device.role.incarnation }
    return toUnread({ ...name, sampledAt: 0 }, error.message)
  })
}

function toUnread(
  scope: Pick<LoadScope, 'scope' | 'incarnation' | 'sampledAt'>,
  note: string,
): LoadScope {
  return { ...scope, state: 'unread', active: 0, queued: 0, inForce: false, note }
}

/** Counters of a member as a scope. */
function memberScope(
  composer: Composer,
  unit: ReadUnit,
  view: PoolView,
  member: MemberRow,
  scope: string,
): LoadScope {
  const stats = statsOf(view.stats, member)
  // A template takes no traffic: whatever its statistics call it, what it made tells.
  const enabled = member.template ? undefined : stats?.enabled
  return countsToScope(composer, unit, {
    scope,
    admin: highest(member.own, stateOfNode(member, view, unit)),
    counts: { ...stats, enabled, askedAt: view.askedAt },
    missing: view.uncounted ?? (stats === undefined ? 'no row for this member' : stats.wrong),
  })
}

/** What a scope is made of. */
interface Parts {
  readonly scope: string
  readonly admin: State
  readonly counts: {
    readonly active?: number | undefined
    readonly queued?: number | undefined
    readonly arrivals?: number | undefined
    readonly enabled?: boolean | undefined
    readonly askedAt: number
    readonly note?: string
  }
  readonly missing?: string | undefined
}

/**
 * Counters as a scope. `sampledAt` goes back by what the device's statistics lag behind. No client comes to
 * a member through a unit that is standby, whatever its copy of the configuration says. A change that the
 * configuration shows and the traffic processes do not is not in force.
 */
function countsToScope(
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
    ...(passes ? {} : { open: false }),
  }
  if (active === undefined || queued === undefined) {
    const why = `statistics of ${device.host}: ${missing ?? note ?? 'a counter is missing'}`
    return { ...toUnread(base, why), inForce: !isIgnored }
  }
  return {
    ...base,
    state: 'read',
    active,
    queued,
    inForce: !isIgnored,
    ...(arrivals === undefined ? {} : { arrivals }),
    ...(note === undefined ? {} : { note }),
  }
}

/** Would it get new work: enabled, with its node, and not without a passed check where there is one. */
function servesNow(member: MemberRow, view: PoolView, unit: ReadUnit): boolean {
  if (!couldServe(member) || member.template) return false
  return !isOff(member, view, unit) && statsOf(view.stats, member)?.enabled !== false
}

/** But for its node, and for what the traffic processes say. */
function couldServe({ own, health }: MemberRow): boolean {
  return own === 'ready' && (health === 'up' || health === 'unchecked')
}

/** Who serves in the pools of targets. */
export function readTotals(
  targets: readonly Target[],
  active: readonly ReadUnit[],
  whole: boolean,
): readonly PoolReading[] {
  const asked = new Map<string, string>()
  // Every pool there is, those without a member too: that is where the first one is added.
  if (whole) for (const { pools } of active) for (const name of pools.keys()) asked.set(name, name)
  for (const target of targets) {
    if (target.kind === 'member') asked.set(target.ref.pool, target.pool)
  }
  const found = [...asked].flatMap(([name, pool]) => totalsOf(name, pool, active) ?? [])
  const nodes = targets.flatMap((target) => (target.kind === 'node' ? target.node : []))
  return nodes.length === 0 ? found : [...found, nodePool(nodes, active)]
}

/** Who serves in a pool, by the unit that sees fewest. */
function totalsOf(name: string, pool: string, units: readonly ReadUnit[]): PoolReading | undefined {
  const views = units.flatMap((unit) => {
    const view = unit.pools.get(pool)
    return view === undefined ? [] : { unit, view }
  })
  const counts = views.map(({ view, unit }) => {
    const real = view.members.rows.filter((member) => !member.template)
    return { serving: real.filter((m) => servesNow(m, view, unit)).length, total: real.length }
  })
  const [fewest] = counts.sort((a, b) => a.serving - b.serving)
  if (fewest === undefined) return undefined
  const groups = views.some(({ view }) => view.attributes.minActiveMembers > 0)
  const [odd] = views.flatMap(({ view }) => view.members.odd)
  return {
    pool: name,
    ...fewest,
    whenNone: groups ? 'spill' : 'refuse',
    ...(odd === undefined ? {} : { unknown: `a row of ${pool} can't be read: ${odd.message}` }),
  }
}

/**
 * The pool of all nodes: as few serve as in the pool that would be left with fewest. Pools in which none
 * of the nodes' members could serve lose nothing, and count only where there is no other.
 */
function nodePool(nodes: readonly string[], active: readonly ReadUnit[]): PoolReading {
  const isOurs = ({ node }: MemberRow): boolean => nodes.includes(node)
  const touched = active.flatMap((unit) =>
    [...unit.pools].flatMap(([pool, { members }]) => {
      const ours = members.rows.filter(isOurs)
      return ours.length === 0 ? [] : { unit, pool, loses: ours.some(couldServe) }
    }),
  )
  const losing = touched.filter(({ loses }) => loses)
  const totals = (losing.length > 0 ? losing : touched).flatMap(
    ({ unit, pool }) => totalsOf(NODES, pool, [unit]) ?? [],
  )
  const [fewest] = totals.sort((a, b) => a.serving - b.serving)
  return fewest ?? { pool: NODES, serving: 0, total: 0, whenNone: 'unknown' }
}

/**
 * Units that pass the traffic of different groups are no rivals. Where two are active for one group,
 * they have lost each other: which of them is to go on, and with which configuration, is not known. The scopes of both are unread
 * then.
 */
export function withoutRivals(
  readings: readonly Reading[],
  active: readonly ReadUnit[],
): readonly Reading[] {
  const byGroup = new Map<string, string[]>()
  for (const { device, role } of active) {
    for (const group of new Set(role.groups)) {
      byGroup.set(group, [...(byGroup.get(group) ?? []), device.host])
    }
  }
  const [split] = [...byGroup].filter(([, hosts]) => hosts.length > 1)
  if (split === undefined) return readings
  const [group, hosts] = split
  const note = `${hosts.join(' and ')} are both active for ${group}: they no longer see each other, and both pass traffic; resolve that ('show cm failover-status') before a member can be reported idle`
  const unread = (scope: LoadScope): LoadScope =>
    hosts.includes(scope.scope.split(' ')[0] ?? '') ? toUnread(scope, note) : scope
  return readings.map((reading) => ({ ...reading, scopes: reading.scopes.map(unread) }))
}
