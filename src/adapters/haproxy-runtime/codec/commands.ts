/** Encoders: values to one command. A name that HAProxy does not allow never becomes part of a command. */
import { quote } from '../../../provider/quote.js'
import { formatSocket } from '../../../provider/address.js'
import type { AdminState, MemberRef } from '../../../provider/contract.js'
import { DrainableError, type ErrorCode } from '../../../provider/error.js'
import { formatRef } from '../../../provider/member-ref.js'
import { PROVIDER } from '../name.js'

/** The characters that HAProxy allows in names of backends and servers: it does not load others. */
const NAME = /^[A-Za-z0-9_.:-]+$/

/** Whether HAProxy allows this name. */
export function isName(name: string): boolean {
  return NAME.test(name)
}

function name(value: string, what: string): string {
  if (isName(value)) return value
  throw new DrainableError(
    'INVALID_OPTIONS',
    `'${quote(value)}' can't be the name of a ${what} in HAProxy, expected letters, digits and - _ . :`,
    { provider: PROVIDER },
  )
}

function server(ref: MemberRef): string {
  return `${name(ref.pool, 'backend')}/${name(ref.member, 'server')}`
}

/** Identifies the process, and reads its own clock to the microsecond: the first command of every line. */
export const SHOW_INFO = 'show info float'

/** Lists every stream of a process, with its connections and state. */
export const SHOW_STREAMS = 'show sess all'

/** Lists every stream of a process, one line each. */
export const SHOW_STREAM_LINES = 'show sess'

/**
 * Lists the streams of one backend, one line each, from 3.2 on; older versions ignore the filter and list every
 * stream.
 */
export function showBackendStreams(pool: string): string {
  return `${SHOW_STREAM_LINES} backend ${name(pool, 'backend')}`
}

/** Types of rows for `show stat`. */
const ROWS = { servers: 4, backend: 2, both: 6 } as const

/** Reads one server's row (`sid`), or every row, of a proxy: `proxy` is its number, its name, or -1 for all. */
export function showStat(proxy: string, rows: keyof typeof ROWS, sid = '-1'): string {
  return `show stat ${proxy === '-1' ? proxy : name(proxy, 'backend')} ${ROWS[rows]} ${sid}`
}

/** Reads the states of one backend's servers, or of all. */
export function showServersState(pool?: string): string {
  return pool === undefined ? 'show servers state' : `show servers state ${name(pool, 'backend')}`
}

/** Sets the own state. Idempotent. */
export function setState(ref: MemberRef, to: AdminState): string {
  return `set server ${server(ref)} state ${to}`
}

/** Sets the weight: absolute, or as a share of the configured one. */
export function setWeight(ref: MemberRef, weight: number | '0%' | '100%'): string {
  return `set server ${server(ref)} weight ${weight}`
}

/** Sets how many requests a server takes at once, and hands it what its backend's queue has for it. */
export function setLimit(ref: MemberRef, limit: number): string {
  return `set maxconn server ${server(ref)} ${limit}`
}

/** Marks the last checks as failed: the server is up again after `rise` passed checks. */
export function setHealthDown(ref: MemberRef): string {
  return `set server ${server(ref)} health down`
}

/** Cuts every stream of a server. */
export function shutdownSessions(ref: MemberRef): string {
  return `shutdown sessions server ${server(ref)}`
}

/** Cuts one stream by its pointer. */
export function shutdownSession(pointer: string): string {
  if (!/^0x[0-9a-f]+$/i.test(pointer)) throw new TypeError(`'${pointer}' is not a pointer`)
  return `shutdown session ${pointer}`
}

/** Waits until nothing is attached to a server in maintenance, or until the delay is over. From 3.0. */
export function waitRemovable(ref: MemberRef, ms: number): string {
  return `wait ${Math.max(1, Math.round(ms))}ms srv-removable ${server(ref)}`
}

export function delServer(ref: MemberRef): string {
  return `del server ${server(ref)}`
}

/** The keywords of `add server` after address and weight: words that can't contain a second command. */
const KEYWORDS = /^[A-Za-z0-9_.:/@%+=,-]+( [A-Za-z0-9_.:/@%+=,-]+)*$/

