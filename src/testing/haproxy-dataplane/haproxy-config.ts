// A HAProxy configuration as text, with just enough understanding of it: sections, and the server
// lines of backends. The text is the truth; what the API shows is read out of it, what the API
// changes is written into it, and lines that are not understood stay as they are.

/** A server line as the API prints it. */
export type ServerLine = Readonly<Record<string, string | number>> & { readonly name: string }

/** Keywords with a number, those that are times in milliseconds, and those with a word. */
const NUMBERS = new Set(['weight', 'rise', 'fall', 'maxconn', 'minconn', 'maxqueue', 'id'])
const TIMES = new Set(['inter', 'fastinter', 'downinter', 'slowstart'])
const WORDS = new Set(['cookie', 'track', 'on-marked-down', 'on-marked-up', 'init-addr', 'observe'])
const FLAGS = new Set(['check', 'agent-check', 'backup'])
/** What the API calls otherwise than HAProxy. */
const OTHER_NAMES: Readonly<Record<string, string>> = { port: 'health_check_port' }

/** One section: where it begins and ends in the text. */
interface Section {
  readonly kind: string
  readonly name: string
  readonly from: number
  readonly to: number
}

const SECTION =
  /^(global|defaults|frontend|backend|listen|userlist|resolvers|peers|program)\b\s*(\S*)/

/** The configuration, immutable: every change is another one. */
export class HaproxyConfig {
  readonly text: string
  readonly #lines: readonly string[]

  constructor(text: string) {
    this.text = text
    this.#lines = text.split('\n')
  }

  /** Names of the sections of a kind. */
  names(kind: string): readonly string[] {
    return this.#sections(kind).map((section) => section.name)
  }

  /** The word after a keyword in a section, or in the defaults sections. */
  setting(kind: string, name: string, keyword: string): string | undefined {
    for (const section of [
      ...this.#sections(kind).filter((s) => s.name === name),
      ...(kind === 'global' ? [] : this.#sections('defaults')),
    ]) {
      for (const line of this.#lines.slice(section.from + 1, section.to)) {
        const [first, ...rest] = line.trim().split(/\s+/)
        if (first === keyword) return rest.join(' ')
      }
    }
    return undefined
  }

  /** The defaults sections; those without a name as the API calls them. */
  defaultsNames(): readonly string[] {
    return this.#sections('defaults').map(({ name }) => name)
  }

  /** The defaults section that applies to a backend: the one it names, else the last one before it. */
  defaultsOf(backend: string): string | undefined {
    const section = this.#section(backend)
    if (section === undefined) return undefined
    const [, from] = / from (\S+)/.exec(this.#lines[section.from] ?? '') ?? []
    return from ?? this.#sections('defaults').findLast((one) => one.from < section.from)?.name
  }

  /** `default-server` settings of a backend, or of a defaults section. */
  defaultServer(
    kind: 'backend' | 'defaults',
    name?: string,
  ): Record<string, string | number> | undefined {
    for (const section of this.#sections(kind)) {
      if (name !== undefined && section.name !== name) continue
      for (const line of this.#lines.slice(section.from + 1, section.to)) {
        const [first, ...words] = line.trim().split(/\s+/)
        if (first === 'default-server') return readWords(words).known
      }
    }
    return undefined
  }

  /** The servers of a backend; undefined where there is no such backend. */
  servers(backend: string): readonly ServerLine[] | undefined {
    const section = this.#section(backend)
    if (section === undefined) return undefined
    return this.#serverLines(section).map(([, line]) => readServer(line))
  }

  /** With the line of one server replaced, taken out (undefined) or added. */
  withServer(backend: string, name: string, server: ServerLine | undefined): HaproxyConfig {
    const section = this.#section(backend)
    if (section === undefined) return this
    const found = this.#serverLines(section).find(([, line]) => readServer(line).name === name)
    const lines = [...this.#lines]
    if (found === undefined) {
      if (server === undefined) return this
      lines.splice(lastUsed(lines, section) + 1, 0, printServer(server, []))
    } else if (server === undefined) lines.splice(found[0], 1)
    else lines[found[0]] = printServer(server, readWords(tail(found[1])).unknown)
    return new HaproxyConfig(lines.join('\n'))
  }

  /** With an empty backend more. */
  withBackend(name: string, mode: string): HaproxyConfig {
    return new HaproxyConfig(`${this.text.trimEnd()}\n\nbackend ${name}\n  mode ${mode}\n`)
  }

  /** HAProxy's complaint about it, as `haproxy -c` would say, where the fake can tell. */
  complaint(): string | undefined {
    for (const backend of this.names('backend')) {
      for (const server of this.servers(backend) ?? []) {
        const { weight, track } = server
        const who = `'server ${backend}/${server.name}'`
        if (typeof weight === 'number' && weight > 256) {
          return `${who} weight of server ${server.name} is not within 0 and 256 (${weight}).`
        }
        if (typeof track !== 'string') continue
        const [proxy = '', leader] = track.includes('/') ? track.split('/') : [backend, track]
        if (!this.names('backend').includes(proxy)) {
          return `${who} unable to find required proxy '${proxy}' for tracking.`
        }
        if (this.servers(proxy)?.every(({ name }) => name !== leader) !== false) {
          return `${who} unable to find required server '${leader ?? ''}' for tracking.`
        }
      }
    }
    return undefined
  }

  /** What HAProxy itself has as backends: `listen` sections too. */
  proxies(): readonly string[] {
    return [...this.names('backend'), ...this.names('listen')]
  }

  /** The servers that HAProxy itself has in one of {@link proxies}: slots of a `server-template` too. */
  everyServer(name: string): readonly ServerLine[] {
    const section = this.#section(name) ?? this.#sections('listen').find((one) => one.name === name)
    if (section === undefined) return []
    return this.#lines.slice(section.from + 1, section.to).flatMap((line): ServerLine[] => {
      const [keyword, prefix = '', range = '', ...rest] = line.trim().split(/\s+/)
      if (keyword === 'server') return [readServer(line)]
      if (keyword !== 'server-template') return []
      const [low = 1, high] = range.split('-').map(Number)
      const [from, to] = high === undefined ? [1, low] : [low, high]
      return Array.from({ length: to - from + 1 }, (_, i) =>
        readServer(`server ${prefix}${from + i} ${rest.join(' ')}`),
      )
    })
  }

  #section(backend: string): Section | undefined {
    return this.#sections('backend').find((section) => section.name === backend)
  }

