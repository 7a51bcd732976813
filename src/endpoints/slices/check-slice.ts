import { checkFlag, checkPort, checkText, isObject, refuse } from '../check.js'
import type { EndpointSlice } from './endpoint-slice.js'

/** Names the Service that a slice is of. */
export const SERVICE_LABEL = 'kubernetes.io/service-name'

/** A slice and its place in what the caller gave: `slices[2] (web-x7k2p)`. */
export interface PlacedSlice {
  readonly slice: EndpointSlice
  readonly path: string
}

/** An EndpointSlice as far as it is read here, all but its endpoints, or an error that names the place. */
export function checkSlice(subject: string, slice: unknown, path: string): PlacedSlice {
  if (!isObject(slice)) refuse(subject, path, slice, 'an EndpointSlice')
  const { metadata, addressType, ports, endpoints } = slice
  if (metadata !== undefined && metadata !== null) {
    if (!isObject(metadata)) refuse(subject, `${path}.metadata`, metadata, 'an object')
    checkText(subject, `${path}.metadata.name`, metadata.name)
    checkText(subject, `${path}.metadata.namespace`, metadata.namespace)
    checkText(subject, `${path}.metadata.resourceVersion`, metadata.resourceVersion)
    if (metadata.labels !== undefined && metadata.labels !== null && !isObject(metadata.labels)) {
      refuse(subject, `${path}.metadata.labels`, metadata.labels, 'an object')
    }
    if (isObject(metadata.labels)) {
      const service = metadata.labels[SERVICE_LABEL]
      checkText(subject, `${path}.metadata.labels['${SERVICE_LABEL}']`, service)
    }
  }
  checkText(subject, `${path}.name`, slice.name)
  const named = namedPath(path, slice)
  if (typeof addressType !== 'string') {
    const hint = 'subsets' in slice ? ' (this looks like an Endpoints object)' : ''
    refuse(subject, `${named}.addressType`, addressType, `'IPv4', 'IPv6' or 'FQDN'${hint}`)
  }
  checkPorts(subject, ports, `${named}.ports`)
  if (endpoints !== undefined && endpoints !== null && !Array.isArray(endpoints)) {
    refuse(subject, `${named}.endpoints`, endpoints, 'a list')
  }
  return { slice: slice as unknown as EndpointSlice, path: named }
}

/**
 * The endpoints of a slice, checked just before they are used: this runs over every endpoint of a
 * cluster, and for the same reason a path becomes text only where something is wrong.
 */
export function checkEndpointsOf(subject: string, { slice, path }: PlacedSlice): void {
  const endpoints: readonly unknown[] = slice.endpoints ?? []
  for (let i = 0; i < endpoints.length; i++) checkEndpoint(subject, endpoints[i], path, i)
}

function namedPath(path: string, slice: Readonly<Record<string, unknown>>): string {
  const name = isObject(slice.metadata) ? slice.metadata.name : slice.name
  return typeof name === 'string' ? `${path} (${name})` : path
}

function checkPorts(subject: string, ports: unknown, path: string): void {
  if (ports === undefined || ports === null) return
  if (!Array.isArray(ports)) refuse(subject, path, ports, 'a list')
  for (const [i, port] of ports.entries()) {
    if (!isObject(port)) refuse(subject, `${path}[${i}]`, port, 'a port')
    checkText(subject, `${path}[${i}].name`, port.name)
    checkText(subject, `${path}[${i}].protocol`, port.protocol)
    if (port.port !== null) checkPort(subject, `${path}[${i}].port`, port.port)
  }
}

/** Written for a list of ten thousand, checked at every turn: a path becomes text only where something is wrong. */
function checkEndpoint(subject: string, one: unknown, slice: string, i: number): void {
  if (!isObject(one)) refuse(subject, `${slice}.endpoints[${i}]`, one, 'an endpoint')
  const { addresses, conditions, hints, targetRef } = one
  if (!Array.isArray(addresses)) {
    refuse(subject, `${slice}.endpoints[${i}].addresses`, addresses, 'a list of addresses')
  }
  for (let n = 0; n < addresses.length; n++) {
    if (typeof addresses[n] !== 'string') {
      refuse(subject, `${slice}.endpoints[${i}].addresses[${n}]`, addresses[n], 'a text')
    }
  }
  if (conditions !== undefined && conditions !== null)
    checkConditions(subject, conditions, slice, i)
  if (!isTextOrNone(one.nodeName) || !isTextOrNone(one.zone) || !isTextOrNone(one.hostname)) {
    checkTextsOf(subject, one, `${slice}.endpoints[${i}]`, ['nodeName', 'zone', 'hostname'])
  }
  if (targetRef !== undefined && targetRef !== null) {
    if (!isObject(targetRef))
      refuse(subject, `${slice}.endpoints[${i}].targetRef`, targetRef, 'an object')
    if (!isTextOrNone(targetRef.uid) || !isTextOrNone(targetRef.name))
      checkTextsOf(subject, targetRef, `${slice}.endpoints[${i}].targetRef`, ['uid', 'name'])
  }
  if (hints !== undefined && hints !== null) checkHints(subject, hints, slice, i)
}

function checkConditions(subject: string, conditions: unknown, slice: string, i: number): void {
  if (!isObject(conditions)) {
    refuse(subject, `${slice}.endpoints[${i}].conditions`, conditions, 'an object')
  }
  const { ready, serving, terminating } = conditions
  if (isTri(ready) && isTri(serving) && isTri(terminating)) return
  const path = `${slice}.endpoints[${i}].conditions`
  checkFlag(subject, `${path}.ready`, ready)
  checkFlag(subject, `${path}.serving`, serving)
  checkFlag(subject, `${path}.terminating`, terminating)
}

function isTextOrNone(value: unknown): boolean {
  return value === undefined || value === null || typeof value === 'string'
}

function checkTextsOf(
  subject: string,
  of: Readonly<Record<string, unknown>>,
  path: string,
  names: readonly string[],
): void {
  for (const name of names) checkText(subject, `${path}.${name}`, of[name])
}

function isTri(value: unknown): boolean {
  return value === undefined || value === null || typeof value === 'boolean'
}

function checkHints(subject: string, hints: unknown, slice: string, i: number): void {
  const path = `${slice}.endpoints[${i}].hints`
  if (!isObject(hints)) refuse(subject, path, hints, 'an object')
  for (const kind of ['forZones', 'forNodes']) {
    const list = hints[kind]
    if (list === undefined || list === null) continue
    if (!Array.isArray(list)) refuse(subject, `${path}.${kind}`, list, 'a list')
    for (const [n, hint] of list.entries()) {
      if (!isObject(hint) || typeof hint.name !== 'string') {
        refuse(subject, `${path}.${kind}[${n}]`, hint, 'an object with a name')
      }
    }
  }
}
