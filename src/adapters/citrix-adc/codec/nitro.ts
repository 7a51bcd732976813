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
import { isIP } from 'node:net'
import { DrainableError } from '../../../provider/error.js'

/** One object of a reply, its values not looked at yet. */
export type Row = Readonly<Record<string, unknown>>

/** A reply, whatever its status. */
export interface NitroReply {
  readonly status: number
  /** 0 is success; -1 stands for a reply that names none. */
  readonly errorcode: number
  readonly message: string
  readonly severity: string
  /** Whether there were no bytes. */
  readonly empty: boolean
  /** Whether it names an errorcode or has rows: JSON of anybody else does neither. */
  readonly stated: boolean
  /** False where the bytes are no JSON object: a proxy's page, a server starting up. */
  readonly readable: boolean
  readonly body: Row
}

const NAME = /^[A-Za-z0-9_][A-Za-z0-9_#. :@=-]{0,254}$/

/** Whether the appliance could know something by that name. Others are never sent: nobody has them. */
export function isName(name: string): boolean {
  return NAME.test(name)
}

/** `/nitro/v1/config/servicegroup/sg%2520web` */
export function pathOf(tree: 'config' | 'stat', type: string, name?: string, query = ''): string {
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
export function parseReply(status: number, text: string, warning = ''): NitroReply {
  const reply = parseBody(status, text)
  const [, code, message = ''] = /^\s*(\d+)[\s-]*(.*)$/s.exec(warning) ?? []
  if (code === undefined || reply.errorcode !== 0) return reply
  return { ...reply, errorcode: Number(code), message: words(message), severity: 'WARNING' }
}

function parseBody(status: number, text: string): NitroReply {
  const ok = status >= 200 && status < 300
  const base = { status, message: '', severity: '', stated: false, body: {} }
  if (text.trim() === '') {
    return { ...base, errorcode: ok ? 0 : -1, empty: true, readable: ok }
  }
  let parsed: unknown
  try {
    parsed = JSON.parse(text)
  } catch {
    parsed = undefined
  }
  if (typeof parsed !== 'object' || parsed === null || Array.isArray(parsed)) {
    return { ...base, errorcode: -1, message: words(text), empty: false, readable: false }
  }
  const body = parsed as Row
  const code = toCount(body['errorcode'])
  return {
    status,
    errorcode: code ?? (ok ? 0 : -1),
    message: typeof body['message'] === 'string' ? words(body['message']) : '',
    severity: typeof body['severity'] === 'string' ? body['severity'].toUpperCase() : '',
    empty: false,
    stated: code !== undefined || Object.values(body).some(isObject),
    readable: true,
    body,
  }
}

/** The objects under a key: a list, one object, or nothing at all. */
export function rowsOf(reply: { readonly body: Row }, type: string): readonly Row[] {
  const value = reply.body[type]
  const list: readonly unknown[] = Array.isArray(value) ? value : [value]
  return list.filter(isObject)
}

function isObject(value: unknown): value is Row {
  return typeof value === 'object' && value !== null
}

/** A text, whatever it came as; undefined for anything that is none. */
export function toText(value: unknown): string | undefined {
  if (typeof value === 'string') return value
  return typeof value === 'number' || typeof value === 'boolean' ? String(value) : undefined
}

/** A count that came as `"12"`, `12` or `"12.0"`; undefined where there is none. */
export function toCount(value: unknown): number | undefined {
  const text = toText(value)?.trim()
  if (text === undefined || !/^-?\d+(\.\d+)?$/.test(text)) return undefined
  const number = Math.trunc(Number(text))
  return Number.isSafeInteger(number) ? number : undefined
}

/**
 * A cumulative counter. It may exceed what a number can hold, so only its last digits are kept:
 * what is asked of it is whether it moved.
 */
export function toCounter(value: unknown): number | undefined {
  const text = toText(value)?.trim()
  if (text === undefined || !/^\d+(\.\d+)?$/.test(text)) return undefined
  return Number((text.split('.')[0] ?? '0').slice(-15))
}

/** `server:port` in its parts: the last colon counts, brackets round an address are dropped. */
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
    }
  | { readonly kind: 'service'; readonly name: string }

/** One changing request: what goes where. */
export interface Command {
  readonly path: string
  readonly body: Readonly<Record<string, Row>>
}

/**
 * A disable, with exactly the keys that the action takes: superfluous ones make it fail.
 *
 * `delay` is 0 always: with a delay the appliance drops what is left when it is over, and nobody asked for that.
 */
export function disable(subject: Subject, graceful: boolean): Command {
  const how = { delay: 0, graceful: graceful ? 'YES' : 'NO' }
  return command(subject, 'disable', how)
}

/** An enable, which takes neither delay nor graceful. */
export function enable(subject: Subject): Command {
  return command(subject, 'enable', {})
}

function command(subject: Subject, action: 'disable' | 'enable', how: Row): Command {
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

function incomplete(what: string): DrainableError {
  return new DrainableError('INVALID_OPTIONS', `${what} without a full name, nothing was sent`)
}

/**
 * Text of the appliance for a message: one line, no control characters, not endless. It is cut to
 * what is shown only after secrets were taken out, or half a secret could stay.
 */
function words(text: string): string {
  return text
    .replace(/\p{Cc}+/gu, ' ')
    .trim()
    .slice(0, 10_000)
}
