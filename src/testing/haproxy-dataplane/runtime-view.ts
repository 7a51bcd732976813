// HAProxy's replies as the API prints them.
import type { HaproxyCli } from './cli.js'
import type { Generation } from './generation.js'
import { Refusal, refuse } from './answer.js'

type Cell = string | number
type Json = Record<string, unknown>

/** HAProxy's CSV columns that the API passes on. */
const PASSED_ON = new Set(
  (
    'qcur qmax scur smax slim stot bin bout dreq dresp ereq econ eresp wretr wredis status weight act bck chkfail ' +
    'chkdown lastchg downtime qlimit pid iid sid throttle lbtot tracked rate rate_lim rate_max check_status ' +
    'check_code check_duration hrsp_1xx hrsp_2xx hrsp_3xx hrsp_4xx hrsp_5xx hrsp_other hanafail req_rate ' +
    'req_rate_max req_tot cli_abrt srv_abrt comp_in comp_out comp_byp comp_rsp lastsess last_chk last_agt qtime ' +
    'ctime rtime ttime agent_status agent_code agent_duration check_desc agent_desc check_rise check_fall ' +
    'check_health agent_rise agent_fall agent_health addr cookie mode algo conn_rate conn_rate_max conn_tot ' +
    'intercepted dcon dses'
  ).split(' '),
)
const WORDS = new Set(
  'status tracked check_status last_chk last_agt agent_status check_desc agent_desc addr cookie mode algo'.split(
    ' ',
  ),
)
const TYPES = ['frontend', 'backend', 'server'] as const

/** The API's words for an error of HAProxy. */
export function cliError(cli: HaproxyCli, line: string, severity: number, text: string): string {
  return `${cli.socket} [${severity}]  ${text} [${line}]`
}

/**
 * One line whose answer matters.
 *
 * @throws `Refusal` with the API's answer to an error of HAProxy
 */
export async function command(cli: HaproxyCli, line: string): Promise<string> {
  const reply = await cli.run(line)
  if (reply.severity !== undefined && reply.severity <= 3) {
    const message = cliError(cli, line, reply.severity, reply.text)
    if (/Already exists/.test(reply.text)) refuse(409, message)
    if (/No such (backend|server)/.test(reply.text)) refuse(404, message)
    refuse(500, message)
  }
  return reply.text
}

/** `runtime/info`: with status 200 also where HAProxy can't be reached. */
export async function processInfo(cli: HaproxyCli, generation: Generation): Promise<unknown> {
  const entry = await reachable(
    async () => ({ info: toInfo((await cli.run('show info')).text), runtimeAPI: cli.socket }),
    (error) => ({ error, runtimeAPI: cli.socket }),
  )
  return generation.tree === 'v2' ? [entry] : entry
}

/** `stats/native`: every call dumps everything, the filters come afterwards. */
export async function nativeStats(
  cli: HaproxyCli,
  generation: Generation,
  query: URLSearchParams,
): Promise<unknown> {
  const type = query.get('type')
  const name = query.get('name')
  const parent = query.get('parent')
  if (type !== null && !(TYPES as readonly string[]).includes(type)) {
    if (generation.chi) {
      const allowed = TYPES.map((name) => `"${name}"`).join()
      refuse(400, `type in query: value is not one of the allowed values [${allowed}]`)
    }
    refuse(422, 'type in query should be one of [frontend backend server]', 606)
  }
  if (name !== null && type === null) refuse(400, 'Type required when filtering by name')
  if (name !== null && type === 'server' && parent === null) {
    refuse(400, 'Parent backend required when filtering by server')
  }
  const runtimeAPI = generation.tree === 'v2' ? cli.socket : `${cli.socket}@1`
  const entry = await reachable(
    async () => {
      const rows = toRows((await cli.run('show stat')).text).filter(
        (row) =>
          type === null ||
          (row['type'] === type &&
            (name === null || row['name'] === name) &&
            (type !== 'server' || parent === null || row['backend_name'] === parent)),
      )
      return rows.length === 0 ? { runtimeAPI } : { runtimeAPI, stats: rows }
    },
    (error) => ({ error, runtimeAPI }),
  )
  const body = generation.tree === 'v2' ? [entry] : entry
  if ('error' in entry) throw new Refusal({ status: 500, body })
  return body
}

/** The servers of a backend, as `show servers state` tells; undefined where HAProxy has no such backend or can't be reached. */
export async function runtimeServers(
  cli: HaproxyCli,
  generation: Generation,
  backend: string,
): Promise<readonly Json[] | undefined> {
  return reachable(
    async () => {
      const reply = await cli.run(`show servers state ${backend}`)
      if (reply.severity !== undefined) return undefined
      const lines = reply.text.split('\n').filter((line) => line !== '' && line !== '1')
      if (lines.length === 0) return undefined
      return lines
        .filter((line) => !line.startsWith('#'))
        .map((line) => toServer(line.split(' '), generation))
    },
    () => undefined,
  )
}

/** Runs it; what HAProxy's absence throws becomes a value. */
async function reachable<T, F>(
  run: () => Promise<T>,
  failed: (words: string) => F,
): Promise<T | F> {
  try {
    return await run()
  } catch (error) {
    if (error instanceof Refusal) throw error
    return failed(error instanceof Error ? error.message : String(error))
  }
}

