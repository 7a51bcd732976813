import type { JsonObject } from '../../../kit/json.js'
import { formatSocket } from '../../../provider/address.js'

// Member names: `10.0.0.1:80`, `[2001:db8::1]:80`, `/run/app.sock`, `envoy://listener/id`. An endpoint set
// and the admin API may write one IPv6 address in two ways; both go through formatSocket, so that they meet.

/** The same member name for every way of writing it. */
export function canonicalMember(name: string): string {
  const match = /^\[(.+)\]:(\d+)$/.exec(name)
  return match?.[1] === undefined ? name : formatSocket(match[1], Number(match[2]))
}

/** Address and port of a member name; undefined for a pipe or an internal listener. */
export function parseSocket(name: string): { address: string; port: number } | undefined {
  const match = /^(?:\[([^\]]+)\]|([^:/]+)):(\d+)$/.exec(name)
  const address = match?.[1] ?? match?.[2]
  return address === undefined ? undefined : { address, port: Number(match?.[3]) }
}

/** Whether an address is the path of a socket, or an abstract one. */
export function isPipe(address: string): boolean {
  return address.startsWith('/') || address.startsWith('@')
}

/** An address in the JSON of an endpoint. */
export function formatAddress(address: string, port: number): JsonObject {
  return isPipe(address)
    ? { pipe: { path: address } }
    : { socket_address: { address, port_value: port } }
}
