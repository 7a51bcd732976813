import { canonicalAddress } from '../provider/address.js'
import { DrainableError } from '../provider/error.js'
import {
  addressesShape,
  conditionsShape,
  normaliseConditions,
  olderObject,
  tierOf,
  type AddressType,
  type EndpointConditions,
  type EndpointHints,
  type EndpointInput,
  type TargetRef,
} from './endpoint.js'
import * as s from './shape.js'

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

/** Options of {@link mergeSlices}: which endpoints to take. */
export interface MergeOptions {
  /**
   * The Service's port, by name or by number: one pool of a balancer is one port. If a slice lists no ports (a
   * headless Service without any), a number is the port to use. A name that no slice has gives no endpoints, as does a
   * Service whose pods do not have the port yet. Default: all ports; each is a separate endpoint.
   */
  readonly port?: string | number
  /** The port for slices that list none. Default: `port`, if it is a number. */
  readonly defaultPort?: number
  /** Only ports of this protocol. Default: all. */
  readonly protocol?: 'TCP' | 'UDP' | 'SCTP'
  /** @default ['IPv4', 'IPv6'] */
  readonly families?: readonly AddressType[]
  /**
   * Only slices of this Service, `namespace/name` or `name`, by their label. Needed if slices of more than one
   * Service are given; a `name` that exists in two namespaces is refused.
   */
  readonly service?: string
}

const SUBJECT = 'mergeSlices()'

/**
 * Merges the EndpointSlices of a Service into one list of endpoints. One address and port can be in several slices
 * for a while, in different states. Which record counts does not depend on the order of the slices:
 *
 * 1. If one record of the same pod (`targetRef.uid`) is terminating, only that one counts, because a deletion can't
 * be undone.
 * 2. Of several records of the same pod, the one in the slice with the higher `resourceVersion` counts, if both are
 * numbers: they can be compared within one type (KEP-5504, stable in Kubernetes 1.35).
 * 3. Otherwise the better tier counts: an address that a new pod took over belongs to the live one.
 * 4. Otherwise the smaller slice name.
 *
 * Call it only once the cache behind it is synced: with an empty list, every endpoint seems gone.
 *
 * @param slices - EndpointSlices of one Service; see {@link EndpointSlice} for the fields that are read
 * @throws `INVALID_OPTIONS` with the path, for input that is not an EndpointSlice; and if more than one Service is
 *   left, naming them: a common pool would send each Service's clients to the others
 *
 * @example
 * ```ts
 * import { mapEndpoints, mergeSlices } from 'drainable/endpoints'
 *
 * const slice = {
 *   metadata: { name: 'web-x7k2p', namespace: 'shop' },
 *   addressType: 'IPv4',
 *   ports: [{ name: 'http', port: 8080, protocol: 'TCP' }],
 *   endpoints: [{ addresses: ['10.0.0.1'], conditions: { ready: true } }],
 * }
 * mapEndpoints(mergeSlices([slice], { port: 'http' }))
 * ```
 */
export function mergeSlices(
  slices: readonly EndpointSlice[],
  options?: MergeOptions,
): EndpointInput[]
export function mergeSlices(slices: readonly unknown[], options?: MergeOptions): EndpointInput[]
export function mergeSlices(
  slices: readonly unknown[],
  options: MergeOptions = {},
): EndpointInput[] {
  const name = s.value(`a port's name or number`, s.isText)
  const isService = (one: unknown): boolean => s.isText(one) && /^(?:[^/]+\/)?[^/]+$/.test(one)
  s.checkOptions(SUBJECT, options, {
    port: s.optional((given) => {
      const number = numberOf(given)
      return typeof number === 'number' ? s.port(number) : name(given)
    }),
    defaultPort: s.optional(s.port),
    protocol: s.optional(s.word('TCP', 'UDP', 'SCTP')),
    families: s.optional(s.list('a list of address families', s.word('IPv4', 'IPv6', 'FQDN'))),
    service: s.optional(s.value(`a Service's name, or namespace/name`, isService)),
  })
  const { families = ['IPv4', 'IPv6'], service } = options
  const isRead = (one: EndpointSlice): boolean =>
    isOf(one, service) && families.includes(one.addressType as AddressType)
  s.check(SUBJECT, 'slices', slices, slicesShape(isRead))
  const all = (slices as readonly EndpointSlice[]).filter((one) => isOf(one, service))
  checkOneService(all)
  return merge(all.filter(isRead).sort(compareSlices), options)
}

