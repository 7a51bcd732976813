import { quote } from '../../../provider/quote.js'
import type { Listeners, StatNames } from './server.js'
import type { Group, Stats } from './stats.js'

/** What is counted by. A total that is hidden would take arrivals off, or leave them out. */
const KEYS = {
  http: [
    'downstream_rq_active',
    'downstream_rq_total',
    'downstream_cx_active',
    'downstream_cx_total',
    'downstream_cx_tx_bytes_buffered',
    'downstream_cx_http3_active',
  ],
  listeners: ['downstream_cx_active', 'downstream_cx_total', 'downstream_pre_cx_active'],
  udp: ['downstream_sess_active', 'downstream_sess_total'],
} as const
const PREFIXES = { http: 'http', listeners: 'listener', udp: 'udp' } as const
const KINDS = ['http', 'listeners', 'udp'] as const
/** Names of the admin API's own statistics. */
const ADMIN = 'admin'

/** Names that are told. */
const NAMED = 3

/**
 * Why work can't be counted by these statistics; undefined: it can.
 *
 * @param ignore - names of groups that are no work of clients
 */
export function blindness(
  stats: Stats,
  { active, draining, total }: Listeners,
  ignore: ReadonlySet<string>,
): string | undefined {
  // One that was removed still has its connections, until its drain is over.
  const isDraining = stats.others.get('listener_manager.total_listeners_draining') !== 0
  const expected = isDraining ? [active, draining] : [active]
  const shared = expected.flatMap(sharedNames)[0]
  if (shared !== undefined) {
    return `${shared} goes by the statistics of the admin API: give it another stat_prefix than '${ADMIN}'`
  }
  const lost = [...new Set(expected.flatMap((names) => missing(stats, names, ignore)))]
  const hasListener = [...stats.listeners.values()].some((group) => isShown(group, 'listeners'))
  if (total > 0 && !hasListener) lost.push('listener.<address>.downstream_cx_active')
  if (lost.length === 0) return undefined
  return `its statistics do not show ${lost.slice(0, NAMED).join(', ')}: let stats_config.stats_matcher include http, listener, udp and server`
}

function sharedNames({ http, listeners }: StatNames): string[] {
  return [
    ...(http.includes(ADMIN) ? ['an HTTP connection manager'] : []),
    ...(listeners.includes(ADMIN) ? ['a listener'] : []),
  ]
}

function missing(stats: Stats, names: StatNames, ignore: ReadonlySet<string>): string[] {
  return KINDS.flatMap((kind) =>
    names[kind]
      // Connections of HTTP are taken off those of its listener, whether its requests are ignored or not.
      .filter((name) => kind === 'http' || !ignore.has(name))
      .flatMap((name) =>
        KEYS[kind]
          .filter((key) => stats[kind].get(name)?.has(key) !== true)
          .map((key) => `${PREFIXES[kind]}.${quote(name, 80)}.${key}`),
      ),
  )
}

function isShown(group: Group, kind: keyof typeof KEYS): boolean {
  return group.has(KEYS[kind][0])
}
