import {
  parseAnswer,
  parseBootStamp,
  parseServerInfo as parseInfo,
  statName,
  type ServerInfo as Info,
} from '../../../kit/envoy/answers.js'
import {
  isObject,
  malformed,
  type JsonObject,
  type JsonValue,
  type Source,
} from '../../../kit/json.js'
import { isIP } from '../../../provider/builtins.js'
import { formatSocket } from '../../../provider/address.js'
import { quote } from '../../../provider/quote.js'
import { INNER, type Inner } from './inner.js'

/** Name of the provider, for errors. */
export const PROVIDER = 'envoy-listener'

export type ServerState = 'LIVE' | 'DRAINING' | 'PRE_INITIALIZING' | 'INITIALIZING'

export type ServerInfo = Omit<Info, 'state'> & { readonly state: ServerState }

const STATES: readonly string[] = ['LIVE', 'DRAINING', 'PRE_INITIALIZING', 'INITIALIZING']

export function parseServerInfo(text: string, from: string): ServerInfo {
  const source = sourceOf('/server_info', from)
  const info = parseInfo(text, source)
  const { state } = info
  if (STATES.includes(state)) return { ...info, state: state as ServerState }
  throw malformed(source, `state: one of ${STATES.join(', ')}`, `'${quote(state)}'`)
}

/** `/config_dump?mask=last_updated`: when this process read its bootstrap. */
export function parseStart(text: string, from: string): string {
  const source = sourceOf('/config_dump', from)
  const stamp = parseBootStamp(text, source)
  if (stamp !== undefined) return stamp
  throw malformed(source, 'last_updated, the moment of its start', 'none')
}

const HEALTH_CHECK = '.health_check.v3.HealthCheck'
const CONNECTION_MANAGER = '.http_connection_manager.v3.HttpConnectionManager'
const UDP_PROXY = '.udp_proxy.v3.UdpProxyConfig'
/** Deeper than filters in filters go. */
const DEEPEST = 60

/** Names that the statistics of some listeners go by. Inner listeners are left out. */
export interface StatNames {
  /** `stat_prefix` of every HTTP connection manager. */
  readonly http: readonly string[]
  /** Every listener with an IP address: its address, or its `stat_prefix`. Those of UDP are left out. */
  readonly listeners: readonly string[]
  /** `stat_prefix` of every UDP proxy. */
  readonly udp: readonly string[]
}

/** What its listeners are made of, as far as a drain depends on it. */
export interface Listeners {
  /** Whether a health check filter is among their HTTP filters, and not switched off. */
  readonly hasHealthCheck: boolean
  readonly active: StatNames
  /** Of those that were removed or replaced, and whose connections go on. */
  readonly draining: StatNames
  /** How many there are that clients connect to. */
  readonly total: number
  readonly inner: Inner
}

/** `/config_dump?resource=static_listeners` and `dynamic_listeners`. */
export function parseListeners(texts: readonly string[], from: string): Listeners {
  const active = new Finds()
  const draining = new Finds()
  const inner = new Finds()
  let total = 0
  for (const text of texts) {
    for (const config of parseAnswer(text, sourceOf('/config_dump', from)).at('configs').rows()) {
      const own = config.at('listener')
      // Of a dynamic one, what is in force is the active state; one that warms up takes no work.
      const listener = own.present ? own : config.at('active_state').at('listener')
      const going = config.at('draining_state').at('listener')
      if (going.present) (isInner(going) ? inner : draining).add(going)
      if (!listener.present) continue
      if (isInner(listener)) {
        inner.add(listener)
        continue
      }
      total += 1
      active.add(listener)
    }
  }
  const found = { active: active.names(), draining: draining.names(), total }
  return {
    ...found,
    hasHealthCheck: active.hasHealthCheck || inner.hasHealthCheck,
    inner: innerOf(inner.names(), found),
  }
}

function isInner(listener: JsonValue): boolean {
  return listener.at('internal_listener').present
}

function innerOf(
  { http, listeners }: StatNames,
  { active, draining }: Pick<Listeners, 'active' | 'draining'>,
): Inner {
  const others = new Set([...active.http, ...draining.http])
  const outer = new Set([...active.listeners, ...draining.listeners])
  return {
    outer,
    listeners: new Set(listeners.filter((name) => !outer.has(name))),
    http: new Set(http.filter((name) => !others.has(name))),
    shared: new Set(http.filter((name) => others.has(name))),
  }
}

/** What is found in the configuration of listeners. */
class Finds {
  hasHealthCheck = false
  readonly #http = new Set<string>()
  readonly #listeners = new Set<string>()
  readonly #udp = new Set<string>()

  add(listener: JsonValue): void {
    const name = listenerName(listener)
    if (name !== undefined) this.#listeners.add(name)
    this.#visit(listener, 0)
  }

  names(): StatNames {
    const [http, listeners, udp] = [this.#http, this.#listeners, this.#udp].map((names) =>
      [...names].sort(),
    )
    return { http: http ?? [], listeners: listeners ?? [], udp: udp ?? [] }
  }

  #visit(found: JsonValue, depth: number): void {
    const { value } = found
    if (depth > DEEPEST) return
    if (typeof value === 'string') {
      this.hasHealthCheck ||= value.endsWith(HEALTH_CHECK)
      return
    }
    if (Array.isArray(value)) {
      for (const inner of found.list()) this.#visit(inner, depth + 1)
      return
    }
    if (!isObject(value)) return
    for (const [type, names] of [
      [CONNECTION_MANAGER, this.#http],
      [UDP_PROXY, this.#udp],
    ] as const) {
      const prefix = isOfType(value, type) ? found.at('stat_prefix').text() : undefined
      if (prefix !== undefined) names.add(statName(prefix))
    }
    // A filter that is disabled takes part only where a route enables it.
    const isFilter = 'typed_config' in value || 'config_discovery' in value
    if (isFilter && found.at('disabled').flag() === true) return
    for (const [, inner] of found.fields()) this.#visit(inner, depth + 1)
  }
}

/** Undefined: it is not known how Envoy writes it. */
function listenerName(listener: JsonValue): string | undefined {
  const socket = listener.at('address').at('socket_address')
  const isUdp = socket.at('protocol').word() === 'UDP'
  const prefix = listener.at('stat_prefix').text() ?? ''
  if (isUdp || prefix !== '') return isUdp ? undefined : statName(prefix)
  if (isInner(listener)) return `${INNER}${statName(listener.at('name').text() ?? '')}`
  const address = socket.at('address').text() ?? ''
  const port = socket.at('port_value').digits() ?? 0
  const family = isIP(address)
  const name = formatSocket(address, port)
  // An IPv4 address inside of IPv6, or one with a zone, Envoy may write in another way.
  const isPlain = family === 6 ? name.startsWith('[') && !name.includes('%') : family === 4
  // Each colon becomes one underscore: `[__1]_8080`.
  return isPlain ? name.replaceAll(':', '_') : undefined
}

function isOfType({ '@type': type }: JsonObject, wanted: string): boolean {
  return typeof type === 'string' && type.endsWith(wanted)
}

export function sourceOf(path: string, from: string): Source {
  return { provider: PROVIDER, what: `${from} ${path}` }
}
