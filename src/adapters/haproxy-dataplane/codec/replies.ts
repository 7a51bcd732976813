// Replies of the HAProxy Data Plane API: JSON text in, values out.
//
// - v2 answers process things as a list with one entry per HAProxy process, v3 as one object.
// - v2 wraps configuration in {"_version", "data"}; v3 answers the bare value, and the version comes
//   in the header Configuration-Version, which every reply of either tree carries.
// - A statistics reply without the key "stats" is a good one: no row matched. An absent field is
//   not a zero: HAProxy prints zeros, it leaves out what it does not know.
// - An unreachable HAProxy is a 200 with {"error"} from runtime/info, a 404 from runtime/..., an
//   empty list in v2, and a 500 with another body shape from stats: only runtime/info tells.
// - Unknown keys and status texts occur: the published schema does not know "DRAIN".
import { isIP } from 'node:net'
import { z } from 'zod'
import { parseJson } from '../../../kit/json.js'
import { isAtLeast, parseVersion } from '../../../kit/version.js'
import { quote } from '../../../provider/quote.js'
import { DrainableError } from '../../../provider/error.js'
import type { Tree } from './paths.js'

const PROVIDER = 'haproxy-dataplane'

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
  readonly weight: number
  readonly backup: boolean
  readonly address: string | undefined
  /** `backend/server` whose checks and state this one follows. */
  readonly tracked: string | undefined
  readonly check: Check | undefined
  /** Seconds since it last went up or down. */
  readonly lastChange: number | undefined
}

/** Where a server's health check stands; its agent check, where it has no other. */
export interface Check {
  readonly health: number
  readonly rise: number
  readonly fall: number
}

/** Statistics of one HAProxy process. */
export interface ProcessStats {
  readonly rows: readonly StatsRow[]
}

/** One server as `runtime/...servers` tells of it. */
export interface RuntimeServer {
  readonly name: string
  readonly address: string
  readonly port: number
  /** A lossy digest of HAProxy's mask: one witness, not the truth. */
  readonly admin: 'ready' | 'drain' | 'maint' | undefined
  readonly weight: number | undefined
}

/** A configuration value with the version it was read at. */
export interface Versioned<T> {
  readonly version: number | undefined
  readonly data: T
}

/** A server line as the API prints it: written back whole, so every key is kept. */
export type ConfigServer = Readonly<Record<string, unknown>> & { readonly name: string }

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
  error: z.string().exactOptional(),
  info: z
    .looseObject({
      pid: z.int().min(1),
      uptime: z.int().min(0),
      node: z.string().exactOptional(),
      version: z.string().exactOptional(),
    })
    .exactOptional(),
})

/**
 * The reply of `runtime/info`: one entry per HAProxy process.
 *
 * @throws `UNREACHABLE` where the API says, with status 200, that it cannot reach HAProxy
 */
export function parseProcessInfo(text: string): readonly ProcessInfo[] {
  return decode(oneOrMany(processSchema), text, 'runtime/info').map((entry) => {
    if (entry.info !== undefined && entry.error === undefined) {
      return {
        node: entry.info.node ?? '',
        pid: entry.info.pid,
        uptime: entry.info.uptime,
        version: entry.info.version ?? 'unknown',
      }
    }
    throw haproxyUnreachable(entry.error ?? 'no process information')
  })
}

const statsSchema = z.looseObject({
  runtimeAPI: z.string(),
  error: z.string().exactOptional(),
  stats: z.array(z.unknown()).exactOptional(),
})
const rowHeadSchema = z.looseObject({
  type: z.string().min(1),
  name: z.string().min(1),
  backend_name: z.string().min(1).exactOptional(),
  stats: z.looseObject({}),
})
const count = z.int().min(0)
const rowSchema = z.looseObject({
  status: z.string(),
  scur: count,
  qcur: count,
  stot: count,
  wretr: count,
  weight: count,
  bck: count.exactOptional(),
  addr: z.string().exactOptional(),
  tracked: z.string().exactOptional(),
  lastchg: count.exactOptional(),
  check_health: count.exactOptional(),
  check_rise: count.exactOptional(),
  check_fall: count.exactOptional(),
  agent_health: count.exactOptional(),
  agent_rise: count.exactOptional(),
  agent_fall: count.exactOptional(),
})