/** One record for each family, port, protocol and address, in the order of the slices. */
function merge(slices: readonly EndpointSlice[], options: MergeOptions): EndpointInput[] {
  const records: EndpointInput[] = []
  /** Further records of an address that is known already: few come again. */
  const again: EndpointInput[] = []
  /** The addresses of each family, port and protocol. Each record costs one look into one of these sets. */
  const known = new Map<string, Set<string>>()
  for (const slice of slices) {
    const fromSlice = nameOf(slice)
    const addressType = slice.addressType as AddressType
    for (const { port, portName, protocol } of portsOf(slice, options)) {
      const kind = `${addressType} ${port} ${protocol}`
      const addresses = known.get(kind) ?? new Set<string>()
      known.set(kind, addresses)
      for (const one of slice.endpoints ?? []) {
        const address = one.addresses[0]
        if (address === undefined || address === '') continue
        const before = addresses.size
        addresses.add(canonicalAddress(address))
        const place = addresses.size > before ? records : again
        place.push({
          addresses: one.addresses,
          addressType,
          port,
          portName,
          protocol,
          conditions: one.conditions ?? null,
          targetRef: one.targetRef ?? null,
          nodeName: one.nodeName ?? null,
          zone: one.zone ?? null,
          hostname: one.hostname ?? null,
          hints: hintsOf(one),
          fromSlice,
        })
      }
    }
  }
  if (again.length === 0) return records
  const versions = versionsOf(slices)
  const others = Map.groupBy(again, placeOf)
  return records.map((first) => {
    const more = others.get(placeOf(first))
    return more === undefined ? first : winner([first, ...more], versions)
  })
}

function placeOf({
  addressType,
  port,
  protocol,
  addresses: [address = ''],
}: EndpointInput): string {
  return `${addressType} ${port} ${protocol} ${canonicalAddress(address)}`
}

type Port = Required<Pick<EndpointInput, 'port' | 'portName' | 'protocol'>>

function portsOf(slice: EndpointSlice, options: MergeOptions): Port[] {
  const wanted = numberOf(options.port)
  const listed = slice.ports ?? []
  if (listed.length === 0) {
    const port = options.defaultPort ?? wanted
    if (typeof port !== 'number') return []
    return [{ port, portName: '', protocol: options.protocol ?? 'TCP' }]
  }
  return listed.flatMap(({ name, port, protocol: given }) => {
    const portName = name ?? ''
    const protocol = given ?? 'TCP'
    if (port === undefined || port === null) return []
    if (options.protocol !== undefined && protocol !== options.protocol) return []
    const isWanted = wanted === undefined || wanted === port || wanted === portName
    return isWanted ? [{ port, portName, protocol }] : []
  })
}

/** A port's name always has a letter in it, so digits alone can only mean the number. */
function numberOf(given: unknown): unknown {
  return s.isText(given) && /^\d+$/.test(given) ? Number(given) : given
}

function hintsOf({ hints }: SliceEndpoint): EndpointHints | null {
  if (!hints) return null
  return {
    forZones: hints.forZones?.map(({ name }) => name) ?? null,
    forNodes: hints.forNodes?.map(({ name }) => name) ?? null,
  }
}

/** Which record of one address and port counts; `mergeSlices` says by which rules. */
function winner(records: readonly EndpointInput[], versions: Versions): EndpointInput {
  const tier = ({ conditions }: EndpointInput): number => tierOf(normaliseConditions(conditions))
  return records
    .filter((one) => !records.some((other) => isNewer(other, one, versions)))
    .reduce((best, one) => (tier(one) < tier(best) ? one : best))
}

/** Whether another record of the same pod is newer for certain. */
function isNewer(other: EndpointInput, one: EndpointInput, versions: Versions): boolean {
  const uid = one.targetRef?.uid
  if (!uid || other.targetRef?.uid !== uid) return false
  const isDeleted = other.conditions?.terminating === true
  if (isDeleted !== (one.conditions?.terminating === true)) return isDeleted
  const version = versions.get(one.fromSlice ?? '')
  return version !== undefined && (versions.get(other.fromSlice ?? '') ?? version) > version
}

/** The version of each slice, by its name, where it is a number and the name is only there once. */
type Versions = ReadonlyMap<string, bigint | undefined>

function versionsOf(slices: readonly EndpointSlice[]): Versions {
  const versions = new Map<string, bigint | undefined>()
  for (const slice of slices) {
    const name = nameOf(slice)
    const version = slice.metadata?.resourceVersion ?? ''
    const isTold = /^[1-9]\d*$/.test(version) && !versions.has(name)
    versions.set(name, isTold ? BigInt(version) : undefined)
  }
  return versions
}

function isOf(slice: EndpointSlice, service: string | undefined): boolean {
  if (service === undefined) return true
  const name = slice.metadata?.labels?.[SERVICE_LABEL]
  return name !== undefined && [name, `${namespaceOf(slice)}/${name}`].includes(service)
}

