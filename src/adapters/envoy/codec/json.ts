/**
 * EDS JSON: what a file sink holds, what REST xDS sends, and what `/config_dump?include_eds` shows.
 *
 * It is proto3 JSON: field names in snake_case or camelCase, `null` is absent, an enum is a name in
 * any case or a number, a wrapper is its bare value. Envoy drops what it cannot read in silence:
 * `"health_status": "DRAINNG"` is HEALTHY and counted as a success. So statuses are written here
 * from a closed list, and a set that contains one Envoy would misread is refused with its path.
 * One weight of 0 makes Envoy reject the whole set.
 */
import { createHash } from 'node:crypto'
import { isObject, type JsonObject } from '../../../kit/json.js'
import type { Json } from '../../../provider/contract.js'
import { quote } from '../../../provider/quote.js'
import { formatAddress } from './address.js'
import {
  AssignmentProblem,
  deduplicated,
  formatLocality,
  parseLocality,
  type Assignment,
  type Endpoint,
  type EndpointNative,
  type NewEndpoint,
} from './assignment.js'
import {
  addressOf,
  arrayAt,
  field,
  join,
  keyOf,
  objectAt,
  shown,
  typeName,
  withoutKeys,
} from './proto-json.js'
import { toEdsStatus, type EdsStatus } from './status.js'

export const CLA_TYPE = 'type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment'
const DEFAULT_OVERPROVISIONING = 140

interface Group {
  readonly raw: JsonObject
  readonly priority: number
  readonly locality: string
  readonly endpoints: readonly JsonEndpoint[]
}

/** One `ClusterLoadAssignment` in JSON. */
export class JsonAssignment implements Assignment {
  readonly cluster: string
  readonly endpoints: readonly JsonEndpoint[]
  readonly overprovisioning: number
  readonly isWeighted: boolean
  readonly #raw: JsonObject
  readonly #groups: readonly Group[]
  #version: string | undefined

  private constructor(raw: JsonObject, groups: readonly Group[], cluster: string) {
    this.#raw = raw
    this.#groups = groups
    this.cluster = cluster
    this.endpoints = groups.flatMap((group) => group.endpoints)
    const policy = field(raw, 'policy')
    const factor = isObject(policy) ? field(policy, 'overprovisioning_factor') : undefined
    this.overprovisioning = typeof factor === 'number' ? factor : DEFAULT_OVERPROVISIONING
    this.isWeighted = isObject(policy) && field(policy, 'weighted_priority_health') === true
  }

  /** @throws AssignmentProblem with the path of what is wrong */
  static parse(value: unknown, at = ''): JsonAssignment {
    if (!isObject(value)) {
      throw new AssignmentProblem(at, `expected a ClusterLoadAssignment, found ${typeName(value)}`)
    }
    const type = value['@type']
    if (type !== undefined && type !== CLA_TYPE) {
      throw new AssignmentProblem(join(at, '@type'), `expected '${CLA_TYPE}', found ${shown(type)}`)
    }
    const cluster = field(value, 'cluster_name')
    if (typeof cluster !== 'string' || cluster === '') {
      throw new AssignmentProblem(
        join(at, 'cluster_name'),
        'expected the name of the endpoint set (the EDS service name of the cluster)',
      )
    }
    const groups = arrayAt(value, 'endpoints', at).map((group, i) =>
      parseGroup(group, `${join(at, 'endpoints')}[${i}]`, i),
    )
    const lists = deduplicated(
      groups.map((group) => group.endpoints),
      (endpoint) => endpoint.to('DRAINING'),
    )
    const unique = groups.map((group, i) => ({ ...group, endpoints: lists[i] ?? [] }))
    return new JsonAssignment(value, unique, cluster)
  }

  get version(): string {
    this.#version ??= createHash('sha256')
      .update(JSON.stringify(this.toJson()))
      .digest('hex')
      .slice(0, 16)
    return this.#version
  }

