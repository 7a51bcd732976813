import { isObject, type JsonObject } from '../../../kit/json.js'
import type { Json } from '../../../provider/contract.js'
import { AssignmentProblem, type Endpoint, type EndpointNative } from './assignment.js'
import {
  addressOf,
  field,
  join,
  keyOf,
  objectAt,
  shown,
  typeName,
  withoutKeys,
} from './proto-json.js'
import { toEdsStatus, type EdsStatus } from './status.js'

/** What an endpoint has of the group that it stands in. */
export interface EndpointGroup {
  readonly priority: number
  readonly locality: string
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

/** @throws AssignmentProblem with the path of what is wrong */
export function parseEndpoint(
  value: unknown,
  at: string,
  group: EndpointGroup,
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

/** @throws AssignmentProblem where Envoy would reject the whole set for it */
export function checkWeight(value: Json | undefined, at: string): number | undefined {
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
