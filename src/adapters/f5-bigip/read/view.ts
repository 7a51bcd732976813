import type { LoadScope, Reading } from '../../../provider/contract.js'
import type { DrainableError } from '../../../provider/error.js'
import type { RoleReading } from '../codec/device.js'
import type { MemberRow, NodeRow, PoolAttributes } from '../codec/members.js'
import { statsKey, type MemberStats, type StatsTable } from '../codec/stats.js'
import type { Named } from '../codec/names.js'
import type { Device } from '../session/device.js'
import type { Away, Failed } from '../session/units.js'

/** One pool on one unit at one moment. */
export interface PoolView {
  readonly attributes: PoolAttributes
  readonly members: readonly MemberRow[]
  /** Rows of members that can't be read. */
  readonly odd: readonly DrainableError[]
  /** Undefined: its counters were not read, for the reason that {@link PoolView.uncounted} gives. */
  readonly stats: StatsTable | undefined
  readonly uncounted?: string
  /** Nodes that are known to be disabled. */
  readonly off: ReadonlySet<string>
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
  /** Pools by full path; for each the question whether all members looked for are in a list. */
  readonly pools: ReadonlyMap<string, (members: readonly MemberRow[]) => boolean>
  /** Every pool, in one list. */
  readonly all: boolean
  /** Nodes by full path: their members' pools are found in the list of all. */
  readonly nodes: ReadonlySet<string>
}

/** A pool and its members, as a list has them. */
export interface Listed {
  readonly attributes: PoolAttributes
  readonly members: readonly MemberRow[]
  readonly odd: readonly DrainableError[]
}

export type Lists = Map<string, Listed>

/** What a node holds over all its pools, and beside them. */
export interface NodeLoad {
  readonly active: number | undefined
  readonly queued: number | undefined
  readonly arrivals: number | undefined
  readonly sessions: number
  /** What the traffic processes go by; undefined: they do not say. */
  readonly enabled?: boolean | undefined
  /** Before the counters were asked for, by the call's clock. */
  readonly askedAt: number
  /** Where the numbers come from, if they are weaker than usual. */
  readonly note?: string
}

export function statsOf(table: StatsTable | undefined, of: Named): MemberStats | undefined {
  return table?.get(statsKey(of.node, of.port))
}

/**
 * Units that pass the traffic of different groups are no pair of rivals. Where two are active for one group,
 * they have lost each other: which of them is to go on, and with which configuration, is not known.
 *
 * @returns makes the scopes of both unread, with the reason; undefined where there are none
 */
export function splitOf(active: readonly ReadUnit[]): ((reading: Reading) => Reading) | undefined {
  const byGroup = new Map<string, string[]>()
  for (const { device, role } of active) {
    for (const group of new Set(role.groups)) {
      byGroup.set(group, [...(byGroup.get(group) ?? []), device.host])
    }
  }
  const [split] = [...byGroup].filter(([, hosts]) => hosts.length > 1)
  if (split === undefined) return undefined
  const [group, hosts] = split
  const note = `${hosts.join(' and ')} are both active for ${group}: they no longer see each other, and both pass traffic; resolve that ('show cm failover-status') before a member can be reported idle`
  const isTheirs = ({ scope }: LoadScope): boolean =>
    hosts.some((host) => scope === host || scope.startsWith(`${host} `))
  const toUnread = (scope: LoadScope): LoadScope =>
    isTheirs(scope)
      ? { ...scope, state: 'unread', active: 0, queued: 0, inForce: false, note }
      : scope
  return (reading) => ({ ...reading, scopes: reading.scopes.map(toUnread) })
}
