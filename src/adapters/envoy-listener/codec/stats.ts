/**
 * Downstream work by `/stats`, in its text form: `name: value`, a line each.
 *
 * - `http.<stat_prefix>.downstream_rq_active`: requests, streams and upgrades (WebSocket, CONNECT) of one HTTP
 *   connection manager; `downstream_rq_total` counts health checks too, `health_check.request_total` those alone.
 * - `http.<stat_prefix>.downstream_cx_tx_bytes_buffered`: what of responses is not sent yet. On HTTP/1 a request is over for
 *   Envoy when its last byte is in the buffer of the connection (1 MiB by default); what is there when the process ends is lost.
 * - `http.<stat_prefix>.downstream_cx_http3_active`: on HTTP/3, too, a request is over when its last byte is in a buffer, and
 *   no statistic shows what is in it (64 KB of a client that does not read; 1.39.3, 1.40.0).
 * - `listener.<address>.downstream_cx_active`: connections of one listener; those that no connection manager has are
 *   TCP proxies and the like. What each thread has of them is listed too (`.worker_0.`, `.main_thread.`), and left out.
 * - `downstream_pre_cx_active`: accepted, and still before the filters (an inspector waits for its first bytes).
 * - `udp.<stat_prefix>.downstream_sess_active`: sessions of a UDP proxy.
 * - `http.admin` and `listener.admin` are the admin API's own.
 *
 * `server.total_connections` is never read: idle clients keep it up for ever, and it is renewed once in 5 s.
 */
import { countOf, parseStatLines } from '../../../kit/envoy/answers.js'
import { quote } from '../../../provider/quote.js'
import { sourceOf } from './server.js'

/** Bytes of responses that wait in the buffers of connections. */
const UNSENT = 'downstream_cx_tx_bytes_buffered'
/** Connections of HTTP/3: what waits in their buffers is in no statistic. */
const HTTP3 = 'downstream_cx_http3_active'
/** What is counted by, of each kind. A total that is hidden would take arrivals off, or leave them out. */
export const COUNTED = {
  http: [
    'downstream_rq_active',
    'downstream_rq_total',
    'downstream_cx_active',
    'downstream_cx_total',
    UNSENT,
    HTTP3,
  ],
  listener: ['downstream_cx_active', 'downstream_cx_total', 'downstream_pre_cx_active'],
  udp: ['downstream_sess_active', 'downstream_sess_total'],
} as const
const HTTP = [
  ...COUNTED.http,
  'downstream_cx_upgrades_active',
  'downstream_rq_5xx',
  'health_check.request_total',
  'health_check.failed',
]
/** They move whenever a listener comes, goes, changes or has warmed up. */
const LISTENERS = [
  ...['added', 'modified', 'in_place_updated', 'removed'].map((what) => `listener_${what}`),
  'total_listeners_warming',
].map((name) => `listener_manager.${name}`)
const OTHERS = [
  ...LISTENERS,
  'listener_manager.total_listeners_draining',
  'listener_manager.total_listeners_active',
  'listener_manager.listener_stopped',
  'server.parent_connections',
  'server.uptime',
]

/** The path that is asked: one filter (RE2) for all of it. */
export const STATS_PATH = `/stats?filter=${encodeURIComponent(
  [
    `^http\\..+\\.(?:${anyOf(HTTP)})$`,
    `^listener\\..+\\.(?:${anyOf(COUNTED.listener)})$`,
    `^udp\\..+\\.(?:${anyOf(COUNTED.udp)})$`,
    `^(?:${anyOf(OTHERS)})$`,
  ].join('|'),
)}`

function anyOf(names: readonly string[]): string {
  return names.map((name) => name.replaceAll('.', '\\.')).join('|')
}

/** Of one HTTP connection manager, one listener or one UDP proxy, by the last part of the names. */
export type Group = ReadonlyMap<string, number>

/** One answer of `/stats`. */
export interface Stats {
  readonly http: ReadonlyMap<string, Group>
  readonly listeners: ReadonlyMap<string, Group>
  readonly udp: ReadonlyMap<string, Group>
  /** The rest, by their whole names. */
  readonly others: Group
  /** Failed requests to the admin API: `/ready`, mostly. */
  readonly adminErrors: number | undefined
}

/** @throws `CONNECTION_LOST` where the last line has no end, `MALFORMED_REPLY` */
export function parseStats(text: string, from: string): Stats {
  const source = sourceOf('/stats', from)
  const groups = {
    http: new Map<string, Map<string, number>>(),
    listener: new Map<string, Map<string, number>>(),
    udp: new Map<string, Map<string, number>>(),
  }
  const others = new Map<string, number>()
  for (const [name, value] of parseStatLines(text, source)) {
    const count = countOf(name, value, source)
    const [, kind, group, key] = PARTS.exec(name) ?? []
    if (kind === undefined || group === undefined || key === undefined) {
      others.set(name, count)
      continue
    }
    if (kind === 'listener' && /\.(?:worker_\d+|main_thread)$/.test(group)) continue
    const of = groups[kind as keyof typeof groups]
    const values = of.get(group) ?? new Map<string, number>()
    of.set(group, values.set(key, count))
  }
  const adminErrors = groups.http.get('admin')?.get('downstream_rq_5xx')
  groups.http.delete('admin')
  groups.listener.delete('admin')
  return { http: groups.http, listeners: groups.listener, udp: groups.udp, others, adminErrors }
}

const PARTS = new RegExp(
  `^(http|listener|udp)\\.(.+)\\.(${anyOf([...HTTP, ...COUNTED.listener, ...COUNTED.udp])})$`,
)

