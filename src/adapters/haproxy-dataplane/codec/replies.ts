// Replies of the HAProxy Data Plane API: JSON text in, values out.
//
// - v2 answers process things as a list, v3 as one object. A list has one entry per process of `nbproc`, which HAProxy
//   refuses since 2.5, so it has one (read in 2.9.25; HAProxy 2.6.12 does not start with it).
// - A statistics reply without the key "stats" is a good one: no row matched. An absent field is
//   not a zero: HAProxy prints zeros, it leaves out what it does not know.
// - An unreachable HAProxy is a 200 with {"error"} from runtime/info, a 404 from runtime/..., an
//   empty list in v2, and a 500 with another body shape from stats: only runtime/info tells.
// - Unknown keys and status texts occur: the published schema does not know "DRAIN".
import * as z from 'zod/mini'
import { type AgentWord, toAgentWord } from '../../../kit/haproxy/agents.js'
import type { CheckCounts } from '../../../kit/haproxy/checks.js'
import type { Tracking } from '../../../kit/haproxy/followers.js'
import { isAtLeast, parseVersion } from '../../../kit/version.js'
import { isIP } from '../../../provider/builtins.js'
import { nonEmpty, whole } from '../../../provider/option-schemas.js'
import { quote } from '../../../provider/quote.js'
import { DrainableError } from '../../../provider/error.js'
import { count, decode, malformed, oneOrMany, PROVIDER } from './decode.js'
import type { Tree } from './paths.js'

/** What answers. */
export interface Generation {
  readonly tree: Tree
  /** Such as `3.2.13`; what it says where that is no version (`dev.dirty`). */
  readonly version: string
  /** Whether the runtime PUT understands `weight` (3.4, and 3.3 from 3.3.6 on). */
  readonly setsWeight: boolean
}

/** One HAProxy process, as `runtime/info` tells of it. */
export interface ProcessInfo {
  readonly node: string
  readonly pid: number
  /** Whole seconds since it started. */
  readonly uptime: number
  readonly version: string
}

/** Names the process that answered. */
export function nameOf({ node, pid }: ProcessInfo): string {
  return `${node}/${pid}`
}

/** One row of `stats/native` of type server. */
export interface StatsRow {
  readonly pool: string
  readonly member: string
  /** Free text, such as `UP 1/3`, `DRAIN`, `MAINT (via web/web1)`. */
  readonly status: string
  readonly scur: number
  readonly qcur: number
  /** `stot` + `wretr`: what started work here, and what is about to start it again. */
  readonly arrivals: number
  /** `wretr`: how often a connection was tried again. */
  readonly retries: number
  /** It has a limit (`slim`), or had a queue (`qmax`): a request can be on its way out of the queue, in no count. */
  readonly mayHide: boolean
  /** `http`, `tcp`, `syslog`; undefined if the release does not tell. */
  readonly mode: string | undefined
  readonly weight: number
  /** In its slow start (`throttle`): its weight is less than the one it was given. */
  readonly startsSlowly: boolean
  readonly backup: boolean
  readonly address: string | undefined
  /** `backend/server` whose checks and state this one follows. */
  readonly tracked: string | undefined
  readonly check: CheckCounts | undefined
  /** Its agent's, and what that said. */
  readonly agent: (CheckCounts & AgentWord) | undefined
}

/** Statistics of HAProxy's servers. */
export interface ServerStats {
  readonly rows: readonly StatsRow[]
  /** Of every backend in the reply, wanted or not. */
  readonly tracking: readonly Tracking[]
}

/** One server as `runtime/...servers` tells of it. */
export interface RuntimeServer {
  readonly name: string
  readonly address: string
  /** Absent where the row does not tell it: that is not port 0. */
  readonly port?: number
  /** A lossy digest of HAProxy's mask: one source, not reliable alone. */
  readonly admin: 'ready' | 'drain' | 'maint' | undefined
  readonly weight: number | undefined
  /** The weight that it began with, as 3.4 tells. */
  readonly initialWeight: number | undefined
}

/** How a reload stands. */
export interface ReloadStatus {
  readonly status: 'in_progress' | 'succeeded' | 'failed' | 'unknown'
  readonly response: string
}

const infoSchema = z.looseObject({ api: z.looseObject({ version: z.string() }) })

/** The reply of `GET /vN/info`. */
export function parseGeneration(tree: Tree, text: string): Generation {
  const { api } = decode(infoSchema, text, `GET /${tree}/info`)
  const version = parseVersion(api.version)
  // a plain build of the API says ` dev.dirty`: what needs the version goes without it
  if (version === undefined) {
    return { tree, version: quote(api.version.trim(), 40), setsWeight: false }
  }
  const setsWeight = tree === 'v3' && isAtLeast(version, 3, 3, 6)
  return { tree, version: `${version.major}.${version.minor}.${version.patch}`, setsWeight }
}

const processSchema = z.looseObject({
  error: z.exactOptional(z.string()),
  info: z.exactOptional(
    z.looseObject({
      pid: z.exactOptional(whole(1)),
      uptime: z.exactOptional(whole(0)),
      node: z.exactOptional(z.string()),
      version: z.exactOptional(z.string()),
    }),
  ),
})