/**
 * The reply of `stats/native`: per HAProxy process the rows of its servers.
 *
 * @param wanted - which backends' rows are of interest; the others are not looked into
 */
export function parseStats(
  text: string,
  wanted: (pool: string) => boolean,
): readonly ProcessStats[] {
  return decode(oneOrMany(statsSchema), text, 'stats/native').map((entry) => {
    if (entry.error !== undefined) throw haproxyUnreachable(entry.error)
    const rows: StatsRow[] = []
    for (const item of entry.stats ?? []) {
      const head = rowHeadSchema.safeParse(item)
      if (!head.success) throw malformed('stats/native', 'rows with type, name and stats', item)
      const pool = head.data.backend_name
      if (head.data.type !== 'server') continue
      if (pool === undefined)
        throw malformed('stats/native', 'a server with its backend_name', item)
      if (!wanted(pool)) continue
      rows.push(toRow(pool, head.data.name, head.data.stats))
    }
    return { rows }
  })
}

function toRow(pool: string, member: string, stats: unknown): StatsRow {
  const parsed = rowSchema.safeParse(stats)
  if (!parsed.success) {
    const field = parsed.error.issues[0]?.path.join('.') ?? 'a field'
    throw malformed('stats/native', `${field} in the row of ${pool}/${member}`, stats)
  }
  const row = parsed.data
  return {
    pool,
    member,
    status: row.status,
    scur: row.scur,
    qcur: row.qcur,
    arrivals: row.stot + row.wretr,
    weight: row.weight,
    backup: row.bck === 1,
    address: row.addr,
    tracked: row.tracked === '' ? undefined : row.tracked,
    check:
      toCheck(row.check_health, row.check_rise, row.check_fall) ??
      toCheck(row.agent_health, row.agent_rise, row.agent_fall),
    lastChange: row.lastchg,
  }
}

function toCheck(
  health: number | undefined,
  rise: number | undefined,
  fall: number | undefined,
): Check | undefined {
  if (health === undefined || rise === undefined || fall === undefined) return undefined
  return { health, rise, fall }
}

/** As HAProxy prints it: an IP address, the path of a socket, or nothing where a name does not resolve. */
const address = z
  .string()
  .refine((text) => /^[-/@]|^$|^[a-z]+@/.test(text) || isIP(text) !== 0, 'expected an IP address')

const serverSchema = z.looseObject({
  name: z.string().min(1),
  address,
  port: z.int().min(0).max(65_535).nullable().exactOptional(),
  admin_state: z.string().exactOptional(),
  uweight: count.exactOptional(),
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
    port: server.port ?? 0,
    admin: admin === 'ready' || admin === 'drain' || admin === 'maint' ? admin : undefined,
    weight: server.uweight,
  }
}

const configServerSchema = z.looseObject({ name: z.string().min(1) })

/** The reply of `configuration/...servers/S`. */
export function parseConfigServer(
  tree: Tree,
  text: string,
  header: string | undefined,
): Versioned<ConfigServer> {
  return versioned(tree, configServerSchema, text, header, 'configuration server')
}

/** The reply of `configuration/...servers`. */
export function parseConfigServers(
  tree: Tree,
  text: string,
  header: string | undefined,
): Versioned<readonly ConfigServer[]> {
  return versioned(tree, z.array(configServerSchema), text, header, 'configuration servers')
}

/** The reply of `configuration/version`. */
export function parseConfigVersion(text: string): number {
  return decode(z.int(), text, 'configuration version')
}