  #sections(kind: string): Section[] {
    const heads = this.#lines.flatMap((line, from) => {
      const match = SECTION.exec(line)
      return match ? [{ kind: match[1] ?? '', name: match[2] ?? '', from }] : []
    })
    let unnamed = 0
    for (const head of heads) {
      if (head.kind === 'defaults' && head.name === '') head.name = `unnamed_defaults_${++unnamed}`
    }
    return heads
      .map((head, i) => ({ ...head, to: heads[i + 1]?.from ?? this.#lines.length }))
      .filter((section) => section.kind === kind)
  }

  #serverLines(section: Section): [number, string][] {
    return this.#lines.flatMap((line, i): [number, string][] =>
      i > section.from && i < section.to && /^\s*server\s/.test(line) ? [[i, line]] : [],
    )
  }
}

function lastUsed(lines: readonly string[], section: Section): number {
  let last = section.from
  for (let i = section.from; i < section.to; i++) if ((lines[i] ?? '').trim() !== '') last = i
  return last
}

function tail(line: string): string[] {
  return line.trim().split(/\s+/).slice(3)
}

function readServer(line: string): ServerLine {
  const [, name = '', target = ''] = line.trim().split(/\s+/)
  const colon = target.lastIndexOf(':')
  const port = Number(target.slice(colon + 1))
  const where = colon > 0 ? { address: target.slice(0, colon), port } : { address: target }
  return { ...readWords(tail(line)).known, ...where, name }
}

function readWords(words: readonly string[]): {
  known: Record<string, string | number>
  unknown: string[]
} {
  const known: Record<string, string | number> = {}
  const unknown: string[] = []
  for (let i = 0; i < words.length; i++) {
    const word = words[i] ?? ''
    if (FLAGS.has(word)) known[word] = 'enabled'
    else if (word === 'no-check') known['check'] = 'disabled'
    else if (word === 'disabled') known['maintenance'] = 'enabled'
    else if (word === 'enabled') known['maintenance'] = 'disabled'
    else if (NUMBERS.has(word)) known[word] = Number(words[++i])
    else if (TIMES.has(word)) known[word] = milliseconds(words[++i] ?? '')
    else if (WORDS.has(word)) known[word] = words[++i] ?? ''
    else if (word === 'port') known[OTHER_NAMES['port'] ?? word] = Number(words[++i])
    else unknown.push(word)
  }
  return { known, unknown }
}

function printServer(server: ServerLine, unknown: readonly string[]): string {
  const { name, address, port, ...rest } = server
  const words = [`  server ${name} ${String(address)}${port === undefined ? '' : `:${port}`}`]
  for (const [key, value] of Object.entries(rest)) {
    if (key === 'maintenance') words.push(value === 'enabled' ? 'disabled' : 'enabled')
    else if (FLAGS.has(key)) {
      if (value === 'enabled') words.push(key)
      else if (key === 'check') words.push('no-check')
    } else if (TIMES.has(key)) words.push(key, `${value}ms`)
    else if (key === 'health_check_port') words.push('port', String(value))
    else if (NUMBERS.has(key) || WORDS.has(key)) words.push(key, String(value))
  }
  return [...words, ...unknown].join(' ')
}

/** A time as HAProxy writes it. */
export function milliseconds(text: string): number {
  const match = /^(\d+)(us|ms|s|m|h|d)?$/.exec(text)
  if (!match) return 0
  const unit = { us: 0.001, ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 }
  return Number(match[1]) * unit[(match[2] ?? 'ms') as keyof typeof unit]
}
