import { fromBinary } from '@bufbuild/protobuf'
import type { Json } from '../../../provider/contract.js'
import { formatSocket } from '../../../provider/address.js'
import { AssignmentProblem, formatLocality } from '../codec/assignment.js'
import { BaseEndpoint, type Group as GroupOf } from '../codec/base-set.js'
import { EDS_STATUS, toEdsStatus, type EdsStatus } from '../codec/status.js'
import type { Address } from './gen/envoy/config/core/v3/address_pb.js'
import {
  LbEndpointSchema,
  LocalityLbEndpointsSchema,
} from './gen/envoy/config/endpoint/v3/endpoint_components_pb.js'
import { around, concat, head, withVarint, type Around } from './wire.js'

/** Field numbers of a locality. */
export const GROUP = { locality: 1, endpoints: 2, priority: 5 } as const
const HEALTH_STATUS = 2

/** One locality with its endpoints: the bytes around them are carried along. */
export type Group = GroupOf<Around, WireEndpoint>

/** One `LbEndpoint` in protobuf. */
export class WireEndpoint extends BaseEndpoint<Uint8Array> {
  #before: WireEndpoint | undefined
  #field: Uint8Array | undefined

  /** As it stands in its group, tag and length included. */
  get field(): Uint8Array {
    this.#field ??= concat([head(GROUP.endpoints, this.raw.length), this.raw])
    return this.#field
  }

  /** The same endpoint with another status; put back, it has its first bytes again. */
  to(status: EdsStatus): WireEndpoint {
    if (this.#before?.status === status) return this.#before
    const raw = withVarint(this.raw, HEALTH_STATUS, EDS_STATUS.indexOf(status))
    const next = new WireEndpoint(...this.with(status, raw))
    next.#before = this.#before ?? this
    return next
  }

  protected override printed(): Json {
    return Buffer.from(this.raw).toString('base64')
  }
}

/** One locality of a set. */
export function parseGroup(bytes: Uint8Array, at: string, index: number): Group {
  const { around: raw, bodies } = around(bytes, GROUP.endpoints)
  const rest = concat([raw.before, raw.after])
  const { priority, locality, loadBalancingWeight } = fromBinary(LocalityLbEndpointsSchema, rest)
  checkWeight(loadBalancingWeight, `${at}.load_balancing_weight`)
  const { region = '', zone = '', subZone = '' } = locality ?? {}
  const base = { raw, priority, locality: formatLocality([region, zone, subZone]) }
  const endpoints = bodies.map((body, i) =>
    parseEndpoint(body, `${at}.lb_endpoints[${i}]`, base, [index, i]),
  )
  return { ...base, endpoints }
}

/** One endpoint of a locality. */
export function parseEndpoint(
  raw: Uint8Array,
  at: string,
  group: Pick<Group, 'priority' | 'locality'>,
  place: readonly [number, number],
): WireEndpoint {
  const message = fromBinary(LbEndpointSchema, raw)
  checkWeight(message.loadBalancingWeight, `${at}.load_balancing_weight`)
  const endpoint =
    message.hostIdentifier.case === 'endpoint' ? message.hostIdentifier.value : undefined
  const hostname = endpoint?.hostname ?? ''
  return new WireEndpoint(
    {
      ...addressOf(endpoint?.address),
      hostname: hostname === '' ? undefined : hostname,
      status: toEdsStatus(message.healthStatus),
      weight: message.loadBalancingWeight,
      priority: group.priority,
      labels: message.metadata?.filterMetadata['envoy.lb'],
    },
    raw,
    group.locality,
    place,
  )
}

/** The member name of an address, as `/clusters` and load reports call it. */
export function addressOf(address: Address | undefined): {
  member: string | undefined
  address?: string
  port?: number
} {
  const found = address?.address
  switch (found?.case) {
    case 'socketAddress': {
      const { address: host, portSpecifier } = found.value
      if (portSpecifier.case !== 'portValue') return { member: undefined }
      const port = portSpecifier.value
      return { member: formatSocket(host, port), address: host, port }
    }
    case 'pipe':
      return { member: found.value.path, address: found.value.path }
    case 'envoyInternalAddress': {
      const { addressNameSpecifier: name, endpointId } = found.value
      if (name.case !== 'serverListenerName') return { member: undefined }
      return { member: `envoy://${name.value}/${endpointId}` }
    }
    case undefined:
      return { member: undefined }
    default:
      return found satisfies never
  }
}

function checkWeight(weight: number | undefined, at: string): void {
  if (weight !== 0) return
  throw new AssignmentProblem(
    at,
    '0 is not a weight: Envoy takes whole numbers from 1 on and rejects the whole set otherwise; to send nothing new to an endpoint, drain it',
  )
}
