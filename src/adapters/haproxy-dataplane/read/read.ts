import type { Followers } from '../../../kit/haproxy/followers.js'
import { Turnstile } from '../../../kit/turnstile.js'
import type { CallContext, MemberRef } from '../../../provider/contract.js'
import { DrainableError, isDrainableError } from '../../../provider/error.js'
import { isName } from '../codec/paths.js'
import {
  nameOf,
  parseProcessInfo,
  parseRuntimeServers,
  parseStats,
  type ProcessInfo,
  type RuntimeServer,
  type ServerStats,
  saysNotFound,
  type StatsRow,
} from '../codec/replies.js'
import {
  type DataplaneApi,
  PROVIDER,
  type Reply,
  type Served,
  type Unresolved,
} from '../session/session.js'
import { isUnresolved, judge, splitAddress, type Verdict } from './state.js'

/** One server in one view: its row in the statistics, and its admin state. */
export interface Found {
  readonly row: StatsRow
  readonly server: RuntimeServer | undefined
  readonly verdict: Verdict
}

/** Everything read between two answers of the same process to `runtime/info`. */
export interface RuntimeView {
  readonly served: Served
  /** Before the first count was asked for. */
  readonly sampledAt: number
  readonly info: ProcessInfo
  /** By backend, then by server. A backend that was asked for and is not there has no entry. */
  readonly pools: ReadonlyMap<string, ReadonlyMap<string, Found>>
  /** Of the configuration, at the end of the reading. */
  readonly configVersion: string | undefined
}

/** How often it is read again because HAProxy was reloaded meanwhile: twice, and once where that was before the look. */
const ATTEMPTS = 3

/**
 * Reads servers: statistics, where they don't decide `admin_state`, and process info. What was read counts only where
 * the process that answers at its end answered before it too: at its beginning, or at the end of the look before.
 *
 * Each look makes the API dump and decode the statistics of the whole process, behind the lock that the writes of all
 * clients need. So looks never overlap; the pause after one is the caller's.
 */
export class Reader {
  readonly #api: DataplaneApi
  readonly #followers: Followers
  readonly #turn = new Turnstile()
  /** The process that answered last. */
  #last: ProcessInfo | undefined
  /** How many servers each backend was seen to have, in this process. */
  #sizes = { process: '', of: new Map<string, number>() }

  constructor(api: DataplaneApi, followers: Followers) {
    this.#api = api
    this.#followers = followers
  }

