import { once } from '../../provider/once.js'
import { conditionsShape, type EndpointConditions, type TargetRef } from '../endpoint-input.js'
import {
  addresses,
  at,
  both,
  isObject,
  list,
  named,
  nullable,
  object,
  port,
  text,
  textOrNone,
  value,
  when,
  wrong,
  type Fault,
  type Shape,
} from '../shape.js'

/** Names the Service that a slice is of. */
export const SERVICE_LABEL = 'kubernetes.io/service-name'

/**
 * The part of an EndpointSlice (`discovery.k8s.io/v1`) that is read. The objects of any client fit, and so does the
 * JSON of the API; other fields are ignored.
 */
export interface EndpointSlice {
  /**
   * Name and namespace: they decide between two equally good records. The `resourceVersion` tells which of two records
   * of one pod is newer.
   */
  readonly metadata?: {
    readonly name?: string | null
    readonly namespace?: string | null
    readonly resourceVersion?: string | null
    readonly labels?: Readonly<Record<string, string>> | null
  } | null
  /** The same as `metadata.name`, for slices that were never in an API server. */
  readonly name?: string | null
  /** `IPv4`, `IPv6` or `FQDN`. */
  readonly addressType: string
  /** `null` in the placeholder of an empty Service. */
  readonly ports?: readonly SlicePort[] | null
  /** `null` in the placeholder of an empty Service. */
  readonly endpoints?: readonly SliceEndpoint[] | null
}

/** A port of a slice. */
export interface SlicePort {
  /** Default: the empty name. */
  readonly name?: string | null
  /** A port without a number is skipped: it means every port, which a balancer can't use. */
  readonly port?: number | null
  /** Default `TCP`. */
  readonly protocol?: string | null
}

/** An endpoint of a slice, as the API writes it. */
export interface SliceEndpoint {
  readonly addresses: readonly string[]
  readonly conditions?: EndpointConditions | null
  readonly targetRef?: TargetRef | null
  readonly nodeName?: string | null
  readonly zone?: string | null
  readonly hostname?: string | null
  readonly hints?: {
    readonly forZones?: readonly { readonly name: string }[] | null
    readonly forNodes?: readonly { readonly name: string }[] | null
  } | null
}

/**
 * The shape of slices. Their endpoints, most of what a cluster has, are looked at only where they are read.
 *
 * @param isRead - whether the endpoints of a slice are
 */
export function slicesShape(isRead: (slice: EndpointSlice) => boolean): Shape {
  const endpoints = when((slice) => isRead(slice as unknown as EndpointSlice), endpointsOfSlice())
  const nameOf = (slice: object): unknown => sliceName(slice as EndpointSlice)
  return list('a list of EndpointSlices', named(nameOf, both(sliceShape(), endpoints)))
}

/** Its name, or nothing. */
export function sliceName({ metadata, name }: EndpointSlice): string | null | undefined {
  return metadata?.name ?? name
}

const sliceShape = once(() => {
  const families = "'IPv4', 'IPv6' or 'FQDN'"
  const isText = (one: unknown): boolean => typeof one === 'string'
  const older = `${families} (this looks like an Endpoints object)`
  const slice = object<EndpointSlice>('an EndpointSlice', {
    metadata: nullable(
      object<NonNullable<EndpointSlice['metadata']>>('an object', {
        name: nullable(text),
        namespace: nullable(text),
        resourceVersion: nullable(text),
        labels: nullable(object('an object', { [SERVICE_LABEL]: nullable(text) })),
      }),
    ),
    name: nullable(text),
    addressType: value(families, isText),
    ports: nullable(
      list(
        'a list',
        object<SlicePort>('a port', {
          name: nullable(text),
          protocol: nullable(text),
          port: nullable(port),
        }),
      ),
    ),
    endpoints: nullable(value('a list', Array.isArray)),
  })
  const isOlder = (one: object): boolean => 'subsets' in one
  return both(when(isOlder, object('an object', { addressType: value(older, isText) })), slice)
})

const endpointsOfSlice = once(() =>
  object('an object', { endpoints: nullable(list('a list', endpoint)) }),
)

function endpoint(found: unknown): Fault | undefined {
  if (!isObject(found)) return wrong(found, 'an endpoint')
  const { hints } = found
  return (
    at('addresses', addresses(found.addresses)) ??
    at('conditions', conditionsShape(found.conditions)) ??
    at('nodeName', textOrNone(found.nodeName)) ??
    at('zone', textOrNone(found.zone)) ??
    at('hostname', textOrNone(found.hostname)) ??
    at('targetRef', target(found.targetRef)) ??
    at('hints', hints === undefined || hints === null ? undefined : hintsShape()(hints))
  )
}

function target(found: unknown): Fault | undefined {
  if (found === undefined || found === null) return undefined
  if (!isObject(found)) return wrong(found, 'an object')
  return at('uid', textOrNone(found.uid)) ?? at('name', textOrNone(found.name))
}

const hintsShape = once(() => {
  const names = nullable(list('a list', object('an object with a name', { name: text })))
  const fields = { forZones: names, forNodes: names }
  return object<NonNullable<SliceEndpoint['hints']>>('an object', fields)
})
