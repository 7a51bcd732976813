// HAProxy's configuration, as the API gives it.
//
// - `configuration/raw` is the text of the file. It alone has `listen` sections and the slots of a `server-template`,
//   and after a reload that failed it tells what the API's other paths don't (2.9, 3.0, 3.2 and 3.4). So what is to be
//   known is read there. It holds passwords of others: nothing of it goes into a message.
// - `configuration/...servers/S` is one line as an object, to be written back whole. v2 wraps it in {"_version",
//   "data"}; v3 answers the bare value, and the version comes in the header Configuration-Version.
import { isIP } from 'node:net'
import * as z from 'zod/mini'
import { isObject } from '../../../kit/json.js'
import type { MaintEffect, MemberRef } from '../../../provider/contract.js'
import { nonEmpty } from '../../../provider/option-schemas.js'
import { decode } from './decode.js'
import type { Tree } from './paths.js'

/** A configuration value with the version it was read at. */
export interface Versioned<T> {
  readonly version: number | undefined
  readonly data: T
}

/** A server line as the API prints it: written back whole, so every key is kept. */
export type ConfigServer = Readonly<Record<string, unknown>> & { readonly name: string }

const configServerSchema = z.looseObject({ name: nonEmpty() })

/** The reply of `configuration/...servers/S`. */
export function parseConfigServer(
  tree: Tree,
  text: string,
  header: string | undefined,
): Versioned<ConfigServer> {
  const what = 'configuration server'
  if (tree === 'v2') {
    const wrapped = z.looseObject({ _version: z.exactOptional(z.int()), data: configServerSchema })
    const { _version, data } = decode(wrapped, text, what)
    return { version: _version, data }
  }
  const version = Number.parseInt(header ?? '', 10)
  const data = decode(configServerSchema, text, what)
  return { version: Number.isNaN(version) ? undefined : version, data }
}

/** The reply of `configuration/version`. */
export function parseConfigVersion(text: string): number {
  return decode(z.int(), text, 'configuration version')
}

/** What the configuration says about one server. */
export interface Configured {
  /** What maint does to its established work: `cuts` by `on-marked-down shutdown-sessions`. */
  readonly maint: MaintEffect
  /** `on-marked-up shutdown-backup-sessions`: whether leaving maint cuts what backup servers hold. */
  readonly cutsBackups: boolean | 'unknown'
  /**
   * Where it stands: in a line that this API can write; in a `listen` section or a `server-template`, which it can't; not
   * in the file at all (`run time`). `unknown`: the file is kept from this user; `unread`: it can't be read just now.
   */
  readonly place: 'line' | 'listen' | 'template' | 'run time' | 'unknown' | 'unread'
  /** Whether HAProxy checks its health, by a check or an agent, its own or that of a server that it tracks. */
  readonly checked: boolean | 'unknown'
  /** Whether its address comes from a name: then it can move to another server. */
  readonly named: boolean | 'unknown'
  /** The weight of its own line. */
  readonly weight: number | null
  readonly maintenance: 'enabled' | null
}

const UNKNOWN = {
  maint: 'unknown',
  cutsBackups: 'unknown',
  checked: 'unknown',
  weight: null,
  maintenance: null,
} as const

/** A server of which the file does not tell. */
export function untold(place: 'run time' | 'unknown' | 'unread'): Configured {
  const named = place === 'run time' ? false : 'unknown'
  return { ...UNKNOWN, place, named }
}

/** What the file says. */
export interface FileText {
  /**
   * `hard-stop-after`, in milliseconds. `unset`: a process that a reload has replaced lives as long as its connections;
   * `unknown`: it has another form.
   */
  readonly hardStop: number | 'unset' | 'unknown'
  /** A server of a backend or of a `listen` section. */
  readonly server: (ref: MemberRef) => Configured
}

type Words = readonly string[]

interface Section {
  readonly kind: string
  readonly name: string
  /** The options of its servers: its own `default-server` lines, then those of its defaults section. */
  readonly defaults: Words[]
  readonly servers: Map<string, Words>
  readonly templates: Words[]
}

const SECTIONS = new Set(
  (
    'global defaults frontend backend listen userlist resolvers peers program mailers cache ring ' +
    'http-errors log-forward fcgi-app crt-store traces log-profile acme'
  ).split(' '),
)

/**
 * The reply of `configuration/raw`: v2 wraps the text, v3 answers it bare.
 *
 * @returns undefined where it is no configuration
 */
export function parseFile(text: string): FileText | undefined {
  const { hardStop, sections } = readSections(textOf(text) ?? '')
  if (sections.length === 0) return undefined
  const pools = sections.filter(({ kind }) => kind === 'backend' || kind === 'listen')
  const byName = Map.groupBy(pools, ({ name }) => name)
  return {
    hardStop,
    server: ({ pool, member }) => {
      for (const section of byName.get(pool) ?? []) {
        const line = section.servers.get(member)
        if (line !== undefined)
          return toServer(line, section, section.kind === 'listen' ? 'listen' : 'line')
        const slots = section.templates.find((words) => isSlot(words, member))
        if (slots !== undefined) return toServer(slots, section, 'template')
      }
      return untold('run time')
    },
  }
}