  /**
   * One look.
   *
   * @param refs - the servers of interest; what is in their backends besides is told by the statistics alone
   * @param everywhere - learns again which servers track which, from the rows of all backends: else once a process
   * @throws `UNREACHABLE` where the API can't reach HAProxy: its 404s and empty lists prove nothing then
   */
  view(
    refs: readonly MemberRef[] | 'all',
    ctx: CallContext,
    everywhere = false,
  ): Promise<RuntimeView> {
    return this.#turn.run(ctx.signal, async () => {
      let failure = ''
      for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
        const view = await this.#attempt(refs, ctx, everywhere)
        if (typeof view !== 'string') return view
        failure = view
      }
      throw new DrainableError('CONFLICT', `${this.#api.instance}: ${failure}; read again`, {
        provider: PROVIDER,
      })
    })
  }

  /** The process that answers at this moment. */
  async process(ctx: CallContext): Promise<ProcessInfo> {
    this.#last = await readProcess(this.#api, ctx)
    return this.#last
  }

  async #attempt(
    refs: readonly MemberRef[] | 'all',
    ctx: CallContext,
    everywhere: boolean,
  ): Promise<RuntimeView | string> {
    const api = this.#api
    const served = await api.served(ctx)
    const before = this.#last ?? (await this.process(ctx))
    const sampledAt = ctx.clock.now()
    const pools = refs === 'all' ? refs : new Set(refs.map(({ pool }) => pool))
    const wanted = everywhere || !this.#followers.know(nameOf(before))
    const only = !wanted && pools !== 'all' && pools.size === 1 ? [...pools][0] : undefined
    const read = async (): Promise<{ stats: Reply; list: ServerStats }> => {
      const stats = await this.#stats(served.paths.stats(only), ctx)
      const isWanted = (pool: string): boolean => pools === 'all' || pools.has(pool)
      return { stats, list: api.parse(stats, (text) => parseStats(text, isWanted)) }
    }
    const { stats, list } = await read()
    const rows = byServer(list.rows)
    if (typeof rows === 'string') return rows
    const sizes =
      this.#sizes.process === nameOf(before) ? this.#sizes.of : new Map<string, number>()
    const servers = await readServers(api, served, { refs, rows, sizes }, ctx)
    const doubtful = list.rows.filter((row) => isDoubtful(row, servers))
    if (doubtful.length > 0) {
      const later = (await read()).list.rows.filter(({ status }) => isUnresolved(status))
      const isLater = (row: StatsRow): boolean =>
        later.some(({ pool, member }) => pool === row.pool && member === row.member)
      if (!doubtful.every(isLater)) return 'the name of a server resolved while it was read'
    }
    const after = await this.process(ctx)
    if (!isSameProcess(before, after)) return 'HAProxy was reloaded while its servers were read'
    if (only === undefined) this.#followers.learn(nameOf(after), list.tracking)
    const { unresolved } = api
    const merged = merge(rows, servers, { process: nameOf(after), at: sampledAt, unresolved })
    if (typeof merged === 'string') return merged
    for (const [pool, members] of rows) sizes.set(pool, members.size)
    this.#sizes = { process: nameOf(after), of: sizes }
    return { served, sampledAt, info: after, pools: merged, configVersion: stats.configVersion }
  }

  /** Process info says in words that HAProxy does not answer. */
  async #stats(path: string, ctx: CallContext): Promise<Reply> {
    const reply = await this.#api.get(path, ctx).catch((error: unknown) => {
      throw isDrainableError(error, 'CALL_TIMEOUT') ? tooLarge(error) : error
    })
    if (reply.status >= 500) await this.process(ctx)
    if (reply.status === 200) return reply
    throw this.#api.toError(`GET ${path}`, reply)
  }
}

function tooLarge({ message }: DrainableError): DrainableError {
  const words = `${message}: the API reads the statistics of every server of HAProxy for it, about 0.3 ms for each; if there are thousands, raise callTimeout`
  return new DrainableError('CALL_TIMEOUT', words, { provider: PROVIDER })
}

/** The process that answers at this moment. */
export async function readProcess(api: DataplaneApi, ctx: CallContext): Promise<ProcessInfo> {
  const { paths } = await api.served(ctx)
  return api.parse(await api.read(paths.processInfo, ctx), parseProcessInfo)
}

function isSameProcess(before: ProcessInfo, after: ProcessInfo): boolean {
  return nameOf(before) === nameOf(after) && before.uptime <= after.uptime
}

/** By its statistics where they tell it: the API misreads states, and reads them at another moment. */
function verdictOf(row: StatsRow, server: RuntimeServer | undefined): Verdict {
  const told = judge(row, undefined)
  return told.doubt === undefined ? told : judge(row, server?.admin)
}

/** What is known of the own state of a server whose name does not resolve, where that is not shown. */
function known(verdict: Verdict, row: StatsRow, { process, at, unresolved }: Look): Verdict {
  if (!isUnresolved(row.status)) unresolved.forget(row)
  else if (verdict.own === 'drain') unresolved.drained(row, process, at)
  else if (verdict.hidden === true && unresolved.isReady(row, process, at)) {
    const { inherited = 'maint', setBy, doubt = '' } = verdict
    const words = `it was made ready here, and what is set since is not shown: ${doubt}`
    return { own: 'ready', inherited, ...(setBy === undefined ? {} : { setBy }), doubt: words }
  }
  return verdict
}

/** The process that was looked at, and when that was begun. */
interface Look {
  readonly process: string
  readonly at: number
  readonly unresolved: Unresolved
}

type Rows = Map<string, Map<string, StatsRow>>

