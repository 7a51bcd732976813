import { DrainableError } from '../../provider/error.js'
import { once } from '../../provider/once.js'
import { canonicalAddress } from '../address.js'
import type { AddressType, EndpointHints, EndpointInput } from '../endpoint-input.js'
import { check, checkOptions, list, optional, port, value, word } from '../shape.js'
import { normaliseConditions, tierOf } from './conditions.js'
import {
  SERVICE_LABEL,
  sliceName,
  slicesShape,
  type EndpointSlice,
  type SliceEndpoint,
} from './endpoint-slice.js'

/** Options of {@link mergeSlices}: which endpoints to take. */
export interface MergeOptions {
  /**
   * The Service's port, by name or by number: one pool of a balancer is one port. If a slice lists no ports (a
   * headless Service without any), a number is the port to use. Default: all ports; each is a separate endpoint.
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
  checkOptions(SUBJECT, options, optionShapes())
  const { families = ['IPv4', 'IPv6'], service } = options
  const isRead = (one: EndpointSlice): boolean =>
    isOf(one, service) && families.includes(one.addressType as AddressType)
  check(SUBJECT, 'slices', slices, slicesShape(isRead))
  const all = slices as readonly EndpointSlice[]
  checkOneService(all.filter((one) => isOf(one, service)))
  const wanted = all.filter(isRead).sort(compareSlices)
  const merged = new Merged()
  for (const one of wanted) addSlice(merged, one, options)
  return merged.list(() => versionsOf(wanted))
}

/** What is known of one family, port and protocol. */
interface Places {
  /** Every address that there is. */
  readonly known: Set<string>
  /** Further records of an address that is known already. */
  readonly again: Map<string, EndpointInput[]>
}

/**
 * The records found so far, in the order of their slices; one per key but for those in several slices. Each address
 * costs one look into a set, and which record came first is searched only for those that come again: few do.
 */
class Merged {
  readonly #records: EndpointInput[] = []
  readonly #places = new Map<string, Places>()

  placesOf(family: string, port: number, protocol: string): Places {
    const suffix = suffixOf(family, port, protocol)
    let places = this.#places.get(suffix)
    if (places === undefined) {
      places = { known: new Set(), again: new Map() }
      this.#places.set(suffix, places)
    }
    return places
  }

  add({ known, again }: Places, address: string, record: EndpointInput): void {
    const before = known.size
    known.add(address)
    if (known.size > before) {
      this.#records.push(record)
      return
    }
    const others = again.get(address)
    if (others) others.push(record)
    else again.set(address, [record])
  }

