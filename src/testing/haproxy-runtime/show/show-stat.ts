import type { Backend } from '../process/backend.js'
import type { FrontendConfig, Level, Series } from '../options.js'
import type { Server } from '../process/server.js'
import { BACKEND_ZEROS, COLUMNS, FRONTEND_ZEROS, SERVER_ZEROS } from './stat-columns.js'
import { formatJson, formatTyped } from './stat-forms.js'
import type { StatRow } from './stat-row.js'
import type { Worker } from '../process/worker.js'

type Row = Readonly<Record<string, string | number | undefined>>

/** Bits of the second argument. */
const FRONTEND = 1
const BACKEND = 2
const SERVER = 4

/** `show stat [<proxy> <type> <server id>] [up|no-maint] [typed|json]`: with fewer than all three, everything. */
export function showStat(worker: Worker, args: readonly string[], level: Level): string {
  const columns = COLUMNS[worker.config.version]
  const filter = args.length >= 3 ? readFilter(worker, args) : EVERYTHING
  if (filter === undefined) return 'No such proxy.\n'
  const rows = readRows(worker, filter, new Set(args), level)
  if (args.includes('json')) return formatJson(rows, columns)
  if (args.includes('typed')) return formatTyped(rows, columns)
  const lines = [[...columns, ''], ...rows.map(({ values }) => [...values, ''])]
  return `# ${lines.map((line) => `${line.join(',')}\n`).join('')}`
}

function readRows(
  worker: Worker,
  filter: Filter,
  words: ReadonlySet<string>,
  level: Level,
): readonly StatRow[] {
  const { version } = worker.config
  const rows: StatRow[] = []
  const add = (
    object: StatRow['object'],
    iid: number,
    sid: number,
    row: Row,
    zeros: ReadonlySet<string>,
  ): void => {
    // By the level of the socket, not of the moment.
    const legend: Row = level === 'user' ? { addr: '', cookie: '', algo: '' } : {}
    const fields = { ...row, ...legend }
    const values = COLUMNS[version].map((name) => fields[name] ?? (zeros.has(name) ? 0 : ''))
    rows.push({ object, iid, sid, values })
  }
  const wanted = (iid: number, type: number): boolean =>
    (filter.iid < 0 || filter.iid === iid) && (filter.type & type) !== 0
  for (const frontend of worker.config.frontends) {
    const iid = worker.frontendId(frontend.name)
    if (!wanted(iid, FRONTEND)) continue
    add('Frontend', iid, 0, frontendRow(worker, frontend, iid), FRONTEND_ZEROS)
  }
  for (const backend of worker.backends) {
    for (const server of backend.servers) {
      if (!wanted(backend.id, SERVER)) continue
      // The id of a server is one of servers alone: the row of its backend comes along (2.6 to 3.4).
      if (filter.sid >= 0 && filter.sid !== server.id) continue
      if (words.has('up') && server.operation === 0) continue
      if (words.has('no-maint') && server.inMaint) continue
      const row = serverRow(backend, server, version)
      add('Server', backend.id, server.id, row, SERVER_ZEROS)
    }
    if (!wanted(backend.id, BACKEND)) continue
    const counted = words.has('up') || words.has('no-maint')
    add('Backend', backend.id, 0, backendRow(backend, counted), BACKEND_ZEROS)
  }
  return rows
}

interface Filter {
  readonly iid: number
  readonly type: number
  readonly sid: number
}

const EVERYTHING: Filter = { iid: -1, type: -1, sid: -1 }

/** A name is looked for before a number, and frontends before backends, whatever the type asked for. */
function readFilter(worker: Worker, args: readonly string[]): Filter | undefined {
  const [proxy = '', type = '', sid = ''] = args
  const front = worker.config.frontends.find(({ name }) => name === proxy)
  const named = front ? worker.frontendId(front.name) : worker.backend(proxy)?.id
  const iid = named ?? toInteger(proxy)
  return iid === 0 ? undefined : { iid, type: toInteger(type), sid: toInteger(sid) }
}

