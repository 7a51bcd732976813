import { DrainableError } from './error.js'

/**
 * Returns the one spelling of an address that is used for comparisons: IPv6 in its short lower-case form without
 * brackets, an IPv4 address inside IPv6 (`::ffff:10.0.0.1`) as IPv4, names in lower case. What follows a `%` (a route
 * domain of BIG-IP, a zone of a link-local address) is kept: `10.0.0.1%1` is not `10.0.0.1`. Anything else, such as
 * the path of a socket, is returned as it is.
 *
 * @example
 * ```ts
 * import { canonicalAddress } from 'drainable/endpoints'
 *
 * canonicalAddress('[2001:DB8:0:0::1]') // '2001:db8::1'
 * ```
 */
export function canonicalAddress(text: string): string {
  assertText(text, 'canonicalAddress()')
  if (text.startsWith('/')) return text
  if (!text.includes(':')) return text.toLowerCase()
  if (isShortIPv6(text)) return text
  const bare = text.startsWith('[') && text.endsWith(']') ? text.slice(1, -1) : text
  const percent = bare.indexOf('%')
  const head = percent < 0 ? bare : bare.slice(0, percent)
  const domain = percent < 0 ? '' : bare.slice(percent)
  const short = shortIPv6(head)
  return short === undefined ? text.toLowerCase() : short + domain
}

/** Refuses a value that is not a text; for callers in JavaScript. */
export function assertText(text: unknown, subject: string): void {
  if (typeof text === 'string') return
  const words = `${subject}: expected an address as a text, such as '10.0.0.1', found ${text === null ? 'null' : typeof text}`
  throw new DrainableError('INVALID_OPTIONS', words)
}

/**
 * Formats an address and a port as one text: `10.0.0.1:80`, `[2001:db8::1]:80`; without a port, the address alone.
 */
export function formatAddress(address: string, port?: number): string {
  assertText(address, 'formatAddress()')
  if (port === undefined) return address
  const bare = address.includes(':') && !address.startsWith('[') && !address.startsWith('/')
  return bare ? `[${address}]:${port}` : `${address}:${port}`
}

/**
 * Formats address and port as one text, the same for every spelling of the address: `10.0.0.1:80`,
 * `[2001:db8::1]:80`. Used to compare sockets.
 */
export function formatSocket(address: string, port: number): string {
  const canonical = canonicalAddress(address)
  const bare = canonical.includes(':') && !canonical.startsWith('/')
  return bare ? `[${canonical}]:${port}` : `${canonical}:${port}`
}

/**
 * Whether a text is already an IPv6 address in its short form, as nearly all from Kubernetes are. One pass, no
 * allocation. `false` is inconclusive: parse the text.
 */
// eslint-disable-next-line complexity -- one pass without an allocation, run for every address of every set
function isShortIPv6(text: string): boolean {
  if (text.startsWith('::ffff:')) return false
  let groups = 0
  let length = 0 // of the group at hand
  let zero = false // is the group at hand 0?
  let run = 0 // of groups that are 0
  let runs = 0 // of two or more of them
  let gap = -1 // how many groups are before the ::
  for (let i = 0; i <= text.length; i++) {
    const code = i === text.length ? COLON : text.charCodeAt(i)
    if (code === COLON) {
      if (length > 0) {
        groups++
        run = zero ? run + 1 : 0
        if (run === 2) runs++
        length = 0
        if (i + 1 < text.length && text.charCodeAt(i + 1) === COLON) {
          if (gap >= 0 || run > 0) return false
          gap = groups
          i++
        } else if (i === text.length - 1) return false
      } else if (i === 0 && text.charCodeAt(1) === COLON) {
        gap = 0
        i++
      } else if (i < text.length || gap !== groups) return false
      continue
    }
    const isDigit = code >= 48 && code <= 57
    if (!isDigit && (code < 97 || code > 102)) return false
    if (length > 0 && zero) return false
    if (length === 0) zero = code === 48
    if (length === 0 && zero && gap === groups) return false
    if (++length > 4) return false
  }
  if (runs > 0) return false
  return gap < 0 ? groups === 8 : groups <= 6
}

const COLON = 58

/** An IPv6 address as a URL has it: short, lower case, zeros left out once; undefined if the text is not one. */
function shortIPv6(text: string): string | undefined {
  const host = /^[\da-f:.]+$/i.test(text) ? URL.parse(`http://[${text}]`)?.hostname : undefined
  const short = host?.slice(1, -1)
  const [, high, low] = /^::ffff:([\da-f]+):([\da-f]+)$/.exec(short ?? '') ?? []
  if (high === undefined || low === undefined) return short
  return [high, low].flatMap((half) => bytesOf(Number.parseInt(half, 16))).join('.')
}

function bytesOf(half: number): [number, number] {
  return [half >> 8, half & 255]
}