function toInfo(text: string): Json {
  // All that is left where HAProxy closed the socket without an answer
  const info: Json = { release_date: '0001-01-01' }
  for (const line of text.split('\n')) {
    const [, key = '', value = ''] = /^([^:]+): ?(.*)$/.exec(line) ?? []
    const name = INFO_NAMES[key]
    if (name === undefined) continue
    info[name] = /^-?\d+$/.test(value) ? Number(value) : value.replaceAll('/', '-')
  }
  return info
}

/** What `show info` calls them, and what the API calls them. */
const INFO_NAMES: Readonly<Record<string, string>> = {
  Version: 'version',
  Release_date: 'release_date',
  Nbthread: 'nbthread',
  Nbproc: 'processes',
  Process_num: 'process_num',
  Pid: 'pid',
  Uptime_sec: 'uptime',
  Memmax_MB: 'mem_max_mb',
  PoolAlloc_MB: 'pool_alloc_mb',
  PoolUsed_MB: 'pool_used_mb',
  PoolFailed: 'pool_failed',
  'Ulimit-n': 'ulimit_n',
  Maxsock: 'max_sock',
  Maxconn: 'max_conn',
  Hard_maxconn: 'hard_max_conn',
  CurrConns: 'curr_conns',
  CumConns: 'cum_conns',
  CumReq: 'cum_req',
  MaxSslConns: 'max_ssl_conns',
  CurrSslConns: 'curr_ssl_conns',
  CumSslConns: 'cum_ssl_conns',
  Maxpipes: 'max_pipes',
  PipesUsed: 'pipes_used',
  PipesFree: 'pipes_free',
  ConnRate: 'conn_rate',
  ConnRateLimit: 'conn_rate_limit',
  MaxConnRate: 'max_conn_rate',
  SessRate: 'sess_rate',
  SessRateLimit: 'sess_rate_limit',
  MaxSessRate: 'max_sess_rate',
  SslRate: 'ssl_rate',
  SslRateLimit: 'ssl_rate_limit',
  MaxSslRate: 'max_ssl_rate',
  Tasks: 'tasks',
  Run_queue: 'run_queue',
  Idle_pct: 'idle_pct',
  node: 'node',
  Stopping: 'stopping',
  Jobs: 'jobs',
  Unstoppable_Jobs: 'unstoppable',
  Listeners: 'listeners',
  ActivePeers: 'active_peers',
  ConnectedPeers: 'connected_peers',
  DroppedLogs: 'dropped_logs',
  BusyPolling: 'busy_polling',
  FailedResolutions: 'failed_resolutions',
  TotalBytesOut: 'total_bytes_out',
  BytesOutRate: 'bytes_out_rate',
  CompressBpsIn: 'compress_bps_in',
  CompressBpsOut: 'compress_bps_out',
  CompressBpsRateLim: 'compress_bps_rate_lim',
}

function toRows(text: string): Json[] {
  const [head = '', ...lines] = text.split('\n')
  const columns = parseCsv(head.replace(/^# /, ''))
  const at = (name: string): number => columns.indexOf(name)
  return lines
    .filter((line) => line !== '')
    .flatMap((line) => {
      const cells = parseCsv(line)
      const type = TYPES[Number(cells[at('type')])]
      if (type === undefined) return []
      const proxy = cells[at('pxname')] ?? ''
      const stats: Record<string, Cell> = {}
      for (const [i, column] of columns.entries()) {
        const cell = cells[i] ?? ''
        if (cell === '' || !PASSED_ON.has(column)) continue
        stats[column] = WORDS.has(column) ? cell : Number(cell)
      }
      const name = type === 'server' ? (cells[at('svname')] ?? '') : proxy
      return [{ ...(type === 'server' ? { backend_name: proxy } : {}), name, type, stats }]
    })
}

function parseCsv(line: string): string[] {
  const cells: string[] = []
  for (const match of line.matchAll(/(?:"((?:[^"]|"")*)"|([^,]*))(?:,|$)/g)) {
    cells.push(match[1]?.replaceAll('""', '"') ?? match[2] ?? '')
  }
  return cells
}

/** HAProxy's mask is printed in decimal, and read here as the API reads it: as if it were hexadecimal. */
export function adminState(mask: string): 'ready' | 'drain' | 'maint' {
  const misread = Number.parseInt(mask, 16)
  if ((misread & 0x23) !== 0) return 'maint'
  return (misread & 0x18) !== 0 ? 'drain' : 'ready'
}

function toServer(f: readonly string[], generation: Generation): Json {
  const number = (i: number): number => Number(f[i] ?? 0)
  const op = { '0': 'down', '3': 'stopping' }[f[5] ?? ''] ?? 'up'
  const common = {
    address: f[4],
    admin_state: adminState(f[6] ?? '0'),
    id: f[2],
    name: f[3],
    operational_state: op,
    port: number(18),
  }
  if (!generation.chi) return common
  return {
    ...common,
    agent_addr: f[23] ?? '-',
    agent_port: number(24),
    agent_state: number(14),
    backend_forced_id: number(15),
    backend_id: number(0),
    backend_name: f[1],
    check_addr: f[22] ?? '-',
    check_health: number(12),
    check_port: number(21),
    check_result: number(11),
    check_state: number(13),
    check_status: number(10),
    forced_id: number(16),
    fqdn: f[17],
    iweight: number(8),
    last_time_change: number(9),
    srvrecord: f[19] ?? '-',
    use_ssl: f[20] === '1',
    uweight: number(7),
    weight: number(7),
  }
}