/** As C reads a number: what is none is 0. */
function toInteger(text: string): number {
  return Number(/^-?\d+/.exec(text)?.[0] ?? 0)
}

function ago(at: number): number {
  return Math.max(0, Math.floor((Date.now() - at) / 1_000))
}

function serverRow(backend: Backend, server: Server, version: Series): Row {
  const { counters, config } = server
  const { check } = config
  const http = backend.mode === 'http'
  const idle = server.pooled()
  const used = http ? server.sessions.size : 0
  const [h1, h2, h3, h4, h5, other] = counters.hrsp
  return {
    pxname: backend.name,
    svname: server.name,
    qcur: server.queue.length,
    qmax: counters.qmax,
    scur: server.sessions.size,
    smax: counters.smax,
    slim: server.maxconn,
    stot: counters.stot,
    bin: counters.bin,
    bout: counters.bout,
    dresp: 0,
    econ: counters.econ,
    eresp: 0,
    wretr: counters.wretr,
    wredis: counters.wredis,
    status: server.status,
    weight: server.weight,
    act: config.backup ? 0 : 1,
    bck: config.backup ? 1 : 0,
    ...(check && { chkfail: counters.chkfail, chkdown: counters.chkdown, downtime: 0 }),
    lastchg: ago(server.changedAt),
    pid: 1,
    iid: backend.id,
    sid: server.id,
    lbtot: counters.stot,
    tracked: config.track,
    type: 2,
    rate: 0,
    rate_max: counters.smax,
    ...(check && !server.inMaint && server.checking && checkColumns(server)),
    ...(http && {
      ...{ hrsp_1xx: h1, hrsp_2xx: h2, hrsp_3xx: h3, hrsp_4xx: h4, hrsp_5xx: h5 },
      ...{ hrsp_other: other, req_tot: counters.requests },
    }),
    cli_abrt: counters.clientAborts,
    srv_abrt: 0,
    lastsess: server.lastSession === undefined ? -1 : ago(server.lastSession),
    ...{ qtime: 0, ctime: 0, rtime: 0, ttime: 0 },
    addr: `${server.address}:${server.port}`,
    cookie: backend.cookie && server.name,
    mode: backend.mode,
    ...{ wrew: 0, connect: counters.connects, reuse: counters.reuses, srv_icur: idle },
    ...{ qtime_max: 0, ctime_max: 0, rtime_max: 0, ttime_max: 0, eint: 0 },
    ...{ idle_conn_cur: 0, safe_conn_cur: idle, used_conn_cur: used },
    need_conn_est: http ? counters.smax : 1,
    uweight: server.weight,
    '-': '-',
    ...(version !== '2.6' && { srid: server.dynamic ? 1 : 0 }),
  }
}

function checkColumns(server: Server): Row {
  const { check } = server.config
  if (server.lastCheck === 'none') return { check_status: 'INI', check_desc: 'Initializing' }
  const passed = server.lastCheck === 'passed'
  return {
    check_status: passed ? 'L4OK' : 'L4CON',
    check_duration: 0,
    last_chk: passed ? '' : 'Connection refused',
    check_desc: passed ? 'Layer4 check passed' : 'Layer4 connection problem',
    check_rise: check?.rise,
    check_fall: check?.fall,
    check_health: server.health,
  }
}

