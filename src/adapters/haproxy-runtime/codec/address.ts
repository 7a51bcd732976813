/**
 * Socket addresses in the form of HAProxy's `stats socket` and `-S`: `/path`, `unix@/path`, `abns@name`, `host:port`,
 * `ipv4@host:port`, `ipv6@[address]:port`.
 */
import { canonicalAddress, formatSocket } from '../../../provider/address.js'
import { homePath } from '../../../provider/options.js'
import { printable, quote } from '../../../provider/quote.js'

/** The address of a socket for `node:net`, and its label. */
export interface Address {
  readonly to: { readonly path: string } | { readonly host: string; readonly port: number }
  /** The same for every spelling: `unix:/path`, `abns:name`, `tcp:host:port`. */
  readonly label: string
  /** Whether it is on this machine. */
  readonly local: boolean
}

/** Length of the name of a unix socket; HAProxy fills an abstract name up to it with zeros. */
const SUN_PATH = 108

const EXPECTED =
  "expected the path of a unix socket, host:port, or an address as HAProxy's 'stats socket' has it (unix@/path, abns@name, ipv4@host:port, ipv6@[address]:port)"

/**
 * Parses an address.
 *
 * @returns the address, or a text that says why it is wrong or ambiguous
 */
export function parseAddress(text: string): Address | string {
  if (text.startsWith('\0')) return abstract(text.replace(/\0+$/, '').slice(1))
  if (/[\0\n]/.test(text) || text === '') return EXPECTED
  const scheme = /^([a-z][a-z0-9+]*):(?:\/\/|(?=\/))/i.exec(text)?.[0]
  if (scheme !== undefined) {
    const rest = quote(text.slice(scheme.length))
    return `'${printable(scheme)}' is not how HAProxy writes an address: write ${rest}; ${EXPECTED}`
  }
  const at = /^([a-z][a-z0-9+]*)@(.*)$/s.exec(text)
  if (at === null) return text.includes('/') ? unix(text) : tcp(text)
  const [, family = '', rest = ''] = at
  if (rest === '') return EXPECTED
  switch (family) {
    case 'unix':
      return unix(rest)
    case 'abns':
      return abstract(rest)
    case 'abnsz':
      return { to: { path: `\0${rest}` }, label: `abnsz:${printable(rest)}`, local: true }
    case 'ipv4':
    case 'tcp':
    case 'tcp4':
      return tcp(rest)
    case 'ipv6':
    case 'tcp6':
      return tcp(rest, true)
    default:
      return `'${family}@' is nothing to connect to, ${EXPECTED}`
  }
}

/** Makes the address of a host and a port. */
export function tcpAddress(host: string, port: number): Address {
  const local = /^(localhost|127(\.\d{1,3}){3}|::1)$/i.test(canonicalAddress(host))
  return { to: { host, port }, label: `tcp:${formatSocket(host, port)}`, local }
}

function unix(path: string): Address | string {
  return homePath(path) ?? { to: { path }, label: `unix:${path}`, local: true }
}

function abstract(name: string): Address | string {
  if (name === '' || name.length >= SUN_PATH) return EXPECTED
  const path = `\0${name}`.padEnd(SUN_PATH, '\0')
  return { to: { path }, label: `abns:${printable(name)}`, local: true }
}

/** @param bare - after `ipv6@`, everything before the last colon is the address, with or without brackets */
function tcp(text: string, bare = false): Address | string {
  const colon = text.lastIndexOf(':')
  if (colon === -1)
    return `'${quote(text)}' could be a file or a host: write ./${quote(text)}, or a host with its port`
  const host = text.slice(0, colon).replace(/^\[(.*)\]$/, '$1')
  const port = Number(text.slice(colon + 1))
  if (!/^\d{1,5}$/.test(text.slice(colon + 1)) || port < 1 || port > 65_535) return EXPECTED
  if (host === '' || host === '*') return `'${quote(text)}' has no host to connect to, ${EXPECTED}`
  if (host.includes(':') && !bare && !text.startsWith('['))
    return `'${quote(text)}' could be an address alone: write [${printable(host)}]:${port}`
  if (!/^[A-Za-z0-9_.:%-]+$/.test(host)) return EXPECTED
  return tcpAddress(host, port)
}
