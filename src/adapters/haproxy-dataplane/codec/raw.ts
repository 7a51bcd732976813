// `configuration/raw`: HAProxy's configuration as text. It alone has `listen` sections and the slots of a
// `server-template`: the API has no other path for them, and can't write their lines. The text holds
// passwords of others: nothing of it goes into a message.
import { isIP } from '../../../provider/builtins.js'
import { isObject } from '../../../kit/json.js'

/** Where a server stands that the API's own configuration does not list. */
export interface RawServer {
  /** `line`: in a line of its own in a backend, which the API would list. */
  readonly place: 'line' | 'listen' | 'template'
  /** Whether HAProxy checks its health. */
  readonly checked: boolean
  /** Whether its address is a name. */
  readonly named: boolean
  /** `on-marked-down shutdown-sessions`: maint cuts. */
  readonly cuts: boolean
  /** `on-marked-up shutdown-backup-sessions`: leaving maint cuts what backup servers hold. */
  readonly cutsBackups: boolean
}

/** Finds a server of a backend or of a `listen` section; undefined where the text has it not, or not there. */
export type RawServers = (pool: string, member: string) => RawServer | undefined

interface Section {
  readonly kind: string
  readonly name: string
  readonly from: string | undefined
  readonly lines: (readonly string[])[]
}

const SECTIONS = new Set(
  (
    'global defaults frontend backend listen userlist resolvers peers program mailers cache ring ' +
    'http-errors log-forward fcgi-app crt-store traces log-profile acme'
  ).split(' '),
)

const CHECKS: ReadonlySet<string> = new Set(['check', 'agent-check', 'track'])

/** The text in a reply: v2 wraps it, v3 answers it bare; undefined where there is none. */
export function parseRaw(text: string): RawServers | undefined {
  const config = textOf(text)
  if (config === undefined) return undefined
  const sections = readSections(config)
  return (pool, member) => {
    for (const section of sections) {
      if (section.name !== pool || !['backend', 'listen'].includes(section.kind)) continue
      const line = section.lines.find((words) => names(words, member))
      if (line === undefined) continue
      const isTemplate = line[0] === 'server-template'
      const settings = [
        line,
        ...defaultServers(section),
        ...defaultServers(defaultsOf(section, sections)),
      ]
      const has = (key: string, value: string): boolean =>
        settings.some((words) => words.some((word, i) => word === key && words[i + 1] === value))
      return {
        place: isTemplate ? 'template' : section.kind === 'listen' ? 'listen' : 'line',
        checked: settings.some((words) => words.some((word) => CHECKS.has(word))),
        named: isNamed(line[isTemplate ? 3 : 2]?.replace(/:[^:]*$/, '')),
        cuts: has('on-marked-down', 'shutdown-sessions'),
        cutsBackups: has('on-marked-up', 'shutdown-backup-sessions'),
      }
    }
    return undefined
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

function names(words: readonly string[], member: string): boolean {
  const [keyword, name = '', count = ''] = words
  if (keyword === 'server') return name === member
  if (keyword !== 'server-template' || !member.startsWith(name)) return false
  const number = member.slice(name.length)
  if (!/^[1-9]\d{0,5}$|^0$/.test(number)) return false
  const [low = '', high] = count.split('-')
  const [from, to] = high === undefined ? [1, Number(low)] : [Number(low), Number(high)]
  return Number(number) >= from && Number(number) <= to
}

function defaultServers(section: Section | undefined): readonly (readonly string[])[] {
  return section?.lines.filter(([keyword]) => keyword === 'default-server') ?? []
}

/** The defaults section that it names, else the last one before it. */
function defaultsOf(section: Section, all: readonly Section[]): Section | undefined {
  const defaults = (one: Section): boolean => one.kind === 'defaults'
  if (section.from !== undefined)
    return all.find((one) => defaults(one) && one.name === section.from)
  return all.slice(0, all.indexOf(section)).findLast(defaults)
}
