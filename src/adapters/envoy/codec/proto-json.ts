/**
 * Proto3 JSON that people and products write: field names in snake_case or camelCase, `null` is absent.
 * What is there in another shape is told by its path.
 */
import { isObject, type JsonObject } from '../../../kit/json.js'
import { formatSocket } from '../../../provider/address.js'
import type { Json } from '../../../provider/contract.js'
import { quote } from '../../../provider/quote.js'
import { canonicalMember } from './address.js'
import { AssignmentProblem } from './assignment.js'

/**
 * What `/clusters` would call this address. What is there in another shape is no address of its own.
 *
 * @throws AssignmentProblem with the path of what is wrong
 */
export function addressOf(
  value: unknown,
  at = 'address',
): { member: string | undefined; address?: string; port?: number } {
  const outer = objectAt(value, at)
  if (outer === undefined) return { member: undefined }
  const socket = objectAt(field(outer, 'socket_address'), join(at, 'socket_address'))
  if (socket !== undefined) {
    const inner = join(at, 'socket_address')
    const address = textAt(field(socket, 'address'), join(inner, 'address'))
    const port = portAt(field(socket, 'port_value'), join(inner, 'port_value'))
    if (address === undefined || port === undefined) return { member: undefined }
    return { member: formatSocket(address, port), address, port }
  }
  const pipe = objectAt(field(outer, 'pipe'), join(at, 'pipe'))
  const path = textAt(pipe?.['path'], join(at, 'pipe.path'))
  if (path !== undefined) return { member: path, address: path }
  const internal = objectAt(
    field(outer, 'envoy_internal_address'),
    join(at, 'envoy_internal_address'),
  )
  if (internal === undefined) return { member: undefined }
  const name = textAt(field(internal, 'server_listener_name'), join(at, 'server_listener_name'))
  const id = textAt(field(internal, 'endpoint_id'), join(at, 'endpoint_id'))
  return { member: name === undefined ? undefined : canonicalMember(`envoy://${name}/${id ?? ''}`) }
}

export function objectAt(value: unknown, at: string): JsonObject | undefined {
  if (value === undefined || value === null) return undefined
  if (isObject(value)) return value
  throw new AssignmentProblem(at, `expected an object, found ${typeName(value)}`)
}

export function textAt(value: Json | undefined, at: string): string | undefined {
  if (value === undefined || value === null || value === '') return undefined
  if (typeof value === 'string') return value
  throw new AssignmentProblem(at, `expected a text, found ${typeName(value)}`)
}

export function portAt(value: Json | undefined, at: string): number | undefined {
  if (value === undefined || value === null) return undefined
  const port = typeof value === 'string' && /^\d{1,5}$/.test(value) ? Number(value) : value
  if (typeof port === 'number' && Number.isInteger(port) && port >= 0 && port <= 65_535) return port
  throw new AssignmentProblem(at, `expected a port, found ${shown(value)}`)
}

export function withoutKeys(value: JsonObject, ...keys: readonly string[]): JsonObject {
  return Object.fromEntries(Object.entries(value).filter(([key]) => !keys.includes(key)))
}

/** A field by its proto name, whichever way the text spells it. */
export function field(value: JsonObject, name: string): Json | undefined {
  return value[keyOf(value, name)]
}

export function keyOf(value: JsonObject, name: string): string {
  if (name in value || !name.includes('_')) return name
  const camel = camelOf(name)
  return camel in value ? camel : name
}

/** Of the few names that our code asks for, of each endpoint again. */
const camels = new Map<string, string>()

function camelOf(name: string): string {
  let camel = camels.get(name)
  if (camel === undefined) {
    camel = name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase())
    camels.set(name, camel)
  }
  return camel
}

export function arrayAt(value: JsonObject, name: string, at: string): readonly Json[] {
  const found = field(value, name)
  if (found === undefined || found === null) return []
  if (Array.isArray(found)) return found as readonly Json[]
  throw new AssignmentProblem(join(at, name), `expected a list, found ${typeName(found)}`)
}

export function join(at: string, name: string): string {
  return at === '' ? name : `${at}.${name}`
}

/** A value for a message: short, and one line. */
export function shown(value: unknown): string {
  return quote(JSON.stringify(value), 80)
}

export function typeName(value: unknown): string {
  if (value === null) return 'null'
  return Array.isArray(value) ? 'a list' : typeof value
}

/** One text for each value, whatever the order of its keys: a map of protobuf has none. */
export function canonical(value: unknown): string {
  return JSON.stringify(sorted(value))
}

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted)
  if (!isObject(value)) return value
  const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1))
  return Object.fromEntries(entries.map(([key, inner]) => [key, sorted(inner)]))
}
