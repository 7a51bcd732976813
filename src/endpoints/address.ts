import { assertText } from '../provider/address.js'
import type { AddressType } from './endpoint-input.js'

export { canonicalAddress, formatAddress } from '../provider/address.js'

/** What an address is, told from its text. */
export function addressTypeOf(text: string): AddressType {
  assertText(text, 'addressTypeOf()')
  if (text.includes(':') && !text.startsWith('/')) return 'IPv6'
  return /^\d{1,3}(?:\.\d{1,3}){3}(?:%\d+)?$/.test(text) ? 'IPv4' : 'FQDN'
}
