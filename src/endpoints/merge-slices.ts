import { canonicalAddress } from './address.js'
import { checkOptions, checkPort, checkText, checkWord, refuse } from './check.js'
import { normaliseConditions, tierOf } from './conditions.js'
import type { AddressType, EndpointHints, EndpointInput } from './endpoint-input.js'
import { checkSlice } from './check-slice.js'
import type { EndpointSlice, SliceEndpoint } from './endpoint-slice.js'

/** Which endpoints of the slices are wanted. */
export interface MergeOptions {
  /**
   * The Service's port, by name or by number: one pool of a balancer is one port. Where a slice
   * lists no ports (a headless Service without any), a number is the port to use. Default: all
   * ports; each is an endpoint of its own.
   */
  readonly port?: string | number
  /** The port for slices that list none. Default: `port`, where it is a number. */
  readonly defaultPort?: number
  /** Only ports of this protocol. Default: all. */
  readonly protocol?: 'TCP' | 'UDP' | 'SCTP'
  /** @default ['IPv4', 'IPv6'] */
  readonly families?: readonly AddressType[]
  /** Only slices of this Service, `name` or `namespace/name`, by their label. Default: all that are given. */
  readonly service?: string
}

const SUBJECT = 'mergeSlices()'
const SERVICE_LABEL = 'kubernetes.io/service-name'

/** One record of a slice, for one port. */
interface Found {
  readonly endpoint: EndpointInput
  /** Place of its slice in the order of names, then its place in the slice. */
  readonly order: number
}

/**
 * Makes one list of endpoints out of the EndpointSlices of a Service. One address and port may be in
 * several slices for a while, and in different states: which record counts does not depend on the
 * order in which the slices are given.
 *
 * 1. Same pod (`targetRef.uid`) and one record says terminating: only that one counts, since a
 *    deletion can't be taken back.
 * 2. Otherwise the better tier counts: an address that a new pod took over belongs to the live one.
 * 3. Otherwise the smaller slice name.
 *
 * Call it only once the cache behind it is synced: an empty list looks as if every endpoint was gone.
 *
 * @param slices - EndpointSlices of one Service; see {@link EndpointSlice} for what is read of them
 * @throws `INVALID_OPTIONS` with the path, for input that is no EndpointSlice
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
  checkMergeOptions(options)
  if (!Array.isArray(slices)) refuse(SUBJECT, 'slices', slices, 'a list of EndpointSlices')
  const families: readonly string[] = options.families ?? ['IPv4', 'IPv6']
  const wanted = slices
    .map((slice: unknown, i) => checkSlice(SUBJECT, slice, `slices[${i}]`))
    .filter((slice) => families.includes(slice.addressType) && isOf(slice, options.service))
    .sort(compareSlices)
  const first = new Map<string, Found>()
  const others = new Map<string, Found[]>()
  for (const [order, slice] of wanted.entries()) {
    for (const { key, endpoint } of recordsOf(slice, options)) {
      const found = { endpoint, order }
      const earlier = first.get(key)
      if (earlier === undefined) first.set(key, found)
      else {
        const list = others.get(key)
        if (list) list.push(found)
        else others.set(key, [earlier, found])
      }
    }
  }
  for (const [key, list] of others) first.set(key, winner(list))
  return Array.from(first.values(), ({ endpoint }) => endpoint)
}

function* recordsOf(
  slice: EndpointSlice,
  options: MergeOptions,
): Generator<{ key: string; endpoint: EndpointInput }> {
  const { endpoints } = slice
  if (!endpoints || endpoints.length === 0) return
  const ports = portsOf(slice, options).map((port) => ({
    ...port,
    suffix: ` ${slice.addressType} ${port.port} ${port.protocol}`,
  }))
  const fromSlice = nameOf(slice)
  const addressType = slice.addressType as AddressType
  for (const one of endpoints) {
    const address = one.addresses[0]
    if (address === undefined || address === '') continue
    const canonical = canonicalAddress(address)
    for (const { port, portName, protocol, suffix } of ports) {
      const endpoint: EndpointInput = {
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
      }
      yield { key: canonical + suffix, endpoint }
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
function numberOf(port: string | number | undefined): string | number | undefined {
  return typeof port === 'string' && /^\d+$/.test(port) ? Number(port) : port
}

function hintsOf({ hints }: SliceEndpoint): EndpointHints | null {
  if (!hints) return null
  return {
    forZones: hints.forZones?.map(({ name }) => name) ?? null,
    forNodes: hints.forNodes?.map(({ name }) => name) ?? null,
  }
}

/** Which record of one address and port counts; `mergeSlices` says by which rules. */
function winner(found: readonly Found[]): Found {
  const deleted = new Set<string>()
  for (const { endpoint } of found) {
    const uid = endpoint.targetRef?.uid
    if (uid && endpoint.conditions?.terminating === true) deleted.add(uid)
  }
  const stale = ({ endpoint }: Found): boolean =>
    endpoint.conditions?.terminating !== true && deleted.has(endpoint.targetRef?.uid ?? '')
  const tier = ({ endpoint }: Found): number => tierOf(normaliseConditions(endpoint.conditions))
  return found
    .filter((one) => !stale(one))
    .reduce((best, one) => (tier(one) < tier(best) ? one : best))
}

function isOf(slice: EndpointSlice, service: string | undefined): boolean {
  if (service === undefined) return true
  const slash = service.indexOf('/')
  const name = service.slice(slash + 1)
  const namespace = slash < 0 ? undefined : service.slice(0, slash)
  if (slice.metadata?.labels?.[SERVICE_LABEL] !== name) return false
  return namespace === undefined || (slice.metadata.namespace ?? 'default') === namespace
}

function nameOf(slice: EndpointSlice): string {
  return slice.metadata?.name ?? slice.name ?? ''
}

/** By namespace and name; slices without a name, or twice in the list, by what is in them. */
function compareSlices(a: EndpointSlice, b: EndpointSlice): number {
  return (
    compareText(a.metadata?.namespace ?? '', b.metadata?.namespace ?? '') ||
    compareText(nameOf(a), nameOf(b)) ||
    (a === b ? 0 : compareText(JSON.stringify(a), JSON.stringify(b)))
  )
}

function compareText(a: string, b: string): number {
  if (a === b) return 0
  return a < b ? -1 : 1
}

function checkMergeOptions(options: MergeOptions): void {
  checkOptions(SUBJECT, options, ['port', 'defaultPort', 'protocol', 'families', 'service'])
  const { port, defaultPort, protocol, families, service } = options
  if (typeof port === 'number') checkPort(SUBJECT, 'port', port)
  else checkText(SUBJECT, 'port', port)
  checkPort(SUBJECT, 'defaultPort', defaultPort)
  checkWord(SUBJECT, 'protocol', protocol, ['TCP', 'UDP', 'SCTP'])
  checkText(SUBJECT, 'service', service)
  if (families === undefined) return
  if (!Array.isArray(families)) refuse(SUBJECT, 'families', families, 'a list of address families')
  for (const [i, family] of families.entries()) {
    checkWord(SUBJECT, `families[${i}]`, family, ['IPv4', 'IPv6', 'FQDN'])
  }
}
