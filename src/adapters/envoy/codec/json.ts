/**
 * EDS JSON: what a file sink holds, what REST xDS sends, and what `/config_dump?include_eds` shows.
 *
 * It is proto3 JSON: field names in snake_case or camelCase, `null` is absent, an enum is a name in
 * any case or a number, a wrapper is its bare value. Envoy drops what it cannot read in silence:
 * `"health_status": "DRAINNG"` is HEALTHY and counted as a success. So statuses are written here
 * from a closed list, and a set that contains one Envoy would misread is refused with its path.
 * One weight of 0 makes Envoy reject the whole set.
 */
import { isObject, type JsonObject } from '../../../kit/json.js'
import type { Json } from '../../../provider/contract.js'
import { quote } from '../../../provider/quote.js'
import { formatAddress } from './address.js'
import { BaseAssignment, type Group as GroupOf } from './base-set.js'
import {
  AssignmentProblem,
  deduplicated,
  formatLocality,
  parseLocality,
  type EndpointNative,
  type NewEndpoint,
} from './assignment.js'
import { checkWeight, parseEndpoint, type JsonEndpoint } from './json-endpoint.js'
import {
  arrayAt,
  canonical,
  field,
  join,
  keyOf,
  shown,
  typeName,
  withoutKeys,
} from './proto-json.js'
import { moreCautious, type EdsStatus } from './status.js'
import { whole, type Steps } from './steps.js'

export const CLA_TYPE = 'type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment'
const DEFAULT_OVERPROVISIONING = 140

/** Endpoints that are parsed in one step, and a text that takes one of its own; characters. */
const STEP = 500
const LARGE = 100_000

type Group = GroupOf<JsonObject, JsonEndpoint>

/** One `ClusterLoadAssignment` in JSON. */
export class JsonAssignment extends BaseAssignment<JsonEndpoint, JsonObject> {
  readonly #raw: JsonObject
  #text: string | undefined

  private constructor(raw: JsonObject, groups: readonly Group[], cluster: string) {
    const policy = field(raw, 'policy')
    const factor = isObject(policy) ? field(policy, 'overprovisioning_factor') : undefined
    const overprovisioning = typeof factor === 'number' ? factor : DEFAULT_OVERPROVISIONING
    const isWeighted = isObject(policy) && field(policy, 'weighted_priority_health') === true
    super({ cluster, overprovisioning, isWeighted }, groups)
    this.#raw = raw
  }

  /** @throws AssignmentProblem with the path of what is wrong */
  static parse(value: unknown, at = ''): JsonAssignment {
    return whole(JsonAssignment.steps(value, at))
  }

  /** The same, with a pause where a large set has taken a while. */
  static *steps(value: unknown, at = ''): Steps<JsonAssignment> {
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
    const groups: Group[] = []
    for (const [i, group] of arrayAt(value, 'endpoints', at).entries()) {
      groups.push(yield* groupSteps(group, `${join(at, 'endpoints')}[${i}]`, i))
    }
    const lists = deduplicated(
      groups.map((group) => group.endpoints),
      (endpoint) => endpoint.to('DRAINING'),
    )
    const unique = groups.map((group, i) => ({ ...group, endpoints: lists[i] ?? [] }))
    return new JsonAssignment(value, unique, cluster)
  }

  /** {@link toJson} as a text. */
  toText(): string {
    this.#text ??= this.#print()
    return this.#text
  }

  #print(): string {
    const groups = this.groups.map(({ raw, endpoints }) => {
      const list = endpoints.map(({ text }) => text).join(',')
      return printed(raw, keyOf(raw, 'lb_endpoints'), list)
    })
    const rest = withoutKeys(this.#raw, '@type')
    return printed({ '@type': CLA_TYPE, ...rest }, keyOf(rest, 'endpoints'), groups.join(','))
  }

