/**
 * Which statistics an Envoy makes at all: `stats_config.stats_matcher` of its bootstrap, or that of a cluster, which takes its
 * place (`typed_filter_metadata['envoy.stats_matcher']`). Patterns are compared with whole names. Envoy 1.39.3, 1.40.0.
 */
import type { JsonValue } from '../../../kit/json.js'
import { answer, NOBODY } from './answer.js'

/** Whether a statistic of this name would be shown where it exists; false where that can't be told. */
export type StatsMatcher = (name: string) => boolean

/** That of `/config_dump?mask=bootstrap.stats_config`. */
export function parseStatsMatcher(text: string, from = NOBODY): StatsMatcher {
  const configs = answer(text, '/config_dump', from).at('configs').rows()
  const found = configs
    .map((config) => config.at('bootstrap').at('stats_config').at('stats_matcher'))
    .find(({ present }) => present)
  return found === undefined ? () => true : toStatsMatcher(found)
}

/** That of a cluster; undefined: it has none of its own. */
export function ownStatsMatcher(cluster: JsonValue): StatsMatcher | undefined {
  const own = cluster.at('metadata').at('typed_filter_metadata').at('envoy.stats_matcher')
  return own.present ? toStatsMatcher(own) : undefined
}

function toStatsMatcher(matcher: JsonValue): StatsMatcher {
  const excluded = matcher.at('exclusion_list')
  const included = matcher.at('inclusion_list')
  if (included.present) {
    const patterns = included.at('patterns').rows()
    return (name) => patterns.some((pattern) => matches(pattern, name) === true)
  }
  if (excluded.present) {
    const patterns = excluded.at('patterns').rows()
    return (name) => patterns.every((pattern) => matches(pattern, name) === false)
  }
  const isRejecting = matcher.at('reject_all').flag() === true
  return () => !isRejecting
}

/** A `StringMatcher`; undefined: it can't be told. */
function matches(pattern: JsonValue, name: string): boolean | undefined {
  const fold = (text: string): string =>
    pattern.at('ignore_case').flag() === true ? text.toLowerCase() : text
  const text = fold(name)
  const has = (kind: string, fn: (wanted: string) => boolean): boolean | undefined => {
    const wanted = pattern.at(kind).text()
    return wanted === undefined ? undefined : fn(fold(wanted))
  }
  return (
    has('exact', (wanted) => text === wanted) ??
    has('prefix', (wanted) => text.startsWith(wanted)) ??
    has('suffix', (wanted) => text.endsWith(wanted)) ??
    has('contains', (wanted) => text.includes(wanted)) ??
    toRegExp(pattern.at('safe_regex').at('regex').text())?.test(name)
  )
}

/** Repeated groups, which take JavaScript too long where RE2 does not. */
const REPEATED = /\)[*+{]/

/** RE2 as JavaScript has it; undefined for what it does not have: strict mode refuses it, or it would take too long. */
function toRegExp(regex: string | undefined): RegExp | undefined {
  if (regex === undefined || REPEATED.test(regex)) return undefined
  try {
    return new RegExp(`^(?:${regex})$`, 'u')
  } catch {
    return undefined
  }
}
