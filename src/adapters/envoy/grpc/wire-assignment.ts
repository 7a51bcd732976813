import { fromBinary, fromJson, toBinary } from '@bufbuild/protobuf'
import { setImmediate as breathe } from 'node:timers/promises'
import type { Json } from '../../../provider/contract.js'
import {
  AssignmentProblem,
  deduplicated,
  parseLocality,
  type EndpointNative,
  type NewEndpoint,
} from '../codec/assignment.js'
import { BaseAssignment, type SetFields } from '../codec/base-set.js'
import { formatAddress } from '../codec/address.js'
import { isObject, type JsonObject } from '../../../kit/json.js'
import type { JsonAssignment } from '../codec/json.js'
import { LocalitySchema } from './gen/envoy/config/core/v3/base_pb.js'
import {
  ClusterLoadAssignment_PolicySchema,
  ClusterLoadAssignmentSchema,
} from './gen/envoy/config/endpoint/v3/endpoint_pb.js'
import {
  LbEndpointSchema,
  LocalityLbEndpointsSchema,
} from './gen/envoy/config/endpoint/v3/endpoint_components_pb.js'
import { GROUP, parseEndpoint, parseGroup, type Group, type WireEndpoint } from './wire-endpoint.js'
import { around, bodyOf, concat, head, withVarint, type Around } from './wire.js'

const DEFAULT_OVERPROVISIONING = 140
/** Field numbers. */
const CLA = { name: 1, endpoints: 2, policy: 4 } as const
/** How many endpoints are turned into bytes before other work gets a turn. */
const SLICE = 500

/** One `ClusterLoadAssignment` in protobuf: an edit keeps every byte that it does not mean. */
export class WireAssignment extends BaseAssignment<WireEndpoint, Around> {
  readonly #around: Around
  #bytes: Uint8Array | undefined

  private constructor(
    fields: SetFields,
    around: Around,
    groups: readonly Group[],
    bytes?: Uint8Array,
  ) {
    super(fields, groups)
    this.#around = around
    this.#bytes = bytes
  }

  /** @throws AssignmentProblem with the path of what is wrong */
  static parse(bytes: Uint8Array, at = ''): WireAssignment {
    try {
      return WireAssignment.#parse(bytes, at)
    } catch (problem) {
      if (problem instanceof AssignmentProblem) throw problem
      throw new AssignmentProblem(
        at,
        `no ClusterLoadAssignment in protobuf: ${problem instanceof Error ? problem.message : String(problem)}`,
      )
    }
  }

  /**
   * The same set in protobuf. What these protos cannot carry is refused with its path: dropped, it
   * would be a change that was not asked for.
   */
  static async fromJson(set: JsonAssignment, at = ''): Promise<WireAssignment> {
    const { endpoints, ...rest } = set.toJson()
    const plain = Object.fromEntries(Object.entries(rest).filter(([key]) => key !== '@type'))
    const pieces: Uint8Array[] = [
      carried(at, () =>
        toBinary(
          ClusterLoadAssignmentSchema,
          fromJson(ClusterLoadAssignmentSchema, plain as never),
        ),
      ),
    ]
    for (const [i, group] of (endpoints as readonly JsonObject[]).entries()) {
      const path = `${at}${at === '' ? '' : '.'}endpoints[${i}]`
      const bytes = await groupFromJson(group, path)
      pieces.push(head(CLA.endpoints, bytes.length), bytes)
    }
    return WireAssignment.parse(concat(pieces), at)
  }