const sectionSchema = z.looseObject({
  name: z.string().exactOptional(),
  from: z.string().nullable().exactOptional(),
  default_server: z.looseObject({}).nullable().exactOptional(),
})

/** What a backend, or a defaults section, sets for servers. */
export interface Section {
  readonly name: string | undefined
  /** The defaults section that applies to it. */
  readonly from: string | undefined
  readonly defaultServer: Readonly<Record<string, unknown>>
}

/** A reply about a backend or about defaults sections. */
export function parseSections(tree: Tree, text: string): readonly Section[] {
  const { data } = versioned(
    tree,
    oneOrMany(sectionSchema),
    text,
    undefined,
    'configuration section',
  )
  return data.map(({ name, from, default_server: settings }) => ({
    name,
    from: from ?? undefined,
    defaultServer: settings ?? {},
  }))
}

const globalSchema = z.looseObject({ hard_stop_after: count.nullable().exactOptional() })

/** `hard-stop-after` in the reply of `configuration/global`, in milliseconds; undefined where it is not set. */
export function parseHardStopAfter(tree: Tree, text: string): number | undefined {
  const { data } = versioned(tree, globalSchema, text, undefined, 'configuration global')
  return data.hard_stop_after ?? undefined
}

const reloadSchema = z.looseObject({ status: z.string(), response: z.string().exactOptional() })

/** The reply of `reloads/ID`. */
export function parseReload(text: string): ReloadStatus {
  const { status, response } = decode(reloadSchema, text, 'reload')
  const known = status === 'in_progress' || status === 'succeeded' || status === 'failed'
  return { status: known ? status : 'unknown', response: response ?? '' }
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
  if (message.success) return quote(clean(message.data.message))
  const other = otherErrorSchema.safeParse(first)
  return quote(clean(other.success ? other.data.error : text))
}

/**
 * Whether an error reply means "no such backend or server". 2.9 and 3.0 say so with status 500, so
 * here the words decide. The same is said when HAProxy can't be reached: ask `runtime/info` too.
 */
export function saysNotFound(status: number, words: string): boolean {
  return status === 404 || (status === 500 && /no data for [^:]{0,1000}: not found/.test(words))
}

/** What is thrown where a reply is not what it must be. */
export function malformed(what: string, expected: string, found: unknown): DrainableError {
  const shown = typeof found === 'string' ? found : JSON.stringify(found)
  return new DrainableError(
    'MALFORMED_REPLY',
    `${what}: expected ${expected}, found '${quote(shown)}'`,
    { provider: PROVIDER },
  )
}

/** What is thrown where the API answers, but HAProxy behind it does not. */
export function haproxyUnreachable(words: string): DrainableError {
  return new DrainableError(
    'UNREACHABLE',
    `HAProxy behind the Data Plane API can't be reached: '${quote(words)}'`,
    { provider: PROVIDER },
  )
}

function versioned<T>(
  tree: Tree,
  schema: z.ZodType<T>,
  text: string,
  header: string | undefined,
  what: string,
): Versioned<T> {
  if (tree === 'v2') {
    const wrapped = decode(
      z.looseObject({ _version: z.int().exactOptional(), data: schema }),
      text,
      what,
    )
    return { version: wrapped._version, data: wrapped.data }
  }
  const version = Number.parseInt(header ?? '', 10)
  return { version: Number.isNaN(version) ? undefined : version, data: decode(schema, text, what) }
}

function oneOrMany<T>(schema: z.ZodType<T>): z.ZodType<readonly T[]> {
  return z.union([z.array(schema), schema.transform((one) => [one])])
}

function decode<T>(schema: z.ZodType<T>, text: string, what: string): T {
  const json = parseJson(text, { provider: PROVIDER, what })
  const parsed = schema.safeParse(json.value ?? null)
  if (parsed.success) return parsed.data
  const path = parsed.error.issues[0]?.path.join('.')
  throw malformed(what, path ? `a usable ${path}` : 'another shape', text)
}
