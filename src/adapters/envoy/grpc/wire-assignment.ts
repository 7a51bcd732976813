import { fromBinary, fromJson, toBinary } from '@bufbuild/protobuf'
import { createHash } from 'node:crypto'
import { setImmediate as breathe } from 'node:timers/promises'
import type { Json } from '../../../provider/contract.js'
import {
  AssignmentProblem,
  deduplicated,
  parseLocality,
  type Assignment,
  type NewEndpoint,
} from '../codec/assignment.js'
import { formatAddress } from '../codec/address.js'
import { isObject, type JsonObject } from '../../../kit/json.js'
import type { JsonAssignment } from '../codec/json.js'
import type { EdsStatus } from '../codec/status.js'
import { LocalitySchema } from './gen/envoy/config/core/v3/base_pb.js'
import {
  ClusterLoadAssignment_PolicySchema,
  ClusterLoadAssignmentSchema,
} from './gen/envoy/config/endpoint/v3/endpoint_pb.js'
import {
  LbEndpointSchema,
  LocalityLbEndpointsSchema,
} from './gen/envoy/config/endpoint/v3/endpoint_components_pb.js'
import {
  GROUP,
  parseEndpoint,
  parseGroup,
  type Group,
  type Part,
  type WireEndpoint,
} from './wire-endpoint.js'
import { bodyOf, concat, fieldsOf, head, withVarint } from './wire.js'

const DEFAULT_OVERPROVISIONING = 140
/** Field numbers. */
const CLA = { name: 1, endpoints: 2, policy: 4 } as const
/** How many endpoints are turned into bytes before other work gets a turn. */
const SLICE = 500

/** One `ClusterLoadAssignment` in protobuf: an edit keeps every byte that it does not mean. */
export class WireAssignment implements Assignment {
  readonly cluster: string
  readonly endpoints: readonly WireEndpoint[]
  readonly overprovisioning: number
  readonly isWeighted: boolean
  readonly #parts: readonly Part<Group>[]
  #bytes: Uint8Array | undefined
  #version: string | undefined

  private constructor(
    cluster: string,
    parts: readonly Part<Group>[],
    policy: Pick<Assignment, 'overprovisioning' | 'isWeighted'>,
    bytes?: Uint8Array,
  ) {
    this.cluster = cluster
    this.overprovisioning = policy.overprovisioning
    this.isWeighted = policy.isWeighted
    this.#parts = parts
    this.#bytes = bytes
    this.endpoints = groupsOf(parts).flatMap((group) => itemsOf(group.parts))
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
    let count = 0
    const parts = [...fieldsOf(bytes)].map((field): Part<Group> => {
      if (field.no !== CLA.endpoints || field.body === undefined) return { raw: field.raw }
      const index = count++
      return {
        item: parseGroup(field.body, `${at}${at === '' ? '' : '.'}endpoints[${index}]`, index),
      }
    })
    const body = bodyOf(bytes, CLA.policy)
    const policy = body && fromBinary(ClusterLoadAssignment_PolicySchema, body)
    const unique = withUnique(parts)
    return new WireAssignment(
      cluster,
      unique,
      {
        overprovisioning: policy?.overprovisioningFactor ?? DEFAULT_OVERPROVISIONING,
        isWeighted: policy?.weightedPriorityHealth ?? false,
      },
      unique === parts ? bytes : undefined,
    )
  }

  get version(): string {
    this.#version ??= createHash('sha256').update(this.toBytes()).digest('hex').slice(0, 16)
    return this.#version
  }