/** Slices of one Service, or an error that names them all. */
function checkOneService(slices: readonly EndpointSlice[]): void {
  const services = new Set(slices.map(serviceOf))
  if (services.size <= 1) return
  const listed = [...services].sort().slice(0, MOST_NAMED)
  if (services.size > MOST_NAMED) listed.push('…')
  throw new DrainableError(
    'INVALID_OPTIONS',
    `${SUBJECT}: the slices are of ${services.size} Services: ${listed.join(', ')}; say which one with the option service, as namespace/name`,
  )
}

const MOST_NAMED = 10

function serviceOf(slice: EndpointSlice): string {
  const name = slice.metadata?.labels?.[SERVICE_LABEL]
  const namespace = namespaceOf(slice)
  if (name !== undefined && name !== '') return `${namespace}/${name}`
  return `slices without the label ${SERVICE_LABEL} in ${namespace}`
}

function namespaceOf(slice: EndpointSlice): string {
  return slice.metadata?.namespace ?? 'default'
}

function nameOf(slice: EndpointSlice): string {
  return slice.metadata?.name ?? slice.name ?? ''
}

/** By namespace and name; slices without a name, or twice in the list, by what is in them. */
function compareSlices(a: EndpointSlice, b: EndpointSlice): number {
  return (
    compareText(a.metadata?.namespace ?? '', b.metadata?.namespace ?? '') ||
    compareText(nameOf(a), nameOf(b)) ||
    (a === b ? 0 : compareText(contentOf(a), contentOf(b)))
  )
}

/** What is read of a slice in one text. */
function contentOf(slice: EndpointSlice): string {
  const read =
    'metadata resourceVersion addressType ports name port protocol endpoints addresses conditions ready serving ' +
    'terminating targetRef uid kind namespace nodeName zone hostname hints forZones forNodes'
  return JSON.stringify(slice, read.split(' '))
}

function compareText(a: string, b: string): number {
  if (a === b) return 0
  return a < b ? -1 : 1
}

/**
 * The shape of slices. Their endpoints, most of what a cluster has, are looked at only where they are read.
 *
 * @param isRead - whether the endpoints of a slice are
 */
function slicesShape(isRead: (slice: EndpointSlice) => boolean): s.Shape {
  const labels = s.object('an object', { [SERVICE_LABEL]: s.nullable(s.text) })
  const metadata = {
    name: s.nullable(s.text),
    namespace: s.nullable(s.text),
    resourceVersion: s.nullable(s.text),
  }
  const ports = s.object('a port', {
    name: s.nullable(s.text),
    protocol: s.nullable(s.text),
    port: s.nullable(s.port),
  })
  const shape = s.object<EndpointSlice>('an EndpointSlice', {
    metadata: s.nullable(s.object('an object', { ...metadata, labels: s.nullable(labels) })),
    name: s.nullable(s.text),
    addressType: s.value("'IPv4', 'IPv6' or 'FQDN'", s.isText),
    ports: s.nullable(s.list('a list', ports)),
    endpoints: s.nullable(s.value('a list', Array.isArray)),
  })
  const list = s.list('a list of EndpointSlices', (found) => {
    if (!s.isObject(found)) return s.wrong(found, 'an EndpointSlice')
    const slice = found as unknown as EndpointSlice
    const fault =
      olderObject(found) ??
      shape(found) ??
      (isRead(slice) ? s.at('endpoints', s.orNone(found.endpoints, endpointsOfSlice)) : undefined)
    return s.named(slice.metadata?.name ?? slice.name, fault)
  })
  return (found) => olderObject(found) ?? list(found)
}

function endpointsOfSlice(found: unknown): s.Fault | undefined {
  return s.each(found, 'a list', endpoint)
}

function endpoint(found: unknown): s.Fault | undefined {
  if (!s.isObject(found)) return s.wrong(found, 'an endpoint')
  return (
    s.at('addresses', addressesShape(found.addresses)) ??
    s.at('conditions', conditionsShape(found.conditions)) ??
    s.at('nodeName', s.textOrNone(found.nodeName)) ??
    s.at('zone', s.textOrNone(found.zone)) ??
    s.at('hostname', s.textOrNone(found.hostname)) ??
    s.at('targetRef', s.orNone(found.targetRef, target)) ??
    s.at('hints', s.orNone(found.hints, hints))
  )
}

function target(found: unknown): s.Fault | undefined {
  if (!s.isObject(found)) return s.wrong(found, 'an object')
  return s.at('uid', s.textOrNone(found.uid)) ?? s.at('name', s.textOrNone(found.name))
}

function hints(found: unknown): s.Fault | undefined {
  if (!s.isObject(found)) return s.wrong(found, 'an object')
  return (
    s.at('forZones', s.orNone(found.forZones, names)) ??
    s.at('forNodes', s.orNone(found.forNodes, names))
  )
}

function names(found: unknown): s.Fault | undefined {
  return s.each(found, 'a list', (one) =>
    s.isObject(one) ? s.at('name', s.text(one.name)) : s.wrong(one, 'an object with a name'),
  )
}
