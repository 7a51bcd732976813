import type { CallContext } from '../../../provider/contract.js'
import { DrainableError } from '../../../provider/error.js'
import { PROVIDER, type DataplaneApi, type Reply, type Served } from '../session/session.js'
import {
  parseProcessInfo,
  parseRuntimeServers,
  parseStats,
  saysNotFound,
  type ProcessInfo,
  type RuntimeServer,
  type StatsRow,
} from '../codec/replies.js'
import { isName } from '../codec/paths.js'
import type { Unresolved } from '../session/unresolved.js'
import { type Followers, nameOf } from './followers.js'
import { isUnresolved, judge, type Verdict } from './state.js'

/** Up to so many backends every one is asked for its `admin_state`; beyond, only where it decides. */
const ASK_ALL = 32

/** One server in one view: its row in the statistics, and its admin state. */
export interface Found {
  /** One row per HAProxy process (one, since HAProxy 2.5). */
  readonly rows: readonly StatsRow[]
  readonly server: RuntimeServer | undefined
  readonly verdict: Verdict
}

/** Everything read between two equal answers of `runtime/info`. */
export interface RuntimeView {
  readonly served: Served
  /** Before the first count was asked for. */
  readonly sampledAt: number
  readonly infos: readonly ProcessInfo[]
  /** By backend, then by server. A backend that was asked for and is not there has no entry. */
  readonly pools: ReadonlyMap<string, ReadonlyMap<string, Found>>
  /** Of the configuration, at the end of the reading. */
  readonly configVersion: string | undefined
}

/**
 * Reads servers: process info, statistics, `admin_state`, process info again. What was read counts only
 * where HAProxy was there at both ends and was the same process; a reload in between gets one more
 * try.
 *
 * @param pools - which backends
 * @param followers - learns from the rows of all backends: once a process, or now
 * @throws `UNREACHABLE` where the API can't reach HAProxy: its 404s and empty lists prove nothing then
 */
export async function readRuntime(
  api: DataplaneApi,
  pools: ReadonlySet<string> | 'all',
  ctx: CallContext,
  followers?: { readonly learn: Followers; readonly now: boolean },
): Promise<RuntimeView> {
  const view = await attempt(api, pools, ctx, followers)
  if (typeof view !== 'string') return view
  const again = await attempt(api, pools, ctx, followers)
  if (typeof again !== 'string') return again
  throw new DrainableError('CONFLICT', `${api.instance}: ${again}; read again`, {
    provider: PROVIDER,
  })
}

async function attempt(
  api: DataplaneApi,
  pools: ReadonlySet<string> | 'all',
  ctx: CallContext,
  followers: { readonly learn: Followers; readonly now: boolean } | undefined,
): Promise<RuntimeView | string> {
  const served = await api.served(ctx)
  const before = await readProcesses(api, ctx)
  const sampledAt = ctx.clock.now()
  const wanted = followers !== undefined && (followers.now || !followers.learn.know(before))
  const only = !wanted && pools !== 'all' && pools.size === 1 ? [...pools][0] : undefined
  const stats = await api.read(served.paths.stats(only), ctx)
  const perProcess = api.parse(stats, (text) =>
    parseStats(text, (pool) => pools === 'all' || pools.has(pool)),
  )
  const rows = byServer(perProcess.flatMap((process) => process.rows))
  const servers = await readServers(api, served, pools, rows, ctx)
  const after = await readProcesses(api, ctx)
  if (!sameProcesses(before, after)) return 'HAProxy was reloaded while its servers were read'
  if (perProcess.length !== after.length) {
    return `statistics of ${perProcess.length} processes, but ${after.length} processes answer`
  }
  if (only === undefined) {
    const tracking = perProcess.flatMap((process) => process.tracking)
    followers?.learn.learn(after, tracking)
  }
  const merged = merge(rows, servers, after, api.unresolved)
  if (typeof merged === 'string') return merged
  return { served, sampledAt, infos: after, pools: merged, configVersion: stats.configVersion }
}

/** The processes that answer at this moment. */
export async function readProcesses(
  api: DataplaneApi,
  ctx: CallContext,
): Promise<readonly ProcessInfo[]> {
  const { paths } = await api.served(ctx)
  const infos = api.parse(await api.read(paths.processInfo, ctx), parseProcessInfo)
  if (infos.length > 0) return infos
  throw new DrainableError('UNREACHABLE', `${api.instance}: the API knows no HAProxy process`, {
    provider: PROVIDER,
  })
}