  toBytes(): Uint8Array {
    this.#bytes ??= encode(this.#parts, (group) => {
      const bytes = encode(group.parts, ({ field }) => [field])
      return [head(CLA.endpoints, bytes.length), bytes]
    })
    return this.#bytes
  }

  withStatus(edits: ReadonlyMap<string, EdsStatus>): WireAssignment {
    return this.#map((endpoint) => {
      const status = endpoint.member === undefined ? undefined : edits.get(endpoint.member)
      return status === undefined || status === endpoint.status ? endpoint : endpoint.to(status)
    })
  }

  without(members: ReadonlySet<string>): WireAssignment {
    return this.#map((endpoint) =>
      endpoint.member !== undefined && members.has(endpoint.member) ? undefined : endpoint,
    )
  }

  withEndpoint(added: NewEndpoint): WireAssignment {
    const { native } = added
    const groups = groupsOf(this.#parts)
    const fits = (group: Group | undefined): boolean =>
      group?.priority === native?.priority && group?.locality === native?.locality
    const index =
      native === undefined
        ? 0
        : fits(groups[native.place[0]])
          ? native.place[0]
          : groups.findIndex(fits)
    const target = groups[index]
    if (target === undefined) return this.#withGroup(newGroup(added))
    const endpoint = parseEndpoint(newEndpoint(added), 'native.endpoint', target, [index, 0])
    const parts = [...target.parts]
    const places = parts.flatMap((part, i) => ('item' in part ? [i] : []))
    const place = native === undefined ? places.length : native.place[1]
    parts.splice(places[place] ?? (places.at(-1) ?? parts.length - 1) + 1, 0, { item: endpoint })
    return this.#replace(target, { ...target, parts })
  }

  #withGroup(bytes: Uint8Array): WireAssignment {
    const group = parseGroup(bytes, 'native', groupsOf(this.#parts).length)
    return new WireAssignment(this.cluster, [...this.#parts, { item: group }], this)
  }

  #map(edit: (endpoint: WireEndpoint) => WireEndpoint | undefined): WireAssignment {
    const parts = this.#parts.map((part): Part<Group> => {
      if (!('item' in part)) return part
      const group = part.item
      const edited = group.parts.flatMap((inner): Part<WireEndpoint>[] => {
        if (!('item' in inner)) return [inner]
        const endpoint = edit(inner.item)
        if (endpoint === inner.item) return [inner]
        return endpoint === undefined ? [] : [{ item: endpoint }]
      })
      const same =
        edited.length === group.parts.length && edited.every((inner, i) => inner === group.parts[i])
      return same ? part : { item: { ...group, parts: edited } }
    })
    if (parts.every((part, i) => part === this.#parts[i])) return this
    return new WireAssignment(this.cluster, parts, this)
  }

  #replace(group: Group, by: Group): WireAssignment {
    const parts = this.#parts.map((part) =>
      'item' in part && part.item === group ? { item: by } : part,
    )
    return new WireAssignment(this.cluster, parts, this)
  }
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

function newGroup(added: NewEndpoint): Uint8Array {
  const [region = '', zone = '', subZone = ''] = parseLocality(added.native?.locality ?? '')
  const endpoint = newEndpoint(added)
  const locality = toBinary(LocalitySchema, {
    $typeName: LocalitySchema.typeName,
    region,
    zone,
    subZone,
  })
  const whole = concat([
    head(GROUP.locality, locality.length),
    locality,
    head(GROUP.endpoints, endpoint.length),
    endpoint,
  ])
  return withVarint(whole, GROUP.priority, added.native?.priority ?? 0)
}

/** The parts with every address once; the same list where none is repeated. */
function withUnique(parts: readonly Part<Group>[]): readonly Part<Group>[] {
  const lists = groupsOf(parts).map((group) => itemsOf(group.parts))
  const unique = deduplicated(lists, (endpoint: WireEndpoint) => endpoint.to('DRAINING'))
  if (unique === lists) return parts
  let index = 0
  return parts.map((part) => {
    if (!('item' in part)) return part
    const kept = unique[index++] ?? []
    const rest = part.item.parts.filter((inner) => !('item' in inner))
    const items = kept.map((item) => ({ item }))
    return { item: { ...part.item, parts: [...items, ...rest] } }
  })
}

function encode<T>(
  parts: readonly Part<T>[],
  fieldOf: (item: T) => readonly Uint8Array[],
): Uint8Array {
  return concat(parts.flatMap((part) => ('item' in part ? fieldOf(part.item) : [part.raw])))
}

function groupsOf(parts: readonly Part<Group>[]): Group[] {
  return itemsOf(parts)
}

function itemsOf<T>(parts: readonly Part<T>[]): T[] {
  return parts.flatMap((part) => ('item' in part ? [part.item] : []))
}
