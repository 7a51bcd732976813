/**
 * The messages of xDS and LRS, both ways.
 *
 * Every request of an Envoy that is not told `set_node_on_first_message_only` carries its whole node:
 * 61 KB, nearly all of it names of extensions. It is cut out unread; who it is, is read once a stream.
 */
import { create, fromBinary, toBinary } from '@bufbuild/protobuf'
import type { Version } from '../../../kit/version.js'
import { CLA_TYPE } from '../codec/json.js'
import { NodeSchema } from './gen/envoy/config/core/v3/base_pb.js'
import {
  DeltaDiscoveryRequestSchema,
  DeltaDiscoveryResponseSchema,
  DiscoveryRequestSchema,
  DiscoveryResponseSchema,
  type DeltaDiscoveryRequest,
  type DiscoveryRequest,
} from './gen/envoy/service/discovery/v3/discovery_pb.js'
import {
  LoadStatsRequestSchema,
  LoadStatsResponseSchema,
  type LoadStatsRequest,
} from './gen/envoy/service/load_stats/v3/lrs_pb.js'
import { checkName } from './name-limit.js'
import { bodyOf, without } from './wire.js'

/** Who sends: `node` of a request. */
export interface NodeIdentity {
  readonly id: string
  readonly version: Version | undefined
  readonly features: readonly string[]
}

/** A request of either protocol. */
export interface XdsRequest {
  readonly type: string
  /** The node's bytes, to be read where they are needed. */
  readonly node: Uint8Array | undefined
  readonly nonce: string
  /** Envoy's words, where it refuses what the nonce names. */
  readonly error: string | undefined
  /** State of the world: all names wanted from now on. */
  readonly names: readonly string[]
  readonly subscribe: readonly string[]
  readonly unsubscribe: readonly string[]
  /** Delta, first request of a stream: what the proxy has already. */
  readonly initial: Readonly<Record<string, string>>
}

/** A resource as it goes out. */
export interface XdsResource {
  readonly type: string
  readonly name: string
  readonly version: string
  readonly value: Uint8Array
}

export function decodeSotw(bytes: Uint8Array): XdsRequest {
  const request = fromBinary(DiscoveryRequestSchema, without(bytes, 2))
  return { ...toRequest(request, bodyOf(bytes, 2)), names: request.resourceNames }
}

export function decodeDelta(bytes: Uint8Array): XdsRequest {
  const request = fromBinary(DeltaDiscoveryRequestSchema, without(bytes, 1))
  return {
    ...toRequest(request, bodyOf(bytes, 1)),
    subscribe: request.resourceNamesSubscribe,
    unsubscribe: request.resourceNamesUnsubscribe,
    initial: request.initialResourceVersions,
  }
}

function toRequest(
  { typeUrl, responseNonce, errorDetail }: DiscoveryRequest | DeltaDiscoveryRequest,
  node: Uint8Array | undefined,
): XdsRequest {
  const type = typeUrl === '' ? CLA_TYPE : typeUrl
  const answer = { nonce: responseNonce, error: errorDetail?.message }
  return { type, node, ...answer, names: [], subscribe: [], unsubscribe: [], initial: {} }
}

export function decodeNode(bytes: Uint8Array | undefined): NodeIdentity {
  if (bytes === undefined) return { id: '', version: undefined, features: [] }
  const node = fromBinary(NodeSchema, without(bytes, 9))
  checkName(node.id, 'node.id')
  const build =
    node.userAgentVersionType.case === 'userAgentBuildVersion'
      ? node.userAgentVersionType.value.version
      : undefined
  const isEnvoy = node.userAgentName === '' || node.userAgentName === 'envoy'
  const { majorNumber: major = 0, minorNumber: minor = 0, patch = 0 } = build ?? {}
  const known = { major, minor, patch, text: `${major}.${minor}.${patch}` }
  const version = build !== undefined && isEnvoy ? known : undefined
  return { id: node.id, version, features: node.clientFeatures }
}

export function encodeSotw(
  type: string,
  version: string,
  nonce: string,
  resources: readonly XdsResource[],
): Uint8Array {
  return toBinary(
    DiscoveryResponseSchema,
    create(DiscoveryResponseSchema, {
      versionInfo: version,
      typeUrl: type,
      nonce,
      resources: resources.map(({ value }) => ({ typeUrl: type, value })),
    }),
  )
}

export function encodeDelta(
  type: string,
  version: string,
  nonce: string,
  resources: readonly XdsResource[],
): Uint8Array {
  return toBinary(
    DeltaDiscoveryResponseSchema,
    create(DeltaDiscoveryResponseSchema, {
      systemVersionInfo: version,
      typeUrl: type,
      nonce,
      resources: resources.map((resource) => ({
        name: resource.name,
        version: resource.version,
        resource: { typeUrl: type, value: resource.value },
      })),
    }),
  )
}

/** A load report, and the node's bytes that come with each. */
export function decodeLoads(bytes: Uint8Array): {
  node: Uint8Array | undefined
  report: LoadStatsRequest
} {
  return { node: bodyOf(bytes, 1), report: fromBinary(LoadStatsRequestSchema, without(bytes, 1)) }
}

/** Asks for reports of every cluster, endpoint by endpoint. */
export function encodeLoads(interval: number, clusters: readonly string[] | undefined): Uint8Array {
  return toBinary(
    LoadStatsResponseSchema,
    create(LoadStatsResponseSchema, {
      ...(clusters === undefined ? { sendAllClusters: true } : { clusters: [...clusters] }),
      loadReportingInterval: {
        seconds: BigInt(Math.floor(interval / 1_000)),
        nanos: (interval % 1_000) * 1_000_000,
      },
      reportEndpointGranularity: true,
    }),
  )
}