function toServer(line: Words, { defaults }: Section, place: Configured['place']): Configured {
  const isTemplate = place === 'template'
  const own = line.slice(isTemplate ? 4 : 3)
  const all = [own, ...defaults]
  const has = (key: string, value: string): boolean =>
    all.some((words) => words.some((word, i) => word === key && words[i + 1] === value))
  /** The first that says so or otherwise decides: the line, then the defaults. */
  const is = (yes: string, no: string): boolean =>
    all.map((words) => words.findLast((word) => word === yes || word === no)).find(Boolean) === yes
  const weight = Number(own[own.indexOf('weight') + 1])
  return {
    place,
    checked:
      own.includes('track') || is('check', 'no-check') || is('agent-check', 'no-agent-check'),
    named: isNamed(line[isTemplate ? 3 : 2]?.replace(/:[^:]*$/, '')),
    maint: has('on-marked-down', 'shutdown-sessions') ? 'cuts' : 'gentle',
    cutsBackups: has('on-marked-up', 'shutdown-backup-sessions'),
    weight: own.includes('weight') && Number.isInteger(weight) ? weight : null,
    maintenance:
      own.findLast((word) => word === 'disabled' || word === 'enabled') === 'disabled'
        ? 'enabled'
        : null,
  }
}

/** Whether an address in the configuration is a name, which DNS answers: no IP address, no path of a socket. */
export function isNamed(address: unknown): boolean {
  if (typeof address !== 'string') return false
  const host = address.replace(/^(?:ipv[46]|tcp[46]?)@/, '').replace(/^\[(.*)\]$/, '$1')
  return host !== '' && !/[/@]/.test(host) && isIP(host) === 0
}

function textOf(text: string): string | undefined {
  const first = text.trimStart()[0]
  if (first !== '{' && first !== '"') return text
  try {
    const json: unknown = JSON.parse(text)
    const data: unknown = isObject(json) ? json['data'] : json
    return typeof data === 'string' ? data : undefined
  } catch {
    return undefined
  }
}

function readSections(config: string): { hardStop: FileText['hardStop']; sections: Section[] } {
  const sections: Section[] = []
  let hardStop: FileText['hardStop'] = 'unset'
  for (const line of config.split('\n')) {
    const words = wordsOf(line)
    const [keyword = '', name = ''] = words
    const section = sections.at(-1)
    if (SECTIONS.has(keyword)) {
      const defaults =
        keyword === 'global' ? [] : [...(defaultsOf(words, sections)?.defaults ?? [])]
      sections.push({ kind: keyword, name, defaults, servers: new Map(), templates: [] })
    } else if (section === undefined) continue
    else if (keyword === 'server') section.servers.set(name, words)
    else if (keyword === 'server-template') section.templates.push(words)
    else if (keyword === 'default-server') section.defaults.unshift(words.slice(1))
    else if (keyword === 'hard-stop-after' && section.kind === 'global') hardStop = toTime(name)
  }
  return { hardStop, sections }
}

/** The defaults section that a section names, else the last one before it. */
function defaultsOf(words: Words, before: readonly Section[]): Section | undefined {
  const at = words.indexOf('from')
  const all = before.filter(({ kind }) => kind === 'defaults')
  if (at > 0) return all.find(({ name }) => name === words[at + 1])
  return words[0] === 'defaults' ? undefined : all.at(-1)
}

const UNITS = { us: 0.001, ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const

/** A time as HAProxy writes it: milliseconds, where it has no unit. */
function toTime(text: string): number | 'unknown' {
  const [, digits, unit = 'ms'] = /^(\d{1,15})(us|ms|s|m|h|d)?$/.exec(text) ?? []
  return digits === undefined ? 'unknown' : Number(digits) * UNITS[unit as keyof typeof UNITS]
}

/** As HAProxy splits a line, as far as names and keywords go: quotes and backslashes keep blanks, `#` begins a comment. */
function wordsOf(line: string): string[] {
  const words: string[] = []
  for (const [text] of line.slice(0, 8_192).matchAll(/(?:\\.|"[^"]*"|'[^']*'|[^\s"'\\])+/g)) {
    if (text.startsWith('#')) break
    words.push(text.replaceAll(/["'\\]/g, ''))
  }
  return words
}

/** Whether a server is one of the slots of a `server-template`. */
function isSlot([, name = '', count = '']: Words, member: string): boolean {
  if (!member.startsWith(name)) return false
  const number = member.slice(name.length)
  if (!/^[1-9]\d{0,5}$|^0$/.test(number)) return false
  const [low = '', high] = count.split('-')
  const [from, to] = high === undefined ? [1, Number(low)] : [Number(low), Number(high)]
  return Number(number) >= from && Number(number) <= to
}
