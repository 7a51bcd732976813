import { quote } from '../../../provider/quote.js'
import type { Listeners, StatNames } from './server.js'
import { COUNTED, type Stats } from './stats.js'

/** How a kind is called in statistics. */
const KINDS = { http: 'http', listeners: 'listener', udp: 'udp' } as const
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
  const hasListener = [...stats.listeners.values()].some((group) => group.has(COUNTED.listener[0]))
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
  const kinds = Object.entries(KINDS) as [keyof typeof KINDS, keyof typeof COUNTED][]
  return kinds.flatMap(([kind, prefix]) =>
    names[kind]
      // Connections of HTTP are taken off those of its listener, whether its requests are ignored or not.
      .filter((name) => kind === 'http' || !ignore.has(name))
      .flatMap((name) =>
        COUNTED[prefix]
          .filter((key) => stats[kind].get(name)?.has(key) !== true)
          .map((key) => `${prefix}.${quote(name, 80)}.${key}`),
      ),
  )
}
