/**
 * What the admin API of an Envoy answers about itself. Seen on Envoy 1.39.3 and 1.40.0.
 *
 * - `state` of `/server_info` is LIVE, DRAINING after `/healthcheck/fail`, or one of its two states before it serves; a
 *   drain of its listeners does not show there.
 * - `last_updated` of the bootstrap in `/config_dump` tells one start of the process from another to the millisecond.
 * - numbers of `/stats` come in no order, and are of several moments.
 */
import { cutShort, malformed, parseJson, type JsonValue, type Source } from '../json.js'
import { quote } from '../../provider/quote.js'
import { parseVersion, type Version } from '../version.js'

/** A reply of the admin API, which is an object always. */
export function parseAnswer(text: string, source: Source): JsonValue {
  const reply = parseJson(text, source)
  reply.needed('an object').object()
  return reply
}

/** A proto3 JSON duration, such as `0.250s`, in milliseconds. */
export function durationOf(value: JsonValue): number | undefined {
  const text = value.text()
  if (text === undefined) return undefined
  if (/^-?\d{1,12}(\.\d{1,9})?s$/.test(text)) return Number(text.slice(0, -1)) * 1_000
  throw value.wrong('a duration such as 0.250s')
}

export interface ServerInfo {
  readonly version: Version
  readonly nodeId: string
  /** `LIVE`, `DRAINING`, `PRE_INITIALIZING`, `INITIALIZING`: its listeners are up in the first two. */
  readonly state: string
  /** Seconds, which Envoy tells whole, of this process and of all since the first of a chain of hot restarts. */
  readonly uptime: { readonly current: number; readonly all: number }
  /** How many processes came before this one by hot restarts. */
  readonly epoch: number
  /** Milliseconds after which it ends the process before it. */
  readonly parentShutdown: number
  /** Whether it adds the statistics of the process before it to its own. */
  readonly mergesParent: boolean
}

/** Envoy's own default, where the options are not shown. */
const PARENT_SHUTDOWN = 900_000
const UPTIME = 'an uptime such as 12s'

/** `/server_info` @throws `MALFORMED_REPLY` */
export function parseServerInfo(text: string, source: Source): ServerInfo {
  const info = parseAnswer(text, source)
  const said = info.at('version')
  const words = said.text() ?? ''
  const version = words.includes('/') ? parseVersion(words) : undefined
  if (version === undefined) throw said.wrong('the version of an Envoy, such as <sha>/1.40.0/Clean')
  const options = info.at('command_line_options')
  const current = uptimeOf(info.at('uptime_current_epoch').needed(UPTIME))
  const all = info.at('uptime_all_epochs')
  return {
    version,
    nodeId: info.at('node').at('id').text() ?? '',
    // Proto3 leaves a zero out.
    state: info.at('state').text() ?? 'LIVE',
    uptime: { current, all: all.present ? uptimeOf(all) : current },
    epoch: options.at('restart_epoch').digits() ?? 0,
    parentShutdown: durationOf(options.at('parent_shutdown_time')) ?? PARENT_SHUTDOWN,
    mergesParent: options.at('skip_hot_restart_parent_stats').flag() !== true,
  }
}

function uptimeOf(value: JsonValue): number {
  const ms = durationOf(value)
  if (ms === undefined || ms < 0) throw value.wrong(UPTIME)
  return ms / 1_000
}

/** The moment the process read its bootstrap, as it prints it. */
export function parseBootStamp(text: string, source: Source): string | undefined {
  const configs = parseAnswer(text, source).at('configs').rows()
  const stamps = configs.map((config) => config.at('last_updated').text() ?? '')
  return stamps.filter((stamp) => stamp !== '').sort()[0]
}

/** A name as statistics have it: Envoy allows no colon there. */
export function statName(name: string): string {
  return name.replace(/:\/{0,2}/g, '_')
}

/**
 * `/stats` in its text form: `name: value`, texts in quotes, histograms as texts too.
 *
 * @throws `CONNECTION_LOST` where the last line has no end, `MALFORMED_REPLY`
 */
export function parseStatLines(text: string, source: Source): Map<string, string> {
  if (text !== '' && !text.endsWith('\n')) throw cutShort(source, text)
  const stats = new Map<string, string>()
  for (const line of text.split('\n')) {
    if (line === '') continue
    const cut = line.indexOf(': ')
    if (cut === -1) throw malformed(source, "a line 'name: value'", `'${quote(line)}'`)
    const value = line.slice(cut + 2).trim()
    const isQuoted = value.length > 1 && value.startsWith('"') && value.endsWith('"')
    stats.set(line.slice(0, cut), isQuoted ? value.slice(1, -1) : value)
  }
  return stats
}

/** @throws `MALFORMED_REPLY` where a statistic is no count */
export function countOf(name: string, value: string, source: Source): number {
  if (/^\d{1,15}$/.test(value)) return Number(value)
  throw malformed(source, `a count for ${quote(name, 80)}`, `'${quote(value)}'`)
}
