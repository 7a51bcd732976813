import type { AddressType } from './endpoint-input.js'

export { canonicalAddress } from '../provider/address.js'

/** What an address is, told from its text. */
export function addressTypeOf(text: string): AddressType {
  if (text.includes(':') && !text.startsWith('/')) return 'IPv6'
  return /^\d{1,3}(?:\.\d{1,3}){3}(?:%\d+)?$/.test(text) ? 'IPv4' : 'FQDN'
}

/** An address and a port in one text: `10.0.0.1:80`, `[2001:db8::1]:80`; without a port the address alone. */
export function formatAddress(address: string, port?: number): string {
  if (port === undefined) return address
  const bare = address.includes(':') && !address.startsWith('[') && !address.startsWith('/')
  return bare ? `[${address}]:${port}` : `${address}:${port}`
}
