import { hostname } from 'node:os'
import type { ProcessGroup } from '../process/process-group.js'
import type { Series } from '../options.js'
import type { Worker } from '../process/worker.js'

/** The version each series says it is, as the distributions that the fixtures were recorded on do. */
export const VERSIONS: Readonly<Record<Series, { readonly text: string; readonly date: string }>> =
  {
    '2.6': { text: '2.6.12-1+deb12u4', date: '2026/10/17' },
    '3.0': { text: '3.0.11-1+deb13u5', date: '2026/11/18' },
    '3.2': { text: '3.2.26-1', date: '2026/10/14' },
  }

const ZEROS_AFTER_CONNECTIONS =
  'MaxSslConns CurrSslConns CumSslConns Maxpipes PipesUsed PipesFree ConnRate ConnRateLimit ' +
  'MaxConnRate SessRate SessRateLimit MaxSessRate SslRate SslRateLimit MaxSslRate ' +
  'SslFrontendKeyRate SslFrontendMaxKeyRate SslFrontendSessionReuse_pct SslBackendKeyRate ' +
  'SslBackendMaxKeyRate SslCacheLookups SslCacheMisses CompressBpsIn CompressBpsOut ' +
  'CompressBpsRateLim'

/** `show info`; with `float` the times have their fractions. */
export function showInfo(worker: Worker, float = false): string {
  const { version } = worker.config
  const { text, date } = VERSIONS[version]
  const up = Date.now() - worker.startedAt
  const time = (ms: number): number => (float ? ms / 1_000 : Math.floor(ms / 1_000))
  const lines: [string, string | number][] = [
    ['Name', 'HAProxy'],
    ['Version', text],
    ['Release_date', date],
    ...count('Nbthread', 2),
    ...count('Nbproc', 1),
    ...count('Process_num', 1),
    ['Pid', worker.pid],
    ['Uptime', uptime(up)],
    ['Uptime_sec', time(up)],
    ...zeros('Memmax_MB PoolAlloc_MB PoolUsed_MB PoolFailed'),
    ...count('Ulimit-n', 4_034),
    ...count('Maxsock', 4_034),
    ...count('Maxconn', 2_000),
    ...count('Hard_maxconn', 2_000),
    ['CurrConns', worker.clients.size],
    ['CumConns', worker.counters.connections],
    ['CumReq', worker.counters.requests],
    ...zeros(ZEROS_AFTER_CONNECTIONS),
    ...count('Tasks', 29),
    ...zeros('Run_queue'),
    ...count('Idle_pct', 100),
    ['node', hostname()],
    ['Stopping', worker.isOld ? 1 : 0],
    ['Jobs', 8 + worker.clients.size + worker.commandLines.size],
    ...count('Unstoppable Jobs', 0),
    ...count('Listeners', worker.isOld ? 1 : 8),
    ...zeros('ActivePeers ConnectedPeers DroppedLogs BusyPolling FailedResolutions TotalBytesOut'),
    // 2.6 has the misprint.
    ...zeros(version === '2.6' ? 'TotalSplicdedBytesOut' : 'TotalSplicedBytesOut'),
    ...zeros('BytesOutRate DebugCommandsIssued CumRecvLogs'),
    ['Build info', text],
    ...zeros('Memmax_bytes PoolAlloc_bytes PoolUsed_bytes'),
    ['Start_time_sec', time(worker.startedAt)],
    ...zeros('Tainted'),
    ...(version === '2.6'
      ? []
      : [
          ...zeros('TotalWarnings MaxconnReached'),
          ...count('BootTime_ms', 60),
          ...zeros('Niced_tasks'),
          ...count('CurrStreams', 1 + worker.sessions()),
          ...zeros('CumStreams BlockedTrafficWarnings'),
        ]),
  ]
  return lines.map(([name, value]) => `${name}: ${value}\n`).join('')
}

/** `show proc` of the master socket. */
export function showProc(group: ProcessGroup): string {
  const { version } = group.config
  const row = (
    pid: number | string,
    type: string,
    reloads: string | number,
    startedAt?: number,
  ) => {
    const age = startedAt === undefined ? '<uptime>' : formatAge(Date.now() - startedAt)
    const text = startedAt === undefined ? '<version>' : VERSIONS[version].text
    const fields = [String(pid), type, String(reloads), age].map((field) => field.padEnd(15))
    return `${fields.join(' ')} ${text.padEnd(15)}\n`
  }
  const worker = (w: Worker): string => row(w.pid, 'worker', w.reloads, w.startedAt)
  const old = group.old
  return [
    row('#<PID>', '<type>', '<reloads>'),
    row(group.masterPid, 'master', `${group.reloads} [failed: 0]`, group.startedAt),
    '# workers\n',
    worker(group.current),
    ...(old.length > 0 ? ['# old workers\n', ...old.map(worker)] : []),
    ...(version === '3.2' ? [] : ['# programs\n']),
  ].join('')
}

function count(name: string, value: number): [string, number][] {
  return [[name, value]]
}

function zeros(names: string): [string, number][] {
  return names.split(' ').map((name) => [name, 0])
}

function parts(ms: number): readonly [number, string, string, string] {
  const s = Math.floor(ms / 1_000)
  const two = (n: number): string => String(n).padStart(2, '0')
  return [
    Math.floor(s / 86_400),
    two(Math.floor(s / 3_600) % 24),
    two(Math.floor(s / 60) % 60),
    two(s % 60),
  ]
}

function uptime(ms: number): string {
  const [d, h, m, s] = parts(ms)
  return `${d}d ${Number(h)}h${m}m${s}s`
}

/** The age of a process in `show proc`; the `prompt timed` form too, with colons. */
function formatAge(ms: number): string {
  const [d, h, m, s] = parts(ms)
  return `${d}d${h}h${m}m${s}s`
}

/** `[d:hh:mm:ss]` of `prompt timed`. */
export function formatPromptTime(ms: number): string {
  const [d, h, m, s] = parts(ms)
  return `[${d}:${h}:${m}:${s}]`
}
