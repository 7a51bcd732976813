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
  const groups = parseIPv6(head)
  return groups === undefined ? text.toLowerCase() : formatIPv6(groups) + domain
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

/** The eight groups of an IPv6 address, or undefined if the text is not one. */
function parseIPv6(text: string): number[] | undefined {
  const halves = text.split('::')
  if (halves.length > 2) return undefined
  const [left = '', right] = halves
  const head = parseGroups(left, right === undefined)
  const tail = right === undefined ? [] : parseGroups(right, true)
  if (head === undefined || tail === undefined) return undefined
  const missing = 8 - head.length - tail.length
  if (right === undefined ? missing !== 0 : missing < 1) return undefined
  return [...head, ...new Array<number>(missing).fill(0), ...tail]
}

/** @param last - whether these groups end the address, where a dotted IPv4 is allowed */
function parseGroups(text: string, last: boolean): number[] | undefined {
  if (text === '') return []
  const parts = text.split(':')
  const groups: number[] = []
  for (const [i, part] of parts.entries()) {
    if (last && i === parts.length - 1 && part.includes('.')) {
      const dotted = parseDotted(part)
      if (dotted === undefined) return undefined
      groups.push(...dotted)
    } else {
      if (!/^[0-9a-f]{1,4}$/i.test(part)) return undefined
      groups.push(Number.parseInt(part, 16))
    }
  }
  return groups
}

function parseDotted(text: string): [number, number] | undefined {
  const match = /^(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})$/.exec(text)
  if (!match) return undefined
  const [a = 256, b = 256, c = 256, d = 256] = match.slice(1).map(Number)
  if (a > 255 || b > 255 || c > 255 || d > 255) return undefined
  return [a * 256 + b, c * 256 + d]
}

function formatIPv6(groups: readonly number[]): string {
  const [, , , , , marker, high = 0, low = 0] = groups
  if (marker === 0xffff && groups.slice(0, 5).every((group) => group === 0)) {
    return [high >> 8, high & 255, low >> 8, low & 255].join('.')
  }
  const { start, length } = longestZeroRun(groups)
  const hex = groups.map((group) => group.toString(16))
  if (length < 2) return hex.join(':')
  return `${hex.slice(0, start).join(':')}::${hex.slice(start + length).join(':')}`
}

function longestZeroRun(groups: readonly number[]): { start: number; length: number } {
  let best = { start: 0, length: 0 }
  let start = 0
  for (const [i, group] of groups.entries()) {
    if (group !== 0) start = i + 1
    else if (i + 1 - start > best.length) best = { start, length: i + 1 - start }
  }
  return best
}