  /** @param versions - made only if they are needed: few addresses are in several slices */
  list(versions: () => Versions): EndpointInput[] {
    if ([...this.#places.values()].every(({ again }) => again.size === 0)) return this.#records
    const known = versions()
    return this.#records.map((first) => {
      const { addresses, addressType = '', port = 0, protocol = '' } = first
      const places = this.#places.get(suffixOf(addressType, port, protocol))
      const others = places?.again.get(canonicalAddress(addresses[0] ?? ''))
      return others === undefined ? first : winner([first, ...others], known)
    })
  }
}

function suffixOf(family: string, port: number, protocol: string): string {
  return `${family} ${port} ${protocol}`
}

function addSlice(merged: Merged, slice: EndpointSlice, options: MergeOptions): void {
  const fromSlice = nameOf(slice)
  const addressType = slice.addressType as AddressType
  for (const { port, portName, protocol } of portsOf(slice, options)) {
    const places = merged.placesOf(addressType, port, protocol)
    for (const one of slice.endpoints ?? []) {
      const address = one.addresses[0]
      if (address === undefined || address === '') continue
      merged.add(places, canonicalAddress(address), {
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

interface Port {
  readonly port: number
  readonly portName: string
  readonly protocol: string
}

function portsOf(slice: EndpointSlice, options: MergeOptions): Port[] {
  const wanted = numberOf(options.port)
  const fallback = options.defaultPort ?? (typeof wanted === 'number' ? wanted : undefined)
  const listed = slice.ports ?? []
  const all: Port[] =
    listed.length === 0 && fallback !== undefined
      ? [{ port: fallback, portName: '', protocol: options.protocol ?? 'TCP' }]
      : listed.flatMap(({ name, port, protocol }) =>
          port === undefined || port === null
            ? []
            : [{ port, portName: name ?? '', protocol: protocol ?? 'TCP' }],
        )
  const given = listed.length > 0
  return all.filter(
    ({ port, portName, protocol }) =>
      (options.protocol === undefined || protocol === options.protocol) &&
      (!given || wanted === undefined || wanted === (typeof wanted === 'number' ? port : portName)),
  )
}

/** A port's name always has a letter in it, so digits alone can only mean the number. */
function numberOf(given: unknown): unknown {
  return typeof given === 'string' && /^\d+$/.test(given) ? Number(given) : given
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
  const deleted = new Set<string>()
  for (const { targetRef, conditions } of records) {
    if (targetRef?.uid && conditions?.terminating === true) deleted.add(targetRef.uid)
  }
  const stale = ({ targetRef, conditions }: EndpointInput): boolean =>
    conditions?.terminating !== true && deleted.has(targetRef?.uid ?? '')
  const tier = ({ conditions }: EndpointInput): number => tierOf(normaliseConditions(conditions))
  const left = records.filter((one) => !stale(one))
  const isOlder = (one: EndpointInput): boolean => {
    const { uid } = one.targetRef ?? {}
    const version = versions.get(one.fromSlice ?? '')
    return left.some(({ targetRef, fromSlice }) => {
      if (!uid || targetRef?.uid !== uid || version === undefined) return false
      return (versions.get(fromSlice ?? '') ?? version) > version
    })
  }
  return left
    .filter((one) => !isOlder(one))
    .reduce((best, one) => (tier(one) < tier(best) ? one : best))
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
  const slash = service.indexOf('/')
  const name = service.slice(slash + 1)
  const namespace = slash < 0 ? undefined : service.slice(0, slash)
  if (slice.metadata?.labels?.[SERVICE_LABEL] !== name) return false
  return namespace === undefined || namespaceOf(slice) === namespace
}

/** Slices of one Service, or an error that names them all. */
function checkOneService(slices: readonly EndpointSlice[]): void {
  const services = new Set(slices.map(serviceOf))
  if (services.size <= 1) return
  const names = [...services].sort()
  const listed = names.length > MOST_NAMED ? [...names.slice(0, MOST_NAMED), '…'] : names
  throw new DrainableError(
    'INVALID_OPTIONS',
    `${SUBJECT}: the slices are of ${services.size} Services: ${listed.join(', ')}; say which one with the option service, as namespace/name`,
  )
}

const MOST_NAMED = 10

function serviceOf(slice: EndpointSlice): string {
  const name = slice.metadata?.labels?.[SERVICE_LABEL]
  return name === undefined || name === ''
    ? `slices without the label ${SERVICE_LABEL} in ${namespaceOf(slice)}`
    : `${namespaceOf(slice)}/${name}`
}

function namespaceOf(slice: EndpointSlice): string {
  return slice.metadata?.namespace ?? 'default'
}

function nameOf(slice: EndpointSlice): string {
  return sliceName(slice) ?? ''
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
function contentOf({ metadata, addressType, ports, endpoints }: EndpointSlice): string {
  return JSON.stringify([
    metadata?.resourceVersion,
    addressType,
    ports?.map(({ name, port, protocol }) => [name, port, protocol]),
    endpoints?.map((one) => [
      one.addresses,
      one.conditions?.ready,
      one.conditions?.serving,
      one.conditions?.terminating,
      one.targetRef?.uid,
      one.targetRef?.kind,
      one.targetRef?.namespace,
      one.targetRef?.name,
      one.nodeName,
      one.zone,
      one.hostname,
      hintsOf(one),
    ]),
  ])
}

function compareText(a: string, b: string): number {
  if (a === b) return 0
  return a < b ? -1 : 1
}

const SERVICE = /^(?:[^/]+\/)?[^/]+$/

const optionShapes = once(() => {
  const service = `a Service's name, or namespace/name`
  const name = value(`a port's name or number`, (one) => typeof one === 'string')
  return {
    port: optional((given) => {
      const number = numberOf(given)
      return typeof number === 'number' ? port(number) : name(given)
    }),
    defaultPort: optional(port),
    protocol: optional(word('TCP', 'UDP', 'SCTP')),
    families: optional(list('a list of address families', word('IPv4', 'IPv6', 'FQDN'))),
    service: optional(value(service, (one) => typeof one === 'string' && SERVICE.test(one))),
  }
})
