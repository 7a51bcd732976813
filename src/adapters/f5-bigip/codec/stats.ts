/**
 * Counters of `members/stats`. Rows are matched by node name and port, never by the key: keys differ
 * by release, and their host is always `localhost`. What is missing is unknown, never 0.
 */
import { count, description, rows, type JsonObject } from './json.js'
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
export function parseStats(value: unknown, pool: string): StatsTable {
  const table = new Map<string, MemberStats>()
  for (const { fields } of rows(value)) {
    const node = description(fields, 'nodeName')
    const port = toPort(description(fields, 'port') ?? '')
    const poolName = description(fields, 'poolName')
    if (node === undefined || port === undefined) continue
    if (poolName !== undefined && poolName !== pool) continue
    table.set(statsKey(node, port), toStats(fields))
  }
  return table
}

function toStats(fields: JsonObject): MemberStats {
  const connections = count(fields, 'serverside.totConns')
  const requests = count(fields, 'totRequests')
  return {
    active: count(fields, 'serverside.curConns'),
    queued: count(fields, 'connq.depth'),
    arrivals:
      connections === undefined || requests === undefined ? undefined : connections + requests,
    sessions: count(fields, 'curSessions'),
    byParent: description(fields, 'status.enabledState') === 'disabled-by-parent',
  }
}
