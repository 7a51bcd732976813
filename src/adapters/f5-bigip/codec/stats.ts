/**
 * Counters of `members/stats`. Rows are matched by node name and port, never by the key: keys differ
 * by release, and their host is always `localhost`. What is missing is unknown, never 0.
 */
import type { JsonValue } from '../../../kit/json.js'
import { count, description, rows } from './entries.js'
import { toPort } from './names.js'

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
}

/** All rows of an answer, by node and port. */
export type StatsTable = ReadonlyMap<string, MemberStats>

/** The key of a row. */
export function statsKey(node: string, port: number): string {
  return `${node}\0${port}`
}

/**
 * The rows of one pool's members.
 *
 * @param pool - full path: rows that name another pool are left out (asked by an unqualified name,
 * 13.1 answered with a row of the pool itself)
 */
export function parseStats(value: JsonValue, pool: string): StatsTable {
  const table = new Map<string, MemberStats>()
  for (const row of rows(value)) {
    const node = description(row, 'nodeName')
    const service = description(row, 'port')
    const poolName = description(row, 'poolName')
    if (node === undefined && service === undefined) continue // the pool's own
    if (poolName !== undefined && poolName !== pool) continue
    const port = toPort(service ?? '')
    if (node === undefined || port === undefined) throw row.wrong('a row with nodeName and port')
    const key = statsKey(node, port)
    const stats = toStats(row)
    if (!isSame(table.get(key) ?? stats, stats)) throw row.wrong('one row for each member')
    table.set(key, stats)
  }
  return table
}

/**
 * The rows of the members of every pool that an answer has, by the pool's full path; a pool that it does
 * not name is none of them.
 */
export function parseAllStats(value: JsonValue): ReadonlyMap<string, StatsTable> {
  const tables = new Map<string, Map<string, MemberStats>>()
  for (const row of rows(value)) {
    const pool = description(row, 'poolName')
    const node = description(row, 'nodeName')
    const port = toPort(description(row, 'port') ?? '')
    if (pool === undefined || node === undefined) continue // the pool's own
    if (port === undefined) throw row.wrong('a row with nodeName and port')
    const table = tables.get(pool) ?? new Map<string, MemberStats>()
    const key = statsKey(node, port)
    const stats = toStats(row)
    if (!isSame(table.get(key) ?? stats, stats)) throw row.wrong('one row for each member')
    tables.set(pool, table.set(key, stats))
  }
  return tables
}

/** The counters of a node: of its members in every pool, and of what reaches it past all pools. */
export type NodeStats = Pick<MemberStats, 'active' | 'arrivals' | 'sessions' | 'enabled'>

/** `GET ltm/node/<node>/stats`; undefined where no row is the node's. */
export function parseNodeStats(value: JsonValue, node: string): NodeStats | undefined {
  const own = rows(value).filter((row) => (description(row, 'tmName') ?? node) === node)
  const [row, second] = own
  if (row === undefined) return undefined
  if (second !== undefined) throw second.wrong('one row for the node')
  const { active, arrivals, sessions, enabled } = toStats(row)
  return { active, arrivals, sessions, enabled }
}

function isSame(a: MemberStats, b: MemberStats): boolean {
  return JSON.stringify(a) === JSON.stringify(b)
}

function toStats(row: JsonValue): MemberStats {
  const connections = count(row, 'serverside.totConns')
  const requests = count(row, 'totRequests')
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