/** What is said of a process that closed the socket without a word: nothing but zeros (2.9.25 to 3.2.13). */
const NOTHING = 'HAProxy closed its socket without an answer, as it does while it is reloaded'

/**
 * The reply of `runtime/info`.
 *
 * @throws `UNREACHABLE` where the API says, with status 200, that it cannot reach HAProxy; `UNSUPPORTED` for several
 * processes
 */
export function parseProcessInfo(text: string): ProcessInfo {
  const { info, error } = ofOneProcess(processSchema, text, 'runtime/info')
  if (info === undefined || error !== undefined) {
    throw haproxyUnreachable(error ?? 'no process information')
  }
  const { node = '', pid, uptime, version } = info
  if (pid !== undefined && uptime !== undefined) {
    return { node, pid, uptime, version: version ?? 'unknown' }
  }
  if (pid === undefined && uptime === undefined && version === undefined) {
    throw haproxyUnreachable(NOTHING)
  }
  throw malformed('runtime/info', 'a pid and an uptime', text)
}

/** What a reply says of the process behind the API. One of several can hold work that the others don't show. */
function ofOneProcess<T>(schema: z.ZodMiniType<T>, text: string, what: string): T {
  const [entry, ...others] = decode(oneOrMany(schema), text, what)
  if (entry === undefined) throw haproxyUnreachable(`${what} knows no process`)
  if (others.length === 0) return entry
  throw new DrainableError(
    'UNSUPPORTED',
    `${what} tells of ${others.length + 1} HAProxy processes behind the Data Plane API: HAProxy with nbproc is not supported, use 2.6 or newer, which has one process`,
    { provider: PROVIDER },
  )
}

const statsSchema = z.looseObject({
  runtimeAPI: z.string(),
  error: z.exactOptional(z.string()),
  stats: z.exactOptional(z.array(z.unknown())),
})
const rowHeadSchema = z.looseObject({
  type: nonEmpty(),
  name: nonEmpty(),
  backend_name: z.exactOptional(nonEmpty()),
  stats: z.looseObject({}),
})
const rowSchema = z.looseObject({
  status: z.string(),
  scur: count,
  qcur: count,
  stot: count,
  wretr: count,
  slim: z.exactOptional(count),
  qmax: z.exactOptional(count),
  mode: z.exactOptional(z.string()),
  weight: count,
  throttle: z.exactOptional(count),
  bck: z.exactOptional(count),
  addr: z.exactOptional(z.string()),
  tracked: z.exactOptional(z.string()),
  check_status: z.exactOptional(z.string()),
  check_health: z.exactOptional(count),
  check_rise: z.exactOptional(count),
  check_fall: z.exactOptional(count),
  agent_status: z.exactOptional(z.string()),
  last_agt: z.exactOptional(z.string()),
  agent_health: z.exactOptional(count),
  agent_rise: z.exactOptional(count),
  agent_fall: z.exactOptional(count),
})

/**
 * The reply of `stats/native`: the rows of the servers.
 *
 * @param wanted - which backends' rows are of interest; the others are not looked into
 */
export function parseStats(text: string, wanted: (pool: string) => boolean): ServerStats {
  const { error, stats = [] } = ofOneProcess(statsSchema, text, 'stats/native')
  if (error !== undefined) throw haproxyUnreachable(error)
  const rows: StatsRow[] = []
  const tracking: Tracking[] = []
  for (const item of stats) {
    const head = rowHeadSchema.safeParse(item)
    if (!head.success) throw malformed('stats/native', 'rows with type, name and stats', item)
    const pool = head.data.backend_name
    if (head.data.type !== 'server') continue
    if (pool === undefined) throw malformed('stats/native', 'a server with its backend_name', item)
    const { tracked } = head.data.stats
    if (typeof tracked === 'string' && tracked !== '') {
      tracking.push({ pool, member: head.data.name, tracked })
    }
    if (!wanted(pool)) continue
    rows.push(toRow(pool, head.data.name, head.data.stats))
  }
  return { rows, tracking }
}

function toRow(pool: string, member: string, stats: unknown): StatsRow {
  const parsed = rowSchema.safeParse(stats)
  if (!parsed.success) {
    const field = parsed.error.issues[0]?.path.join('.') ?? 'a field'
    throw malformed('stats/native', `${field} in the row of ${pool}/${member}`, stats)
  }
  const row = parsed.data
  const agent = toCheck(row.agent_status, row.agent_health, row.agent_rise, row.agent_fall)
  return {
    pool,
    member,
    status: row.status,
    scur: row.scur,
    qcur: row.qcur,
    arrivals: row.stot + row.wretr,
    retries: row.wretr,
    mayHide: (row.slim ?? 0) + (row.qmax ?? 0) > 0,
    mode: row.mode,
    weight: row.weight,
    startsSlowly: row.throttle !== undefined && row.throttle < 100,
    backup: row.bck === 1,
    address: row.addr,
    tracked: row.tracked === '' ? undefined : row.tracked,
    check: toCheck(row.check_status, row.check_health, row.check_rise, row.check_fall),
    agent: agent && { ...agent, ...toAgentWord(agent.status, row.last_agt ?? '') },
  }
}

