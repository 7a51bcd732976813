import { isObject, type JsonObject } from '../../../kit/json.js'
import type { Json } from '../../../provider/contract.js'
import { AssignmentProblem } from './assignment.js'
import { BaseEndpoint, type Group } from './base-set.js'
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

/** One `LbEndpoint` in JSON. */
export class JsonEndpoint extends BaseEndpoint<JsonObject> {
  #before: JsonEndpoint | undefined
  #text: string | undefined

  /** Made once: of a set with one change nothing else is made anew. */
  get text(): string {
    this.#text ??= JSON.stringify(this.raw)
    return this.#text
  }

  /** The same endpoint with another status. `UNKNOWN` is written by leaving the field out. */
  to(status: EdsStatus): JsonEndpoint {
    if (this.#before?.status === status) return this.#before
    const key = keyOf(this.raw, 'health_status')
    // A spread keeps a field's place, so that a set that is put back is the same text again.
    const raw = status === 'UNKNOWN' ? withoutKeys(this.raw, key) : { ...this.raw, [key]: status }
    const next = new JsonEndpoint(...this.with(status, raw))
    next.#before = this.#before ?? this
    return next
  }

  protected override printed(): Json {
    return this.raw
  }
}

/** @throws AssignmentProblem with the path of what is wrong */
export function parseEndpoint(
  value: unknown,
  at: string,
  group: Pick<Group<unknown, unknown>, 'priority' | 'locality'>,
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
    `${shown(value)} is not a health status, Envoy would silently read it as HEALTHY; expected one of UNKNOWN, HEALTHY, UNHEALTHY, DRAINING, TIMEOUT, DEGRADED`,
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
    `${shown(value)} is not a weight: Envoy takes whole numbers from 1 on and rejects the whole set otherwise; to send nothing new to an endpoint, drain it`,
  )
}
