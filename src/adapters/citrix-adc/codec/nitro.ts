/**
 * NITRO v1 as text: paths, bodies, replies. Nothing here does I/O.
 *
 * A request is `<method> /nitro/v1/{config,stat}/<type>[/<name>][?query]` with a JSON body
 * `{"<type>": {...}}`. A reply is `{errorcode, message, severity, "<type>": [...]}`; a change may be
 * answered by no bytes at all. "No rows" is a reply without the type's key, and one row may come as
 * an object. Counters are decimal texts, rates and ports are numbers; documentation and
 * appliances disagree, so both are read.
 *
 * Names in a path are decoded twice by the appliance and therefore encoded twice here; values of
 * `args` and `filter` are decoded once, with `:` and `,` as separators. Port `*` is 65535.
 */
import {
  isCut,
  isObject,
  JsonValue,
  parseExact,
  type JsonObject,
  type Source,
} from '../../../kit/json.js'
import { isIP } from '../../../provider/builtins.js'
import { DrainableError } from '../../../provider/error.js'
import { printable, quote } from '../../../provider/quote.js'

/** One object of a reply, its values not looked at yet. */
export type Row = JsonValue

/** A reply, whatever its status. */
export interface NitroReply {
  readonly status: number
  /** 0 is success; -1 stands for a reply that names none. */
  readonly errorcode: number
  readonly message: string
  readonly severity: string
  /** Whether there were no bytes. */
  readonly empty: boolean
  /** Whether it names an errorcode or has rows: JSON of another product does neither. */
  readonly stated: boolean
  /** False where the bytes are no JSON object: a proxy's page, a server starting up. */
  readonly readable: boolean
  /** Whether the JSON ends in its middle. */
  readonly cut: boolean
  readonly body: JsonValue
}