  static #parse(bytes: Uint8Array, at: string): WireAssignment {
    const name = bodyOf(bytes, CLA.name)
    const cluster = name === undefined ? '' : new TextDecoder('utf-8', { fatal: true }).decode(name)
    if (cluster === '') {
      throw new AssignmentProblem(at, 'expected the name of the endpoint set in cluster_name')
    }
    const { around: rest, bodies } = around(bytes, CLA.endpoints)
    const groups = bodies.map((group, i) =>
      parseGroup(group, `${at}${at === '' ? '' : '.'}endpoints[${i}]`, i),
    )
    const lists = groups.map(({ endpoints }) => endpoints)
    const unique = deduplicated(lists, (endpoint) => endpoint.to('DRAINING'))
    const body = bodyOf(bytes, CLA.policy)
    const policy = body && fromBinary(ClusterLoadAssignment_PolicySchema, body)
    const fields = {
      cluster,
      overprovisioning: policy?.overprovisioningFactor ?? DEFAULT_OVERPROVISIONING,
      isWeighted: policy?.weightedPriorityHealth ?? false,
    }
    return unique === lists
      ? new WireAssignment(fields, rest, groups, bytes)
      : new WireAssignment(
          fields,
          rest,
          groups.map((group, i) => ({ ...group, endpoints: unique[i] ?? [] })),
        )
  }

  toBytes(): Uint8Array {
    this.#bytes ??= wrapped(this.#around, this.groups.flatMap(bytesOf))
    return this.#bytes
  }

  protected override content(): Uint8Array {
    return this.toBytes()
  }

  protected override derived(groups: readonly Group[]): this {
    return new WireAssignment(this, this.#around, groups) as this
  }

  protected override newGroup(native: EndpointNative | undefined): Group {
    const [region = '', zone = '', subZone = ''] = parseLocality(native?.locality ?? '')
    const { typeName: $typeName } = LocalitySchema
    const locality = toBinary(LocalitySchema, { $typeName, region, zone, subZone })
    const bytes = concat([head(GROUP.locality, locality.length), locality])
    const group = withVarint(bytes, GROUP.priority, native?.priority ?? 0)
    return parseGroup(group, 'native', this.groups.length)
  }

  protected override newEndpoint(
    added: NewEndpoint,
    group: Group,
    place: readonly [number, number],
  ): WireEndpoint {
    return parseEndpoint(newEndpoint(added), 'native.endpoint', group, place)
  }
}

function bytesOf({ raw, endpoints }: Group): Uint8Array[] {
  const bytes = wrapped(
    raw,
    endpoints.map(({ field }) => field),
  )
  return [head(CLA.endpoints, bytes.length), bytes]
}

function wrapped({ before, after }: Around, fields: readonly Uint8Array[]): Uint8Array {
  return concat([before, ...fields, after])
}

async function groupFromJson(group: JsonObject, at: string): Promise<Uint8Array> {
  const key = 'lbEndpoints' in group ? 'lbEndpoints' : 'lb_endpoints'
  const { [key]: endpoints, ...rest } = group
  const pieces: Uint8Array[] = [
    carried(at, () =>
      toBinary(LocalityLbEndpointsSchema, fromJson(LocalityLbEndpointsSchema, rest as never)),
    ),
  ]
  for (const [i, endpoint] of (endpoints as readonly Json[]).entries()) {
    const bytes = carried(`${at}.lb_endpoints[${i}]`, () => endpointFromJson(endpoint))
    pieces.push(head(GROUP.endpoints, bytes.length), bytes)
    if (i % SLICE === SLICE - 1) await breathe()
  }
  return concat(pieces)
}

function endpointFromJson(endpoint: Json): Uint8Array {
  return toBinary(LbEndpointSchema, fromJson(LbEndpointSchema, endpoint as never))
}

function carried<T>(at: string, fn: () => T): T {
  try {
    return fn()
  } catch (cause) {
    throw new AssignmentProblem(
      at,
      `cannot be carried by gRPC: ${cause instanceof Error ? cause.message : String(cause)}`,
    )
  }
}

function newEndpoint({ address, port, weight, native }: NewEndpoint): Uint8Array {
  if (typeof native?.endpoint === 'string')
    return new Uint8Array(Buffer.from(native.endpoint, 'base64'))
  if (isObject(native?.endpoint)) {
    const json = native.endpoint
    return carried('native.endpoint', () => endpointFromJson(json))
  }
  return endpointFromJson({
    endpoint: { address: formatAddress(address, port) },
    ...(weight === undefined ? {} : { load_balancing_weight: weight }),
  })
}
