// `configuration/raw`: HAProxy's configuration as text. The API has parts of it under other paths too, but not
// `listen` sections and the slots of a `server-template`, and after a failed reload not what the file says: it goes on
// telling what it had in memory (2.9.25, 3.0.21, 3.2.13, 3.4.2). So what is known of the file is read here alone. The
// text holds passwords of others: nothing of it goes into a message.
import { isIP } from '../../../provider/builtins.js'
import { isObject } from '../../../kit/json.js'

/** What of a server's line a durable drain changes, in the API's words. */
export interface Marks {
  readonly weight: number | null
  /** `enabled` for a line that is `disabled`. */
  readonly maintenance: string | null
}

/** What the file says of one server. */
export interface FileServer extends Marks {
  /** `line`: in a line of its own in a backend. The API can't write the other two. */
  readonly place: 'line' | 'listen' | 'template'
  /** What maint does to its established work: `on-marked-down shutdown-sessions` cuts it. */
  readonly maint: 'cuts' | 'gentle'
  /** `on-marked-up shutdown-backup-sessions`: leaving maint cuts what the backend's backup servers hold. */
  readonly cutsBackups: boolean
  /** Whether HAProxy checks its health, by a check or an agent, its own or that of a server that it tracks. */
  readonly checked: boolean
  /** Whether its address comes from a name: then it can move to another server. */
  readonly named: boolean
}

/** The file. */
export interface HaproxyFile {
  /** `hard-stop-after` in milliseconds; `unset` where a process lives as long as its connections. */
  readonly hardStop: number | 'unset' | 'unknown'
  /** A server of a backend or of a `listen` section; undefined where the file has it not. */
  server(pool: string, member: string): FileServer | undefined
}

type Words = readonly string[]

interface Section {
  readonly kind: string
  readonly name: string
  readonly from: string | undefined
  readonly lines: Words[]
}

const SECTIONS = new Set(
  (
    'global defaults frontend backend listen userlist resolvers peers program mailers cache ring ' +
    'http-errors log-forward fcgi-app crt-store traces log-profile acme'
  ).split(' '),
)

/** Reads the text in a reply: v2 wraps it, v3 answers it bare; undefined where there is none. */
export function parseRaw(text: string): HaproxyFile | undefined {
  const sections = readSections(textOf(text) ?? '')
  if (sections.length === 0) return undefined
  const pools = new Map<string, Pool>()
  for (const section of sections)
    if (['backend', 'listen'].includes(section.kind))
      pools.set(`${section.kind} ${section.name}`, toPool(section, sections))
  return {
    hardStop: hardStopOf(sections),
    server: (pool, member) =>
      pools.get(`backend ${pool}`)?.(member) ?? pools.get(`listen ${pool}`)?.(member),
  }
}

/** Finds a server of one section. */
type Pool = (member: string) => FileServer | undefined

function toPool(section: Section, all: readonly Section[]): Pool {
  const byName = new Map(
    section.lines.flatMap((line) => (line[0] === 'server' ? [[line[1] ?? '', line] as const] : [])),
  )
  const templates = section.lines.filter(([keyword]) => keyword === 'server-template')
  const defaults = [...defaultServers(defaultsOf(section, all)), ...defaultServers(section)]
  return (member) => {
    const own = byName.get(member)
    if (own !== undefined)
      return toServer(section.kind === 'listen' ? 'listen' : 'line', own.slice(2), defaults)
    const template = templates.find((line) => isSlot(line, member))
    return template && toServer('template', template.slice(3), defaults)
  }
}

/** @param line - from its address on; @param defaults - the `default-server` lines that apply, what is nearer last */
function toServer(place: FileServer['place'], line: Words, defaults: readonly Words[]): FileServer {
  const [address = ''] = line
  const settings = [...defaults, line].flat()
  const has = (key: string, value: string): boolean =>
    settings.some((word, i) => word === key && settings[i + 1] === value)
  const isOn = (flag: string): boolean =>
    settings.lastIndexOf(flag) > settings.lastIndexOf(`no-${flag}`)
  const weight = Number(line[line.lastIndexOf('weight') + 1])
  return {
    place,
    maint: has('on-marked-down', 'shutdown-sessions') ? 'cuts' : 'gentle',
    cutsBackups: has('on-marked-up', 'shutdown-backup-sessions'),
    checked: isOn('check') || isOn('agent-check') || settings.includes('track'),
    named: isNamed(address),
    weight: line.includes('weight') && Number.isInteger(weight) ? weight : null,
    maintenance: line.includes('disabled')
      ? 'enabled'
      : line.includes('enabled')
        ? 'disabled'
        : null,
  }
}

/** Whether an address in a line is a name, which DNS answers: no IP address, no path of a socket. */
export function isNamed(address: string): boolean {
  const text = address.replace(/^(?:ipv[46]|tcp[46]?)@/, '')
  if (/^\[|[/@]/.test(text) || isIP(text) !== 0) return false
  const host = text.replace(/:[^:]*$/, '')
  return host !== '' && isIP(host) === 0
}

const UNITS: Readonly<Record<string, number>> = {
  us: 0.001,
  ms: 1,
  s: 1_000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
}

function hardStopOf(sections: readonly Section[]): HaproxyFile['hardStop'] {
  const lines = sections.flatMap(({ kind, lines }) => (kind === 'global' ? lines : []))
  const value = lines.findLast(([keyword]) => keyword === 'hard-stop-after')?.[1]
  if (value === undefined) return 'unset'
  const [, count, unit = 'ms'] = /^(\d{1,12})(us|ms|s|m|h|d)?$/.exec(value) ?? []
  return count === undefined ? 'unknown' : Number(count) * (UNITS[unit] ?? 1)
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

function readSections(config: string): Section[] {
  const sections: Section[] = []
  for (const line of config.split('\n')) {
    const words = wordsOf(line)
    const [kind = '', name = ''] = words
    if (SECTIONS.has(kind)) {
      const at = words.indexOf('from')
      sections.push({ kind, name, from: at > 0 ? words[at + 1] : undefined, lines: [] })
    } else if (words.length > 0) sections.at(-1)?.lines.push(words)
  }
  return sections
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

/** Whether a server is one that a `server-template` line makes. */
function isSlot([, prefix = '', count = '']: Words, member: string): boolean {
  const number = member.startsWith(prefix) ? member.slice(prefix.length) : ''
  if (!/^[1-9]\d{0,5}$|^0$/.test(number)) return false
  const [low = '', high] = count.split('-')
  const [from, to] = high === undefined ? [1, Number(low)] : [Number(low), Number(high)]
  return Number(number) >= from && Number(number) <= to
}

function defaultServers(section: Section | undefined): readonly Words[] {
  return section?.lines.filter(([keyword]) => keyword === 'default-server') ?? []
}

/** The defaults section that it names, else the last one before it. */
function defaultsOf(section: Section, all: readonly Section[]): Section | undefined {
  const defaults = (one: Section): boolean => one.kind === 'defaults'
  if (section.from !== undefined)
    return all.find((one) => defaults(one) && one.name === section.from)
  return all.slice(0, all.indexOf(section)).findLast(defaults)
}
