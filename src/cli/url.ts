import { DrainableError } from '../provider/error.js'
import { nearest, quote, quotedList } from '../provider/quote.js'

/** A balancer as its URL names it: the product, where it is, and the options of its adapter. */
export interface BalancerUrl {
  readonly scheme: Scheme
  /** The path of a socket or file, `host:port`, or an http(s) URL. */
  readonly at: string
  readonly username?: string
  /** The options of the adapter, from the query. The adapter's factory checks them. */
  readonly options: Readonly<Record<string, unknown>>
}

const SCHEMES = {
  haproxy: 'haproxy:/run/haproxy/admin.sock?master=/run/haproxy-master.sock',
  dataplane: 'dataplane+https://lb1.example:5555',
  bigip: 'bigip+https://bigip1.example',
  citrix: 'citrix+https://adc1.example',
  envoy: 'envoy+file:/etc/envoy/eds/web.json?admin=http://127.0.0.1:9901',
  'envoy-listener': 'envoy-listener+http://127.0.0.1:9901',
} as const

/** The products that a URL can name. */
export type Scheme = keyof typeof SCHEMES

/** Parts of names of what must not stand in a URL: a process list and a shell's history show it. */
const SECRET = /pass(?:word|wd)?$|secret|token|credential/i

/**
 * Reads the URL of a balancer.
 *
 * A query names options of the adapter: `?replyTimeout=2s&maintCuts=true`. A dot makes a part: `?tls.ca=/etc/ca.pem`,
 * `?oldWorkers.within=30s`. A name that stands twice is a list.
 *
 * @throws `INVALID_OPTIONS` that says what was expected, and never repeats a secret
 */
export function parseBalancerUrl(text: string): BalancerUrl {
  const [, name = '', transport = '', rest = ''] =
    /^([a-z][a-z-]*)(?:\+([a-z]+))?:(.*)$/s.exec(text) ?? []
  if (!isScheme(name)) throw unknownScheme(name)
  const parsed = read(name, transport, rest)
  if (parsed.password !== '') throw secretIn('the URL', 'a password')
  const options: Record<string, unknown> = {}
  for (const key of new Set(parsed.searchParams.keys())) {
    if (SECRET.test(key)) throw secretIn('the URL', `'${quote(key, 40)}'`)
    put(options, key, parsed.searchParams.getAll(key))
  }
  const at = place(name, transport, parsed)
  const username = decoded(name, parsed.username)
  return { scheme: name, at, ...(username === '' ? {} : { username }), options }
}

/** Whether a text is a URL of a balancer, and not a name from the configuration. */
export function looksLikeUrl(text: string): boolean {
  return text.includes(':')
}

/** The refusal of a secret in a place that others can read. The secret itself is not repeated. */
export function secretIn(place: string, what: string): DrainableError {
  return new DrainableError(
    'INVALID_OPTIONS',
    `${place} holds ${what}, which process lists and shell histories show; set DRAINABLE_PASSWORD, or name a file with --password-file or DRAINABLE_PASSWORD_FILE`,
  )
}

function isScheme(name: string): name is Scheme {
  return Object.hasOwn(SCHEMES, name)
}

function unknownScheme(name: string): DrainableError {
  const near = nearest(name, Object.keys(SCHEMES))
  const meant = near === undefined ? '' : `; did you mean '${near}'?`
  const known = `${quotedList(Object.keys(SCHEMES))}, such as ${SCHEMES.haproxy} or ${SCHEMES.bigip}`
  const found = name === '' ? 'it begins with no product' : `it begins with '${quote(name, 40)}'`
  return new DrainableError(
    'INVALID_OPTIONS',
    `the balancer's URL: ${found}; expected one of ${known}${meant}`,
  )
}

function wrong(name: Scheme, why: string, cause?: unknown): DrainableError {
  return new DrainableError(
    'INVALID_OPTIONS',
    `the balancer's URL: ${why}; expected the form ${SCHEMES[name]}`,
    { cause },
  )
}

/** Every product but two is reached over http(s); a query works alike in all of them. */
function read(name: Scheme, transport: string, rest: string): URL {
  const expected =
    name === 'haproxy' ? [''] : name === 'envoy' ? ['file'] : (['https', 'http'] as const)
  if (!expected.some((one) => one === transport)) {
    const found = transport === '' ? 'it names no transport' : `it names '+${quote(transport, 20)}'`
    throw wrong(name, found)
  }
  const base = transport === 'file' || transport === '' ? 'x' : transport
  const parsed = URL.parse(`${base}:${rest}`)
  if (parsed === null) throw wrong(name, 'it can not be read')
  return parsed
}

function place(name: Scheme, transport: string, parsed: URL): string {
  if (transport === 'http' || transport === 'https') {
    const prefix = parsed.pathname === '/' ? '' : parsed.pathname
    return `${parsed.protocol}//${parsed.host}${prefix}`
  }
  if (name === 'haproxy' && parsed.host !== '') {
    if (parsed.port === '') throw wrong(name, `'${quote(parsed.hostname, 80)}' has no port`)
    return parsed.host
  }
  if (parsed.host !== '')
    throw wrong(name, `'${quote(parsed.host, 80)}' is a host, and this is a file`)
  const path = decoded(name, parsed.pathname)
  if (!path.startsWith('/')) throw wrong(name, 'its path is not absolute')
  return path
}

function decoded(name: Scheme, text: string): string {
  try {
    return decodeURIComponent(text)
  } catch (cause) {
    throw wrong(name, `a '%' in it stands for no character, write '%25' for one`, cause)
  }
}

/** `tls.ca` is the part `ca` of `tls`. */
function put(options: Record<string, unknown>, key: string, values: readonly string[]): void {
  const read = values.map(toValue)
  const value = read.length === 1 ? read[0] : read
  const dot = key.indexOf('.')
  if (dot < 0) {
    options[key] = value
    return
  }
  const outer = key.slice(0, dot)
  const inside = options[outer]
  const part = typeof inside === 'object' && inside !== null ? inside : {}
  options[outer] = { ...part, [key.slice(dot + 1)]: value }
}

function toValue(text: string): unknown {
  if (text === 'true') return true
  if (text === 'false') return false
  return /^\d{1,15}$/.test(text) ? Number(text) : text
}