function sameProcesses(a: readonly ProcessInfo[], b: readonly ProcessInfo[]): boolean {
  return (
    a.length === b.length &&
    a.every((info, i) => {
      const other = b[i]
      return info.pid === other?.pid && info.node === other.node && info.uptime <= other.uptime
    })
  )
}

/** What is known of the own state of a server whose name does not resolve, where that is not shown. */
function known(
  verdict: Verdict,
  row: StatsRow,
  processes: string,
  unresolved: Unresolved,
): Verdict {
  if (!isUnresolved(row.status)) unresolved.forget(row)
  else if (verdict.own === 'drain') unresolved.drained(row, processes)
  else if (verdict.hidden === true && unresolved.isReady(row, processes)) {
    const { inherited = 'maint', setBy } = verdict
    return { own: 'ready', inherited, ...(setBy === undefined ? {} : { setBy }) }
  }
  return verdict
}

type Rows = Map<string, Map<string, StatsRow[]>>

function byServer(rows: readonly StatsRow[]): Rows {
  const pools: Rows = new Map()
  for (const row of rows) {
    const members = pools.get(row.pool) ?? new Map<string, StatsRow[]>()
    pools.set(row.pool, members)
    const list = members.get(row.member) ?? []
    members.set(row.member, list)
    list.push(row)
  }
  return pools
}

/** By backend: its servers; `missing` where the answer was that there is no such backend. */
type Servers = Map<string, ReadonlyMap<string, RuntimeServer> | 'missing'>

async function readServers(
  api: DataplaneApi,
  served: Served,
  pools: ReadonlySet<string> | 'all',
  rows: Rows,
  ctx: CallContext,
): Promise<Servers> {
  // Of a name that can't be asked for the statistics alone tell.
  const all = (pools === 'all' ? [...rows.keys()] : [...pools]).filter((pool) => isName(pool))
  const asked = all.length <= ASK_ALL ? all : all.filter((pool) => needsServerList(rows, pool))
  const servers: Servers = new Map()
  // one after the other: the API works them off one by one anyway
  for (const pool of asked) {
    const reply = await api.get(served.paths.servers(pool), ctx)
    const list = toServers(api, reply, pool)
    const named = list?.map((server) => [server.name, server] as const)
    servers.set(pool, named === undefined ? 'missing' : new Map(named))
  }
  return servers
}

function needsServerList(rows: Rows, pool: string): boolean {
  const members = rows.get(pool)
  if (members === undefined) return true
  return [...members.values()].flat().some((row) => judge(row, undefined).doubt !== undefined)
}

function toServers(
  api: DataplaneApi,
  reply: Reply,
  pool: string,
): readonly RuntimeServer[] | undefined {
  if (reply.status === 200) return api.parse(reply, parseRuntimeServers)
  if (saysNotFound(reply.status, reply.words)) return undefined
  throw api.toError(`GET servers of ${pool}`, reply)
}

/** Merges statistics and server lists; returns a text if one of them has a server that the other lacks. */
function merge(
  rows: Rows,
  servers: Servers,
  infos: readonly ProcessInfo[],
  unresolved: Unresolved,
): Map<string, Map<string, Found>> | string {
  const pools = new Map<string, Map<string, Found>>()
  const processes = nameOf(infos)
  for (const pool of new Set([...rows.keys(), ...servers.keys()])) {
    const listed = servers.get(pool)
    if (listed === 'missing') {
      if (!rows.has(pool)) continue
      return `backend ${pool} is in the statistics, but its servers are not there`
    }
    const members = new Map<string, Found>()
    pools.set(pool, members)
    for (const [member, list] of rows.get(pool) ?? []) {
      const server = listed?.get(member)
      if (listed !== undefined && server === undefined) {
        return `${pool}/${member} is in the statistics, but not among the servers`
      }
      if (list.length !== infos.length) {
        return `${list.length} rows for ${pool}/${member}, but ${infos.length} processes answer`
      }
      const verdicts = list.map((row) =>
        known(judge(row, server?.admin), row, processes, unresolved),
      )
      const [verdict] = verdicts
      if (verdict === undefined) continue
      const agreed = verdicts.every((other) => other.own === verdict.own)
      members.set(member, {
        rows: list,
        server,
        verdict: agreed ? verdict : { own: 'unknown', doubt: 'its processes disagree' },
      })
    }
    for (const member of listed?.keys() ?? []) {
      if (!members.has(member)) {
        return `${pool}/${member} is among the servers, but not in the statistics`
      }
    }
  }
  return pools
}