const NAME = /^[A-Za-z0-9_][A-Za-z0-9_#. :@=-]{0,254}$/

/** Whether the appliance could know something by that name. Others are never sent: no object has them. */
export function isName(name: string): boolean {
  return NAME.test(name)
}

/** `/nitro/v1/config/servicegroup/sg%2520web` */
export function pathOf(tree: 'config' | 'stat', type: string, name?: string, query = ''): string {
  // Names of replies come here too; a URL would fold these, and the path would be of something else.
  if (name !== undefined && /^\.{0,2}$/.test(name)) {
    throw new DrainableError(
      'INVALID_OPTIONS',
      `'${quote(name)}' can't be the name of a ${type}, expected a letter, a digit or _ first; nothing was sent`,
      { provider: 'citrix-adc' },
    )
  }
  const last = name === undefined ? '' : `/${encodeURIComponent(encodeURIComponent(name))}`
  return `/nitro/v1/${tree}/${type}${last}${query === '' ? '' : `?${query}`}`
}

/** `args=servicegroupname:sg%20web,ip:2001%3Adb8%3A%3A1,port:80` */
export function argsOf(word: 'args' | 'filter', pairs: Readonly<Record<string, string>>): string {
  const list = Object.entries(pairs).map(([key, value]) => `${key}:${encodeURIComponent(value)}`)
  return `${word}=${list.join(',')}`
}

/**
 * Reads a reply. Never throws: what is no JSON is told by `readable`.
 *
 * @param warning - header `X-NITRO-WARNING`, such as `1028 - ...`: the body may say Done, or nothing
 */
export function parseReply(
  status: number,
  text: string,
  warning = '',
  source: Source = SOURCE,
): NitroReply {
  const reply = parseBody(status, text, source)
  const [, code, message = ''] =
    /^\s{0,9}(\d{1,9})[\s-]{0,9}(.*)$/s.exec(warning.slice(0, 1_000)) ?? []
  if (code === undefined || reply.errorcode !== 0) return reply
  return { ...reply, errorcode: Number(code), message: words(message), severity: 'WARNING' }
}

const SOURCE: Source = { provider: 'citrix-adc', what: 'NITRO' }

function parseBody(status: number, text: string, source: Source): NitroReply {
  const ok = status >= 200 && status < 300
  const none = new JsonValue({}, source)
  const base = { status, message: '', severity: '', stated: false, cut: false, body: none }
  if (text.trim() === '') {
    return { ...base, errorcode: ok ? 0 : -1, empty: true, readable: ok }
  }
  let parsed: unknown
  try {
    parsed = parseExact(text)
  } catch {
    parsed = undefined
  }
  const body = isObject(parsed) ? parsed : undefined
  const code = body === undefined ? undefined : toCode(body)
  if (body === undefined || code === 'none') {
    const cut = parsed === undefined && isCut(text)
    return { ...base, errorcode: -1, message: words(text), empty: false, readable: false, cut }
  }
  const { message, severity } = body
  return {
    status,
    errorcode: code ?? (ok ? 0 : -1),
    message: typeof message === 'string' ? words(message) : '',
    severity: typeof severity === 'string' ? severity.slice(0, 40).toUpperCase() : '',
    empty: false,
    stated:
      code !== undefined ||
      Object.values(body).some((value) => typeof value === 'object' && value !== null),
    readable: true,
    cut: false,
    body: new JsonValue(body, source),
  }
}

/** The errorcode; undefined where it is not there, `none` where it is something else than a number. */
function toCode({ errorcode }: JsonObject): number | undefined | 'none' {
  if (errorcode === undefined || errorcode === null) return undefined
  const text = typeof errorcode === 'object' ? '' : String(errorcode)
  return /^-?\d{1,9}$/.test(text) ? Number(text) : 'none'
}

/** The objects under a key: a list, one object, or nothing at all. */
export function rowsOf({ body }: { readonly body: JsonValue }, type: string): readonly Row[] {
  const found = body.at(type)
  return isObject(found.value) ? [found] : found.rows()
}

/** A count that came as `"12"`, `12` or `"12.0"`; undefined where there is none, or an empty text. */
export function toCount(value: JsonValue): number | undefined {
  const text = value.word()?.trim()
  if (text === undefined || text === '') return undefined
  const count = /^\d{1,16}(\.0{1,16})?$/.test(text) ? Number(text) : undefined
  if (Number.isSafeInteger(count)) return count
  throw value.wrong('a whole number from 0 up')
}

/** `server:port` in its parts: the last colon counts, brackets batch an address are dropped. */
export function parseMember(member: string): { server: string; port: number | undefined } {
  if (isIP(member) !== 0) return { server: member, port: undefined }
  const match = /^(.+):(\d{1,5}|\*)$/s.exec(member)
  if (!match) return { server: member, port: undefined }
  const [, server = '', port = ''] = match
  return { server: server.replace(/^\[(.+)\]$/, '$1'), port: port === '*' ? 65_535 : Number(port) }
}

/** `10.0.0.1:80`, `[2001:db8::1]:80`, `web1:*` */
export function formatMember(server: string, port: number): string {
  const shown = isIP(server) === 6 ? `[${server}]` : server
  return `${shown}:${port === 65_535 ? '*' : port}`
}

/** Whether two names of servers mean one: addresses are compared without regard to case. */
export function sameServer(a: string, b: string): boolean {
  return a === b || (isIP(a) === 6 && a.toLowerCase() === b.toLowerCase())
}

/** Which object a change is of. */
export type Subject =
  | {
      readonly kind: 'member'
      readonly group: string
      readonly server: string
      readonly port: number
      /** Only of rows that share server and port, as DNS makes them: an action would hit all of them. */
      readonly address?: string
    }
  | { readonly kind: 'service'; readonly name: string }

/** One changing request: what goes where. */
export interface Command {
  /** @default 'POST' */
  readonly method?: 'POST' | 'PUT' | 'DELETE'
  readonly path: string
  readonly body?: Readonly<Record<string, JsonObject | readonly JsonObject[]>>
  readonly headers?: Readonly<Record<string, string>>
}

/**
 * A disable, with exactly the keys that the action takes: superfluous ones make it fail.
 *
 * `delay` is 0 always: with a delay the appliance drops what is left when it is over, and that was not asked for.
 */
export function disable(subject: Subject, graceful: boolean): Command {
  const how = { delay: 0, graceful: graceful ? 'YES' : 'NO' }
  return command(subject, 'disable', how)
}

/** An enable, which takes neither delay nor graceful. */
export function enable(subject: Subject): Command {
  return command(subject, 'enable', {})
}

function command(subject: Subject, action: 'disable' | 'enable', how: JsonObject): Command {
  const query = `action=${action}&warning=yes`
  if (subject.kind === 'service') {
    if (subject.name === '') throw incomplete('service')
    return {
      path: pathOf('config', 'service', undefined, query),
      body: { service: { name: subject.name, ...how } },
    }
  }
  const { group, server, port } = subject
  // Without server and port the appliance takes this for the whole group.
  if (group === '' || server === '' || !Number.isInteger(port) || port < 1 || port > 65_535) {
    throw incomplete('service group member')
  }
  return {
    path: pathOf('config', 'servicegroup', undefined, query),
    body: { servicegroup: { servicegroupname: group, servername: server, port, ...how } },
  }
}

/**
 * Several commands with one path as one request: a list in its body. What one of them is refused for
 * does not keep the others back.
 */
export function inOne(commands: readonly Command[]): Command {
  const [first] = commands
  if (first === undefined) throw new TypeError('no command')
  if (commands.length === 1) return first
  const [type = ''] = Object.keys(first.body ?? {})
  const list = commands.flatMap(({ body }): readonly JsonObject[] => {
    const one = body?.[type] ?? []
    return Array.isArray(one) ? (one as readonly JsonObject[]) : [one as JsonObject]
  })
  return { path: first.path, body: { [type]: list }, headers: { 'x-nitro-onerror': 'continue' } }
}

/** What was said of each command of a list; undefined where one thing was said of all. */
export function partsOf(reply: NitroReply, count: number): readonly NitroReply[] | undefined {
  if (!reply.readable || !reply.body.at('response').present) return undefined
  const rows = reply.body.at('response').rows()
  if (rows.length !== count) return undefined
  return rows.map((row) => {
    const text = row.at('errorcode').word() ?? ''
    const errorcode = /^-?\d{1,9}$/.test(text) ? Number(text) : -1
    const said = { message: words(row.at('message').word() ?? ''), body: row, empty: false }
    const severity = row.at('severity').word()?.slice(0, 40).toUpperCase() ?? ''
    const status = errorcode === 0 || severity === 'WARNING' ? 200 : 599
    return { ...said, status, errorcode, severity, stated: true, readable: true, cut: false }
  })
}

/**
 * Deletes the persistence entries of one virtual server, of all its clients. Never without its name:
 * without it those of every virtual server would go.
 */
export function forgetPersistence(vserver: string): Command {
  if (vserver === '') throw incomplete('virtual server')
  return {
    path: pathOf('config', 'lbpersistentsessions', undefined, 'action=clear&warning=yes'),
    body: { lbpersistentsessions: { vserver } },
  }
}

function incomplete(what: string): DrainableError {
  return new DrainableError('INVALID_OPTIONS', `${what} without a full name, nothing was sent`)
}

/**
 * Text of the appliance for a message: one line, no control characters, not endless. It is cut to
 * what is shown only after secrets were taken out, or half a secret could stay.
 */
function words(text: string): string {
  return printable(text.slice(0, 10_000)).trim()
}