  /** The resource as it goes out, `@type` first. */
  toJson(): JsonObject {
    const rest = withoutKeys(this.#raw, '@type')
    const key = keyOf(rest, 'endpoints')
    const endpoints = this.#groups.map((group) => ({
      ...group.raw,
      [keyOf(group.raw, 'lb_endpoints')]: group.endpoints.map((endpoint) => endpoint.raw),
    }))
    return { '@type': CLA_TYPE, ...rest, [key]: endpoints }
  }

  withStatus(edits: ReadonlyMap<string, EdsStatus>): JsonAssignment {
    return this.#map((endpoint) => {
      const status = endpoint.member === undefined ? undefined : edits.get(endpoint.member)
      return status === undefined || status === endpoint.status ? endpoint : endpoint.to(status)
    })
  }

  without(members: ReadonlySet<string>): JsonAssignment {
    return this.#map((endpoint) =>
      endpoint.member !== undefined && members.has(endpoint.member) ? undefined : endpoint,
    )
  }

  withEndpoint(added: NewEndpoint): JsonAssignment {
    const native = added.native
    const raw =
      native !== undefined && isObject(native.endpoint)
        ? native.endpoint
        : {
            endpoint: { address: formatAddress(added.address, added.port) },
            ...(added.weight === undefined ? {} : { load_balancing_weight: added.weight }),
          }
    const groups = [...this.#groups]
    let index = native === undefined ? 0 : placeOf(groups, native)
    if (index === -1 || groups[index] === undefined) {
      index = groups.length
      const priority = native?.priority ?? 0
      const [region, zone, sub_zone] = parseLocality(native?.locality ?? '')
      const locality = Object.fromEntries(
        Object.entries({ region, zone, sub_zone }).filter(([, value]) => value),
      ) as JsonObject
      groups.push(
        group(
          { ...(native === undefined ? {} : { locality }), ...(priority ? { priority } : {}) },
          [],
        ),
      )
    }
    const target = groups[index]
    if (target === undefined) return this
    const endpoints = [...target.endpoints]
    const endpoint = parseEndpoint(raw, 'native.endpoint', target, [index, endpoints.length])
    endpoints.splice(Math.min(native?.place[1] ?? endpoints.length, endpoints.length), 0, endpoint)
    groups[index] = { ...target, endpoints }
    return new JsonAssignment(this.#raw, groups, this.cluster)
  }

  #map(edit: (endpoint: JsonEndpoint) => JsonEndpoint | undefined): JsonAssignment {
    const groups = this.#groups.map((group) => {
      const endpoints = group.endpoints.flatMap((endpoint) => edit(endpoint) ?? [])
      const same =
        endpoints.length === group.endpoints.length &&
        endpoints.every((endpoint, i) => endpoint === group.endpoints[i])
      return same ? group : { ...group, endpoints }
    })
    if (groups.every((group, i) => group === this.#groups[i])) return this
    return new JsonAssignment(this.#raw, groups, this.cluster)
  }
}

/** One `LbEndpoint` in JSON. */
export class JsonEndpoint implements Endpoint {
  readonly member: string | undefined
  readonly address: string | undefined
  readonly port: number | undefined
  readonly hostname: string | undefined
  readonly status: EdsStatus | undefined
  readonly weight: number | undefined
  readonly priority: number
  readonly labels: JsonObject | undefined
  readonly raw: JsonObject
  readonly #locality: string
  readonly #place: readonly [number, number]
  readonly #before: JsonEndpoint | undefined

  constructor(
    fields: Omit<Endpoint, 'native'>,
    raw: JsonObject,
    locality: string,
    place: readonly [number, number],
    before?: JsonEndpoint,
  ) {
    this.member = fields.member
    this.address = fields.address
    this.port = fields.port
    this.hostname = fields.hostname
    this.status = fields.status
    this.weight = fields.weight
    this.priority = fields.priority
    this.labels = fields.labels
    this.raw = raw
    this.#locality = locality
    this.#place = place
    this.#before = before
  }

  /** The same endpoint with another status. `UNKNOWN` is written by leaving the field out. */
  to(status: EdsStatus): JsonEndpoint {
    if (this.#before?.status === status) return this.#before
    const key = keyOf(this.raw, 'health_status')
    const rest = withoutKeys(this.raw, key)
    // A spread keeps a field's place, so that a set that is put back is the same text again.
    const { member, address, port, hostname, weight, priority, labels } = this
    const raw = status === 'UNKNOWN' ? rest : { ...this.raw, [key]: status }
    return new JsonEndpoint(
      { member, address, port, hostname, status, weight, priority, labels },
      raw,
      this.#locality,
      this.#place,
      this.#before ?? this,
    )
  }

  native(): EndpointNative {
    return {
      status: this.status ?? 'UNKNOWN',
      ...(this.weight === undefined ? {} : { weight: this.weight }),
      priority: this.priority,
      locality: this.#locality,
      place: this.#place,
      endpoint: this.raw,
    }
  }
}

/** What a file or a REST reply holds: the resources, and everything around them. */
export interface EdsDocument {
  readonly version: string | undefined
  readonly assignments: readonly JsonAssignment[]
  /** Everything but version and resources. */
  readonly rest: JsonObject
}

/** @throws AssignmentProblem with the path of what is wrong */
export function parseEdsJson(text: string): EdsDocument {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (cause) {
    throw new AssignmentProblem(
      '',
      `not JSON: ${cause instanceof Error ? quote(cause.message) : 'unreadable'}`,
    )
  }
  return parseEdsValue(value)
}

/**
 * The same, parsed already.
 *
 * @throws AssignmentProblem with the path of what is wrong
 */
export function parseEdsValue(value: unknown): EdsDocument {
  if (!isObject(value)) {
    throw new AssignmentProblem('', `expected an object with resources, found ${typeName(value)}`)
  }
  const resources = field(value, 'resources')
  if (!Array.isArray(resources)) {
    throw new AssignmentProblem(
      'resources',
      'expected a list of ClusterLoadAssignment resources, these are no endpoint sets',
    )
  }
  const version = field(value, 'version_info')
  const rest = withoutKeys(value, keyOf(value, 'version_info'), keyOf(value, 'resources'))
  return {
    version: typeof version === 'string' ? version : undefined,
    assignments: resources.map((resource, i) => JsonAssignment.parse(resource, `resources[${i}]`)),
    rest,
  }
}

/** The text of a file that Envoy reads, or of a REST reply. */
export function formatEdsJson(
  version: string,
  assignments: readonly JsonAssignment[],
  rest: JsonObject = {},
): string {
  return JSON.stringify({
    version_info: version,
    ...rest,
    resources: assignments.map((assignment) => assignment.toJson()),
  })
}

function parseGroup(value: unknown, at: string, index: number): Group {
  if (!isObject(value))
    throw new AssignmentProblem(at, `expected an object, found ${typeName(value)}`)
  checkWeight(field(value, 'load_balancing_weight'), join(at, 'load_balancing_weight'))
  const base = group(value, [])
  const endpoints = arrayAt(value, 'lb_endpoints', at).map((endpoint, i) =>
    parseEndpoint(endpoint, `${join(at, 'lb_endpoints')}[${i}]`, base, [index, i]),
  )
  return { ...base, endpoints }
}

function group(raw: JsonObject, endpoints: readonly JsonEndpoint[]): Group {
  const locality = field(raw, 'locality')
  const part = (name: string): string => {
    const value = isObject(locality) ? field(locality, name) : undefined
    return typeof value === 'string' ? value : ''
  }
  return {
    raw,
    priority: priorityOf(field(raw, 'priority')),
    locality: formatLocality([part('region'), part('zone'), part('sub_zone')]),
    endpoints,
  }
}

function parseEndpoint(
  value: unknown,
  at: string,
  group: Group,
  place: readonly [number, number],
): JsonEndpoint {
  if (!isObject(value))
    throw new AssignmentProblem(at, `expected an object, found ${typeName(value)}`)
  const weight = checkWeight(
    field(value, 'load_balancing_weight'),
    join(at, 'load_balancing_weight'),
  )
  const inner = objectAt(field(value, 'endpoint'), join(at, 'endpoint')) ?? {}
  const hostname = field(inner, 'hostname')
  return new JsonEndpoint(
    {
      ...addressOf(field(inner, 'address'), join(at, 'endpoint.address')),
      hostname: typeof hostname === 'string' && hostname !== '' ? hostname : undefined,
      status: parseStatus(field(value, 'health_status'), join(at, 'health_status')),
      weight,
      priority: group.priority,
      labels: labelsOf(field(value, 'metadata')),
    },
    value,
    group.locality,
    place,
  )
}

/** What another shape holds Envoy would refuse, so it makes no subset. */
function labelsOf(metadata: Json | undefined): JsonObject | undefined {
  const filters = isObject(metadata) ? field(metadata, 'filter_metadata') : undefined
  const labels = isObject(filters) ? filters['envoy.lb'] : undefined
  return isObject(labels) ? labels : undefined
}

function parseStatus(value: Json | undefined, at: string): EdsStatus | undefined {
  if (value === undefined || value === null) return 'UNKNOWN'
  if (typeof value === 'number') return toEdsStatus(value)
  const status = typeof value === 'string' ? toEdsStatus(value) : undefined
  if (status !== undefined) return status
  throw new AssignmentProblem(
    at,
    `${shown(value)} is no health status, Envoy would read it as HEALTHY without a word; expected one of UNKNOWN, HEALTHY, UNHEALTHY, DRAINING, TIMEOUT, DEGRADED`,
  )
}

function checkWeight(value: Json | undefined, at: string): number | undefined {
  if (value === undefined || value === null) return undefined
  const weight = typeof value === 'string' ? Number(value) : value
  if (typeof weight === 'number' && Number.isInteger(weight) && weight >= 1 && weight < 2 ** 32) {
    return weight
  }
  throw new AssignmentProblem(
    at,
    `${shown(value)} is no weight: Envoy takes whole numbers from 1 on and rejects the whole set otherwise; to send nothing new to an endpoint, drain it`,
  )
}

function placeOf(groups: readonly Group[], native: EndpointNative): number {
  const fits = (group: Group | undefined): boolean =>
    group !== undefined && group.priority === native.priority && group.locality === native.locality
  return fits(groups[native.place[0]]) ? native.place[0] : groups.findIndex(fits)
}

function priorityOf(value: Json | undefined): number {
  const priority = typeof value === 'string' && /^\d{1,3}$/.test(value) ? Number(value) : value
  if (priority === undefined || priority === null) return 0
  if (typeof priority === 'number' && Number.isInteger(priority) && priority >= 0) return priority
  throw new AssignmentProblem('priority', `expected a whole number, found ${shown(value)}`)
}