function toCheck(
  status: string | undefined,
  health: number | undefined,
  rise: number | undefined,
  fall: number | undefined,
): CheckCounts | undefined {
  if (health === undefined || rise === undefined || fall === undefined) return undefined
  return { status: status ?? '', health, rise, fall }
}

/** As HAProxy prints it: an IP address, the path of a socket, or nothing where a name does not resolve. */
const address = z
  .string()
  .check(
    z.refine(
      (text) => /^[-/@]|^$|^[a-z]+@/.test(text) || isIP(text) !== 0,
      'expected an IP address',
    ),
  )

const serverSchema = z.looseObject({
  name: nonEmpty(),
  address,
  port: z.exactOptional(z.nullable(whole(0, 65_535))),
  admin_state: z.exactOptional(z.string()),
  uweight: z.exactOptional(count),
  iweight: z.exactOptional(count),
})

/** The reply of `runtime/...servers/S`. */
export function parseRuntimeServer(text: string): RuntimeServer {
  return toRuntimeServer(decode(serverSchema, text, 'runtime server'))
}

/** The reply of `runtime/...servers`. */
export function parseRuntimeServers(text: string): readonly RuntimeServer[] {
  return decode(z.array(serverSchema), text, 'runtime servers').map(toRuntimeServer)
}

function toRuntimeServer(server: z.output<typeof serverSchema>): RuntimeServer {
  const admin = server.admin_state
  return {
    name: server.name,
    address: server.address,
    ...(typeof server.port === 'number' ? { port: server.port } : {}),
    admin: admin === 'ready' || admin === 'drain' || admin === 'maint' ? admin : undefined,
    weight: server.uweight,
    initialWeight: server.iweight,
  }
}

const reloadSchema = z.looseObject({ status: z.string(), response: z.exactOptional(z.string()) })

/** The reply of `reloads/ID`. */
export function parseReload(text: string): ReloadStatus {
  const { status, response } = decode(reloadSchema, text, 'reload')
  const known = status === 'in_progress' || status === 'succeeded' || status === 'failed'
  return { status: known ? status : 'unknown', response: response ?? '' }
}

const reloadsSchema = z.nullable(
  z.array(
    z.looseObject({
      id: z.exactOptional(z.string()),
      status: z.string(),
    }),
  ),
)

/** Reloads by what became of them. One under way may have no id; of those that succeeded, the last is listed. */
export interface Reloads {
  readonly pending: readonly string[]
  readonly failed: readonly string[]
  readonly succeeded: readonly string[]
}

/** The reply of `reloads`. */
export function parseReloads(text: string): Reloads {
  const reloads = decode(reloadsSchema, text, 'reloads') ?? []
  const ids = (wanted: string): readonly string[] =>
    reloads.filter(({ status }) => status === wanted).map(({ id = '' }) => id)
  return { pending: ids('in_progress'), failed: ids('failed'), succeeded: ids('succeeded') }
}

/** The id in the reply of `POST transactions`. */
export function parseTransaction(text: string): string {
  return decode(z.looseObject({ id: nonEmpty() }), text, 'transaction').id
}

const errorSchema = z.looseObject({ message: z.string() })
const otherErrorSchema = z.looseObject({ error: z.string() })

/**
 * The product's own words in an error reply, whatever its shape: one line, bounded.
 *
 * @param clean - what is done to the words before they are cut: half a secret is one too
 */
export function parseErrorWords(
  text: string,
  clean: (words: string) => string = (words) => words,
): string {
  let body: unknown
  try {
    body = JSON.parse(text)
  } catch {
    return quote(clean(text))
  }
  const first: unknown = Array.isArray(body) ? body[0] : body
  const message = errorSchema.safeParse(first)
  if (message.success) return quote(clean(ownWords(message.data.message.slice(0, 4_000))))
  const other = otherErrorSchema.safeParse(first)
  return quote(clean(other.success ? other.data.error : text))
}

/**
 * HAProxy's own words where its check of a new configuration failed. The API has them behind the id of a transaction and the
 * name of a temporary file, too long for a message to reach them: `msg="[<file>:<line>] <words>"`, with `config` before the
 * bracket on 2.6 (2.9.25 to 3.4.0).
 */
function ownWords(message: string): string {
  const [, words] = /^msg="(?:(?:config )?\[[^\]]*\] )?(.+)"$/m.exec(message) ?? []
  return words ?? message
}

/**
 * Whether an error reply means "no such backend or server". 2.9 and 3.0 say so with status 500, so
 * here the words decide. The same is said when HAProxy can't be reached: ask `runtime/info` too.
 */
export function saysNotFound(status: number, words: string): boolean {
  return status === 404 || (status === 500 && /no data for [^:]{0,1000}: not found/.test(words))
}

/** What is thrown where the API answers, but HAProxy behind it does not. */
export function haproxyUnreachable(words: string): DrainableError {
  return new DrainableError(
    'UNREACHABLE',
    `HAProxy behind the Data Plane API can't be reached: '${quote(words)}'`,
    { provider: PROVIDER },
  )
}