/** By backend, then by server; a text if a server has two rows. */
function byServer(rows: readonly StatsRow[]): Rows | string {
  const pools: Rows = new Map()
  for (const row of rows) {
    const members = pools.get(row.pool) ?? new Map<string, StatsRow>()
    pools.set(row.pool, members)
    if (members.has(row.member)) return `two rows for ${row.pool}/${row.member}`
    members.set(row.member, row)
  }
  return pools
}

/** By backend: its servers; `missing` where the answer was that there is no such backend. */
type Servers = Map<string, ReadonlyMap<string, RuntimeServer> | 'missing'>

/**
 * Whether it reads like a drained server whose name does not resolve: also what a ready one reads like whose name was
 * found between the two sources.
 */
function isDoubtful({ status, pool, member }: StatsRow, servers: Servers): boolean {
  const list = servers.get(pool)
  if (list === undefined || list === 'missing') return false
  return isUnresolved(status) && list.get(member)?.admin === 'ready'
}

/** Up to so many backends of a look at everything are asked for their lists. */
const MOST_LISTS = 32

/**
 * The lists of those backends in which the statistics alone do not tell enough of a server, or have another number of
 * servers than before: an answer that was cut reads as a shorter one.
 */
async function readServers(
  api: DataplaneApi,
  served: Served,
  known: {
    readonly refs: readonly MemberRef[] | 'all'
    readonly rows: Rows
    readonly sizes: ReadonlyMap<string, number>
  },
  ctx: CallContext,
): Promise<Servers> {
  const { refs, rows, sizes } = known
  const isKnown = (pool: string): boolean =>
    sizes.get(pool) === rows.get(pool)?.size || (refs === 'all' && rows.size > MOST_LISTS)
  const wanted =
    refs === 'all'
      ? [...rows].flatMap(([pool, members]) =>
          [...members.keys()].map((member) => ({ pool, member })),
        )
      : refs
  const asked = new Set(
    wanted.flatMap(({ pool, member }) =>
      isKnown(pool) && isTold(rows.get(pool)?.get(member)) ? [] : [pool],
    ),
  )
  const servers: Servers = new Map()
  // one after the other: the API works them off one by one anyway
  for (const pool of [...asked].filter((name) => isName(name))) {
    const reply = await api.get(served.paths.servers(pool), ctx)
    const list = toServers(api, reply, pool)
    const named = list?.map((server) => [server.name, server] as const)
    servers.set(pool, named === undefined ? 'missing' : new Map(named))
  }
  return servers
}

/**
 * Whether its row tells all of a server: its own state, an address, and the weight that it was given, which a slow start
 * lowers. A row that is missing proves nothing: an answer that was cut reads as a shorter one.
 */
function isTold(row: StatsRow | undefined): boolean {
  return (
    row !== undefined &&
    judge(row, undefined).doubt === undefined &&
    splitAddress(row.address ?? '') !== undefined &&
    !row.startsSlowly
  )
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
function merge(rows: Rows, servers: Servers, look: Look): Map<string, Map<string, Found>> | string {
  const pools = new Map<string, Map<string, Found>>()
  for (const pool of new Set([...rows.keys(), ...servers.keys()])) {
    const listed = servers.get(pool)
    if (listed === 'missing') {
      if (!rows.has(pool)) continue
      return `backend ${pool} is in the statistics, but its servers are not there`
    }
    const members = new Map<string, Found>()
    pools.set(pool, members)
    for (const [member, row] of rows.get(pool) ?? []) {
      const server = listed?.get(member)
      if (listed !== undefined && server === undefined) {
        return `${pool}/${member} is in the statistics, but not among the servers`
      }
      const verdict = known(verdictOf(row, server), row, look)
      members.set(member, { row, server, verdict })
    }
    for (const member of listed?.keys() ?? []) {
      if (!members.has(member)) {
        const words = `${pool}/${member} is among the servers, but not in the statistics`
        return rows.has(pool) ? words : `${words}, which have none of a backend that is disabled`
      }
    }
  }
  return pools
}