/** What is in flight, and what has come, of one moment. */
export interface Counts {
  /** Requests, connections and sessions that are not HTTP, and managers with responses that are not sent yet. */
  readonly active: number
  /** Accepted connections that Envoy has not looked into yet. */
  readonly queued: number
  /** Connections of HTTP beyond the requests: idle clients. */
  readonly pooled: number
  /** Connections of HTTP/3 among all of these: what of their responses is not sent yet is in no count. */
  readonly http3: number
  /** All that has begun: requests but health checks, connections that are not HTTP. */
  readonly arrivals: number
  /**
   * More connections of HTTP than the listeners have that are not ignored: a listener of HTTP is ignored, so it is not known
   * how many are not HTTP.
   */
  readonly isUncountable: boolean
  /** What is in flight, in words. */
  readonly hints: readonly string[]
}

/** @param ignore - names of groups that are no work of clients */
export function toCounts(stats: Stats, ignore: ReadonlySet<string>): Counts {
  const sum = (groups: ReadonlyMap<string, Group>, key: string, all = false): number => {
    let total = 0
    for (const [name, group] of groups) if (all || !ignore.has(name)) total += group.get(key) ?? 0
    return total
  }
  const { http, listeners, udp } = stats
  const requests = sum(http, 'downstream_rq_active')
  const connections = sum(http, 'downstream_cx_active', true)
  // Connections of HTTP are ignored with their requests, not with their listener: they are taken off in any case.
  const difference = sum(listeners, 'downstream_cx_active') - connections
  const other = Math.max(0, difference)
  const sessions = sum(udp, 'downstream_sess_active')
  const unsent = [...http].filter(([name, group]) => !ignore.has(name) && isUnsent(group)).length
  const begun = sum(listeners, 'downstream_cx_total') - sum(http, 'downstream_cx_total', true)
  const checks = sum(http, 'health_check.request_total')
  return {
    active: requests + unsent + other + sessions,
    queued: sum(listeners, 'downstream_pre_cx_active'),
    pooled: Math.max(0, connections - requests),
    http3: sum(http, HTTP3),
    arrivals: Math.max(
      0,
      sum(http, 'downstream_rq_total') - checks + begun + sum(udp, 'downstream_sess_total'),
    ),
    isUncountable: difference < 0,
    hints: inWords(stats, ignore, other),
  }
}

/** Health checks that were answered with a failure; undefined: they are not counted. */
export function failedChecksOf({ http }: Stats): number | undefined {
  const counts = [...http.values()].flatMap((group) => group.get('health_check.failed') ?? [])
  return counts.length === 0 ? undefined : counts.reduce((total, count) => total + count, 0)
}

/** Whether a connection manager has responses in its buffers and no request that they would belong to. */
function isUnsent(group: Group): boolean {
  return (group.get('downstream_rq_active') ?? 0) === 0 && (group.get(UNSENT) ?? 0) > 0
}

function inWords(
  { http, listeners, udp }: Stats,
  ignore: ReadonlySet<string>,
  other: number,
): string[] {
  const hints: string[] = []
  for (const [name, group] of http) {
    const active = group.get('downstream_rq_active') ?? 0
    const upgraded = group.get('downstream_cx_upgrades_active') ?? 0
    if (ignore.has(name)) continue
    if (isUnsent(group)) {
      hints.push(
        `${group.get(UNSENT) ?? 0} bytes of responses of http.${quote(name, 80)} are not sent yet, their clients read slowly`,
      )
    }
    if (active === 0) continue
    const upgrades = upgraded === 0 ? '' : `, ${upgraded} of them WebSockets or other upgrades`
    hints.push(`${active} requests of http.${quote(name, 80)}${upgrades}`)
  }
  if (other > 0) {
    const busy = [...listeners].filter(
      ([name, group]) => !ignore.has(name) && (group.get('downstream_cx_active') ?? 0) > 0,
    )
    const names = busy.map(([name]) => quote(name, 80)).join(', ')
    hints.push(`${other} connections that are not HTTP, among those of ${names}`)
  }
  for (const [name, group] of udp) {
    const active = group.get('downstream_sess_active') ?? 0
    if (active > 0 && !ignore.has(name)) hints.push(`${active} sessions of udp.${quote(name, 80)}`)
  }
  return hints
}

/** Another text: the listeners are not what they were. Undefined: the statistics do not say. */
export function listenersKey({ others }: Stats): string | undefined {
  const moves = LISTENERS.map((name) => others.get(name))
  return moves.includes(undefined) ? undefined : moves.join('/')
}

/**
 * Whether all of its listeners are closed, as `/drain_listeners` leaves them: nothing more is accepted, and those that
 * LDS hands over later are ignored. A child of a hot restart adds its parent's closed ones to its own: not for it.
 * Envoy 1.39.3, 1.40.0.
 */
export function areClosed({ others }: Stats): boolean {
  const stopped = others.get('listener_manager.listener_stopped') ?? 0
  return (
    stopped > 0 && stopped >= (others.get('listener_manager.total_listeners_active') ?? Infinity)
  )
}

/** Whether nothing came, went or ended between two answers: each is then of one moment. */
export function isSame(one: Stats, other: Stats): boolean {
  // How many bytes wait moves all the time, and only whether any do counts.
  const values = (group: Group): [string, number][] =>
    [...group].map(([key, count]) => [key, key === UNSENT ? Math.min(1, count) : count])
  const text = ({ http, listeners, udp }: Stats): string =>
    JSON.stringify(
      [http, listeners, udp].map((groups) => [...groups].map(([k, v]) => [k, values(v)])),
    )
  return text(one) === text(other)
}