export interface NewServer {
  readonly address: string
  readonly port: number
  readonly weight?: number
  /** As the caller gave it: such as `check inter 1s`. */
  readonly keywords?: unknown
}

export function addServer(ref: MemberRef, added: NewServer): string {
  const { address, port, weight, keywords } = added
  const wrong = (words: string): DrainableError =>
    new DrainableError('INVALID_OPTIONS', words, { ref, provider: PROVIDER })
  if (!/^[0-9A-Fa-f:.]+$/.test(address))
    throw wrong(
      `'${quote(address)}' is not an IP address, expected one such as 10.0.0.1 or 2001:db8::1`,
    )
  // HAProxy does not refuse a port over 65535: it silently becomes another one.
  if (!isWithin(port, 1, 65_535)) throw wrong(`${port} is not a port, expected 1 to 65535`)
  if (weight !== undefined && !isWithin(weight, 0, 256))
    throw wrong(`${weight} is not a weight, expected 0 to 256`)
  const isText = typeof keywords === 'string'
  if (keywords !== undefined && !(isText && KEYWORDS.test(keywords))) {
    const found = isText ? `'${quote(keywords)}'` : quote(JSON.stringify(keywords))
    throw wrong(
      `native.keywords: ${found} can't follow 'add server', expected keywords in one text such as 'check inter 1s'`,
    )
  }
  const words = [`add server ${server(ref)} ${formatSocket(address, port)}`]
  if (weight !== undefined) words.push(`weight ${weight}`)
  if (isText) words.push(keywords)
  return words.join(' ')
}

function isWithin(value: number, least: number, most: number): boolean {
  return Number.isInteger(value) && value >= least && value <= most
}

/** Turns HAProxy's words for a refusal into an error with its meaning and a remedy. */
export function refusal(ref: MemberRef, command: string, reply: string): DrainableError {
  const said = quote(reply)
  const { code, hint, retryable } = meaning(said)
  const data = {
    ref,
    provider: PROVIDER,
    ...(retryable === undefined ? {} : { retryable }),
  }
  return new DrainableError(
    code,
    `${formatRef(ref)}: HAProxy answered '${said}' to '${command.split(' ').slice(0, 2).join(' ')}'${hint === '' ? '' : `, ${hint}`}`,
    data,
  )
}

function meaning(said: string): { code: ErrorCode; hint: string; retryable?: boolean } {
  if (/^No such (backend|server)\./.test(said)) {
    return { code: 'NOT_FOUND', hint: 'check the names against the configuration' }
  }
  if (said.startsWith('Permission denied')) {
    return { code: 'FORBIDDEN', hint: "give the stats socket 'level admin'" }
  }
  if (said.startsWith('Proxy is disabled')) {
    // So does a `listen` section after `shutdown frontend` (2.6, 3.0, 3.2 and 3.4), until the next reload.
    const hint = "a reload replaces this process, or 'shutdown frontend' stopped it"
    return { code: 'CONFLICT', hint }
  }
  if (/still has connections attached/.test(said)) {
    return { code: 'CONFLICT', hint: 'its connections are still being closed, try again later' }
  }
  if (/other configuration elements pointing to it/.test(said)) {
    return {
      code: 'REJECTED',
      hint: 'it is tracked by another server, named by use-server or has resolvers: take it out of the configuration and reload',
    }
  }
  if (/Only servers in maintenance mode/.test(said)) {
    return { code: 'CONFLICT', hint: 'another client took it out of maintenance', retryable: false }
  }
  if (/Already exists/i.test(said)) {
    return { code: 'CONFLICT', hint: 'a server of that name is there already', retryable: false }
  }
  if (/dynamic load balancing/.test(said)) {
    return {
      code: 'UNSUPPORTED',
      hint: 'servers can be added only where the balance algorithm is dynamic, such as roundrobin or leastconn',
    }
  }
  if (said.startsWith('Unknown command')) {
    return { code: 'UNSUPPORTED', hint: 'this HAProxy does not know the command' }
  }
  return { code: 'REJECTED', hint: '' }
}
