import { isIPv6, SocketAddress } from 'node:net'

/**
 * One spelling per address, so that two spellings of an IPv6 address compare equal. A zone or route
 * domain after `%` is kept: the same address in another route domain is another address. What is no
 * IP address (a host name, a socket path) comes back in lower case, a path as it is.
 */
export function canonicalAddress(address: string): string {
  const bare = /^\[(.*)\]$/.exec(address)?.[1] ?? address
  if (bare.startsWith('/')) return bare
  const [host = '', zone] = bare.split('%', 2)
  const spelled = isIPv6(host)
    ? new SocketAddress({ address: host, family: 'ipv6' }).address
    : host.toLowerCase()
  return zone === undefined ? spelled : `${spelled}%${zone}`
}
