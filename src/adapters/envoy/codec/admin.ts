/**
 * What Envoy's admin API answers, as values; `/clusters` is read in `clusters-text.ts`.
 */
import { parseVersion, type Version } from '../../../kit/version.js'
import { cutShort, malformed, type JsonValue } from '../../../kit/json.js'
import { answer, NOBODY, seconds, sourceOf } from './answer.js'
import { quote } from '../../../provider/quote.js'
import type { EdsStatus } from './status.js'

/** One host of one cluster, as a proxy sees it. */
export interface HostRow {
  readonly member: string
  readonly active: number
  /** Requests bound to this host that wait for a connection. Not counted before Envoy 1.39.3. */
  readonly pending: number | undefined
  readonly connections: number
  /** Requests and connections begun so far. */
  readonly begun: number
  readonly eds: EdsStatus
  readonly failedCheck: boolean
  readonly ejected: boolean
  readonly degraded: boolean
  /** Left out of the panic sum: draining, or new and not checked yet. */
  readonly excluded: boolean
  /** Removed from the set; kept, and given new work, until its active check fails. */
  readonly pendingRemoval: boolean
  readonly priority: number
  readonly weight: number
}

/** One cluster, as a proxy sees it. */
export interface ClusterRows {
  readonly cluster: string
  readonly service: string
  /** All hosts; where only some were asked for, those, and all that are not simply healthy. */
  readonly hosts: ReadonlyMap<string, HostRow>
  /** Those that are left out of `hosts`, by priority. */
  readonly plain: ReadonlyMap<number, PlainHosts>
}

/** Healthy hosts that nobody asked for, together. */
export interface PlainHosts {
  readonly count: number
  readonly active: number
  readonly connections: number
}

/** No host is left out. */
export const ALL: ClusterRows['plain'] = new Map()

/** A number of all hosts of a cluster. */
export function sumOf({ hosts, plain }: ClusterRows, of: 'active' | 'connections'): number {
  let sum = 0
  for (const row of hosts.values()) sum += row[of]
  for (const rest of plain.values()) sum += rest[of]
  return sum
}

/** How many hosts a cluster has. */
export function sizeOf({ hosts, plain }: ClusterRows): number {
  let size = hosts.size
  for (const { count } of plain.values()) size += count
  return size
}

export interface ServerInfo {
  readonly version: Version
  readonly nodeId: string
  /** How many processes came before this one by hot restarts. */
  readonly epoch: number
  /** Milliseconds after which it ends the process before it. */
  readonly parentShutdown: number
  /** Whether it adds the statistics of the process before it to its own. */
  readonly mergesParent: boolean
}

/** What `/server_info` says of the age of a process. Whole seconds, as it tells them. */
export interface ServerAge {
  readonly current: number
  /** Since the first process of a chain of hot restarts began. */
  readonly all: number
  /** Whether its listeners are up: then the process before it takes no more connections. */
  readonly isUp: boolean
}

/** Envoy's own default, where the options are not shown. */
const PARENT_SHUTDOWN = 900_000

export function parseServerInfo(text: string, from = NOBODY): ServerInfo {
  const info = answer(text, '/server_info', from)
  const said = info.at('version')
  const version = parseVersion(said.text() ?? '')
  if (version === undefined) throw said.wrong('the version of an Envoy, such as <sha>/1.40.0/Clean')
  const options = info.at('command_line_options')
  return {
    version,
    nodeId: info.at('node').at('id').text() ?? '',
    epoch: options.at('restart_epoch').digits() ?? 0,
    parentShutdown: seconds(options.at('parent_shutdown_time')) ?? PARENT_SHUTDOWN,
    mergesParent: options.at('skip_hot_restart_parent_stats').flag() !== true,
  }
}

export function parseAge(text: string, from = NOBODY): ServerAge {
  const info = answer(text, '/server_info', from)
  const state = info.at('state').text() ?? ''
  const current = uptime(info.at('uptime_current_epoch'))
  const all = info.at('uptime_all_epochs')
  return {
    current,
    all: all.present ? uptime(all) : current,
    isUp: state === 'LIVE' || state === 'DRAINING',
  }
}

function uptime(value: JsonValue): number {
  const ms = seconds(value.needed('an uptime such as 12s'))
  if (ms === undefined || ms < 0) throw value.wrong('an uptime such as 12s')
  return ms / 1_000
}

/** The panic threshold that `/runtime` sets in place of those of the clusters, in percent. */
export function runtimeThreshold(text: string, from = NOBODY): number | undefined {
  const entry = answer(text, '/runtime', from)
    .at('entries')
    .fields()
    .find(([key]) => key === 'upstream.healthy_panic_threshold')
  const value = entry?.[1].at('final_value').word() ?? ''
  return /^\d{1,15}$/.test(value) ? Math.min(100, Number(value)) : undefined
}

/** Whether `/runtime` says that a feature is switched off. */
export function isSwitchedOff(text: string, feature: string, from = NOBODY): boolean {
  const entries = answer(text, '/runtime', from).at('entries').fields()
  return entries.some(
    ([key, entry]) => key.endsWith(feature) && entry.at('final_value').word() === 'false',
  )
}

/** `/stats` in its text form: `name: value`, texts in quotes, histograms as texts too. */
export function parseStats(text: string, from = NOBODY): Map<string, string> {
  const source = sourceOf('/stats', from)
  if (text !== '' && !text.endsWith('\n')) throw cutShort(source, text)
  const stats = new Map<string, string>()
  for (const line of text.split('\n')) {
    if (line === '') continue
    const cut = line.indexOf(': ')
    if (cut === -1) throw malformed(source, "a line 'name: value'", `'${quote(line)}'`)
    const value = line.slice(cut + 2).trim()
    const quoted = value.length > 1 && value.startsWith('"') && value.endsWith('"')
    stats.set(line.slice(0, cut), quoted ? value.slice(1, -1) : value)
  }
  return stats
}
