/**
 * Counters of `members/stats`. Rows are matched by node name and port, never by the key: keys differ
 * by release, and their host is always `localhost`. What is missing is unknown, never 0.
 */
import type { JsonValue } from '../../../kit/json.js'
import { isDrainableError } from '../../../provider/error.js'
import { count, counter, description, rows } from './entries.js'
import { toPort, type Named } from './names.js'

/** The counters of one member. */
export interface MemberStats {
  /** `serverside.curConns`: open server-side connections, pooled idle ones of OneConnect included. */
  readonly active: number | undefined
  /** `connq.depth`: requests that wait for this member. */
  readonly queued: number | undefined
  /** `serverside.totConns` + `totRequests`: the first does not move when a pooled connection is used again. */
  readonly arrivals: number | undefined
  /** `curSessions`: sessions, as persistence keeps them. */
  readonly sessions: number | undefined
  /** The node is disabled, so the member is too. */
  readonly byParent: boolean
  /** What the traffic processes go by, beside the configuration; undefined: they do not say. */
  readonly enabled: boolean | undefined
  /** Why there is no number. */
  readonly wrong?: string
}

/** All rows of an answer, by node and port. A row that can't be read is none of another member. */
export type StatsTable = ReadonlyMap<string, MemberStats>

/** The key of a row. */
export function statsKey(node: string, port: number): string {
  return `${node}\0${port}`
}

/** The counters of a member; undefined where it has no row, or there are no counters. */
export function statsOf(table: StatsTable | undefined, of: Named): MemberStats | undefined {
  return table?.get(statsKey(of.node, of.port))
}

/**
 * The rows of the members of every pool that an answer has, by the pool's full path.
 *
 * @param asked - full path of the pool that was asked for: a row that names no pool is of that one, or else of none. Asked by an
 * unqualified name, 13.1 answered with a row of the pool itself
 */
export function parseAllStats(value: JsonValue, asked?: string): ReadonlyMap<string, StatsTable> {
  const tables = new Map<string, Map<string, MemberStats>>()
  for (const row of rows(value)) {
    const pool = poolOf(row) ?? asked
    if (pool === undefined) continue
    const table = tables.get(pool) ?? new Map<string, MemberStats>()
    enter(table, row)
    if (table.size > 0) tables.set(pool, table)
  }
  return tables
}

/** The rows of one pool's members. */
export function parseStats(value: JsonValue, pool: string): StatsTable {
  return parseAllStats(value, pool).get(pool) ?? new Map<string, MemberStats>()
}

function poolOf(row: JsonValue): string | undefined {
  return readable(() => description(row, 'poolName'))
}

/** Enters a row under its member; one that names none that is known (the pool's own, a port as a strange word) is none of ours. */
function enter(table: Map<string, MemberStats>, row: JsonValue): void {
  const node = readable(() => description(row, 'nodeName'))
  const port = toPort(readable(() => description(row, 'port')) ?? '')
  if (node === undefined || port === undefined) return
  const key = statsKey(node, port)
  const stats = readable(() => toStats(row)) ?? UNREADABLE
  // Of two rows that differ neither is to be believed.
  const isOne = JSON.stringify(table.get(key) ?? stats) === JSON.stringify(stats)
  table.set(key, isOne ? stats : UNREADABLE)
}

const UNREADABLE: MemberStats = {
  active: undefined,
  queued: undefined,
  arrivals: undefined,
  sessions: undefined,
  byParent: false,
  enabled: undefined,
  wrong: 'its row could not be read',
}

/** What a damaged field makes of one row it does not make of the others. */
function readable<T>(read: () => T): T | undefined {
  try {
    return read()
  } catch (error) {
    if (!isDrainableError(error, 'MALFORMED_REPLY')) throw error
    return undefined
  }
}

/** The counters of a node: of its members in every pool, and of what reaches it past all pools. */
export type NodeStats = Pick<MemberStats, 'active' | 'arrivals' | 'enabled'>

/** `GET ltm/node/<node>/stats`; undefined where no row is the node's. */
export function parseNodeStats(value: JsonValue, node: string): NodeStats | undefined {
  const own = rows(value).filter((row) => (description(row, 'tmName') ?? node) === node)
  const [row, second] = own
  if (row === undefined) return undefined
  if (second !== undefined) throw second.wrong('one row for the node')
  const { active, arrivals, enabled } = toStats(row)
  return { active, arrivals, enabled }
}

function toStats(row: JsonValue): MemberStats {
  const connections = counter(row, 'serverside.totConns')
  const requests = counter(row, 'totRequests')
  const state = description(row, 'status.enabledState')
  return {
    active: count(row, 'serverside.curConns'),
    queued: count(row, 'connq.depth'),
    arrivals:
      connections === undefined || requests === undefined ? undefined : connections + requests,
    sessions: count(row, 'curSessions'),
    byParent: state === 'disabled-by-parent',
    enabled:
      state === 'enabled' ? true : state?.startsWith('disabled') === true ? false : undefined,
  }
}