  /** The resource as it goes out, `@type` first. */
  toJson(): JsonObject {
    const rest = withoutKeys(this.#raw, '@type')
    const key = keyOf(rest, 'endpoints')
    const endpoints = this.groups.map((group) => ({
      ...group.raw,
      [keyOf(group.raw, 'lb_endpoints')]: group.endpoints.map((endpoint) => endpoint.raw),
    }))
    return { '@type': CLA_TYPE, ...rest, [key]: endpoints }
  }

  protected override content(): string {
    return this.toText()
  }

  protected override derived(groups: readonly Group[]): this {
    return new JsonAssignment(this.#raw, groups, this.cluster) as this
  }

  protected override newGroup(native: EndpointNative | undefined): Group {
    const priority = native?.priority ?? 0
    const [region, zone, sub_zone] = parseLocality(native?.locality ?? '')
    const locality = Object.fromEntries(
      Object.entries({ region, zone, sub_zone }).filter(([, value]) => value),
    ) as JsonObject
    const raw = { ...(native === undefined ? {} : { locality }), ...(priority ? { priority } : {}) }
    return group(raw, [])
  }

  protected override newEndpoint(
    { address, port, weight, native }: NewEndpoint,
    target: Group,
    place: readonly [number, number],
  ): JsonEndpoint {
    const made = {
      endpoint: { address: formatAddress(address, port) },
      ...(weight === undefined ? {} : { load_balancing_weight: weight }),
    }
    const raw = isObject(native?.endpoint) ? native.endpoint : made
    return parseEndpoint(raw, 'native.endpoint', target, place)
  }

  /** What each endpoint is and where it stands, apart from its status: by {@link nameOf}. */
  contents(): ReadonlyMap<string, string> {
    const contents = new Map<string, string>()
    for (const { raw, endpoints } of this.groups) {
      const place = canonical(withoutList(raw))
      for (const one of endpoints) contents.set(nameOf(one), `${place} ${withoutStatus(one)}`)
    }
    return contents
  }

  /** The set with what another proxy's has beside, and the more cautious of two statuses. */
  union(other: JsonAssignment): JsonAssignment {
    const mine = new Map(this.endpoints.map((one) => [nameOf(one), one]))
    const edits = new Map<string, EdsStatus>()
    for (const one of other.endpoints) {
      const status = moreCautious(mine.get(nameOf(one))?.status, one.status)
      if (one.member !== undefined && status !== undefined) edits.set(one.member, status)
    }
    const groups = [...this.withStatus(edits).groups]
    for (const theirs of other.groups) {
      const more = theirs.endpoints.filter((one) => !mine.has(nameOf(one)))
      if (more.length === 0) continue
      const place = canonical(withoutList(theirs.raw))
      const at = groups.findIndex(({ raw }) => canonical(withoutList(raw)) === place)
      const known = groups[at]
      if (known === undefined) groups.push({ ...theirs, endpoints: more })
      else groups[at] = { ...known, endpoints: [...known.endpoints, ...more] }
    }
    return new JsonAssignment(this.#raw, groups, this.cluster)
  }
}

/** What a file or a REST reply holds: the resources, and everything around them. */
export interface EdsDocument {
  readonly version: string | undefined
  readonly assignments: readonly JsonAssignment[]
  /** Everything but version and resources. */
  readonly rest: JsonObject
}

/**
 * The text of a file, with a pause where a large document has taken a while.
 *
 * @throws AssignmentProblem with the path of what is wrong
 */
export function* edsSteps(text: string): Steps<EdsDocument> {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (cause) {
    throw new AssignmentProblem(
      '',
      `not JSON: ${cause instanceof Error ? quote(cause.message) : 'unreadable'}`,
    )
  }
  if (text.length > LARGE) yield
  return yield* valueSteps(value)
}

/**
 * The same, parsed already.
 *
 * @throws AssignmentProblem with the path of what is wrong
 */
export function parseEdsValue(value: unknown): EdsDocument {
  return whole(valueSteps(value))
}

function* valueSteps(value: unknown): Steps<EdsDocument> {
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
  const assignments: JsonAssignment[] = []
  for (const [i, resource] of resources.entries()) {
    assignments.push(yield* JsonAssignment.steps(resource, `resources[${i}]`))
  }
  return { version: typeof version === 'string' ? version : undefined, assignments, rest }
}

/** The text of a file that Envoy reads, or of a REST reply. */
export function formatEdsJson(
  version: string,
  assignments: readonly JsonAssignment[],
  rest: JsonObject = {},
): string {
  const resources = assignments.map((assignment) => assignment.toText())
  return printed({ version_info: version, ...rest }, 'resources', resources.join(','))
}

/** The text of an object whose list under a key is there as a text already. */
function printed(value: JsonObject, key: string, list: string): string {
  const fields = Object.entries({ ...value, [key]: null }).map(([name, inner]) => {
    const text = name === key ? `[${list}]` : JSON.stringify(inner)
    return `${JSON.stringify(name)}:${text}`
  })
  return `{${fields.join(',')}}`
}

function* groupSteps(value: unknown, at: string, index: number): Steps<Group> {
  if (!isObject(value))
    throw new AssignmentProblem(at, `expected an object, found ${typeName(value)}`)
  checkWeight(field(value, 'load_balancing_weight'), join(at, 'load_balancing_weight'))
  const base = group(value, [])
  const endpoints: JsonEndpoint[] = []
  for (const [i, endpoint] of arrayAt(value, 'lb_endpoints', at).entries()) {
    if (i > 0 && i % STEP === 0) yield
    endpoints.push(parseEndpoint(endpoint, `${join(at, 'lb_endpoints')}[${i}]`, base, [index, i]))
  }
  if (endpoints.length >= STEP) yield
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

/** The name of the member; of one that has none, all that it is. */
function nameOf(endpoint: JsonEndpoint): string {
  return endpoint.member ?? withoutStatus(endpoint)
}

function withoutStatus({ raw }: JsonEndpoint): string {
  return canonical(withoutKeys(raw, keyOf(raw, 'health_status')))
}

function withoutList(raw: JsonObject): JsonObject {
  return withoutKeys(raw, keyOf(raw, 'lb_endpoints'))
}

function priorityOf(value: Json | undefined): number {
  const priority = typeof value === 'string' && /^\d{1,3}$/.test(value) ? Number(value) : value
  if (priority === undefined || priority === null) return 0
  if (typeof priority === 'number' && Number.isInteger(priority) && priority >= 0) return priority
  throw new AssignmentProblem('priority', `expected a whole number, found ${shown(value)}`)
}