function backendRow(backend: Backend, counted: boolean): Row {
  const { servers, counters } = backend
  const sum = (value: (server: Server) => number): number => {
    return servers.reduce((total, server) => total + value(server), 0)
  }
  const serving = servers.filter((server) => server.serves)
  const active = serving.filter((server) => !server.config.backup)
  const up = servers.filter((server) => server.operation === 2).length
  const http = backend.mode === 'http'
  const weights = (of: readonly Server[]): number => of.reduce((w, { weight }) => w + weight, 0)
  return {
    pxname: backend.name,
    svname: 'BACKEND',
    qcur: backend.queued,
    qmax: counters.qmax,
    scur: sum((s) => s.sessions.size) + backend.queued,
    smax: counters.smax,
    slim: 200,
    stot: counters.stot,
    bin: sum((s) => s.counters.bin),
    bout: sum((s) => s.counters.bout),
    ...{ dreq: 0, dresp: 0, econ: sum((s) => s.counters.econ), eresp: 0 },
    wretr: sum((s) => s.counters.wretr),
    wredis: sum((s) => s.counters.wredis),
    status: `${serving.length > 0 ? 'UP' : 'DOWN'}${counted ? ` (${up}/${servers.length})` : ''}`,
    weight: weights(active.length > 0 ? active : serving),
    act: active.length,
    bck: serving.length - active.length,
    ...{ chkdown: 0, lastchg: 0, downtime: 0, pid: 1, iid: backend.id, sid: 0 },
    ...{ lbtot: counters.stot, type: 1, rate: 0, rate_max: counters.smax },
    ...(http && {
      ...{ hrsp_1xx: sumOf(backend, 0), hrsp_2xx: sumOf(backend, 1), hrsp_3xx: sumOf(backend, 2) },
      ...{
        hrsp_4xx: sumOf(backend, 3),
        hrsp_5xx: sumOf(backend, 4),
        hrsp_other: sumOf(backend, 5),
      },
      ...{ req_tot: sum((s) => s.counters.requests), cookie: backend.cookie },
      ...{ cache_lookups: 0, cache_hits: 0 },
    }),
    ...{ cli_abrt: 0, srv_abrt: 0, comp_in: 0, comp_out: 0, comp_byp: 0, comp_rsp: 0 },
    ...{ lastsess: -1, qtime: 0, ctime: 0, rtime: 0, ttime: 0, mode: backend.mode },
    algo: 'roundrobin',
    ...{ wrew: 0, connect: sum((s) => s.counters.connects), reuse: sum((s) => s.counters.reuses) },
    ...{ qtime_max: 0, ctime_max: 0, rtime_max: 0, ttime_max: 0, eint: 0 },
    uweight: weights(active.length > 0 ? active : serving),
    ...{ agg_server_status: 0, agg_server_check_status: 0, agg_check_status: 0, '-': '-' },
  }
}

function sumOf({ servers }: Backend, kind: 0 | 1 | 2 | 3 | 4 | 5): number {
  return servers.reduce((sum, server) => sum + server.counters.hrsp[kind], 0)
}

function frontendRow(worker: Worker, frontend: FrontendConfig, iid: number): Row {
  const http = frontend.mode === 'http'
  return {
    pxname: frontend.name,
    svname: 'FRONTEND',
    ...{ scur: worker.clients.size, smax: worker.clients.size, slim: 2_000 },
    stot: worker.counters.connections,
    ...{
      bin: 0,
      bout: 0,
      dreq: 0,
      dresp: 0,
      ereq: 0,
      status: 'OPEN',
      pid: 1,
      iid,
      sid: 0,
      type: 0,
    },
    ...{ rate: 0, rate_lim: 0, rate_max: 0 },
    ...(http && {
      ...{ hrsp_1xx: 0, hrsp_2xx: 0, hrsp_3xx: 0, hrsp_4xx: 0, hrsp_5xx: 0, hrsp_other: 0 },
      ...{ req_rate: 0, req_rate_max: 0, req_tot: worker.counters.requests, intercepted: 0 },
      ...{ comp_in: 0, comp_out: 0, comp_byp: 0, comp_rsp: 0, cache_lookups: 0, cache_hits: 0 },
    }),
    mode: frontend.mode,
    ...{ conn_rate: 0, conn_rate_max: 0, conn_tot: worker.counters.connections },
    ...{ dcon: 0, dses: 0, wrew: 0, eint: 0, '-': '-' },
    ...(worker.config.version !== '2.6' && {
      ...{ sess_other: 0, h1sess: 0, h2sess: 0, h3sess: 0 },
      ...{ req_other: 0, h1req: 0, h2req: 0, h3req: 0 },
    }),
  }
}
