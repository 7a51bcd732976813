import { createHash } from 'node:crypto'
import { canonicalAddress } from './address.js'

/** Where a member is. */
export interface Place {
  readonly address: string
  readonly port: number
}

/** The longest name that every product takes: NetScaler has the shortest limit. */
const LONGEST = 127

/**
 * Another name for a member whose own name belongs to something at another address. It comes from name and place, so
 * the same member has the same one in every try.
 *
 * It begins as the name does, because callers tell their members by a prefix, and keeps a port at its end, which is
 * part of a member's name in BIG-IP and NetScaler. What is put in between is a hyphen, lower-case letters and digits:
 * all products take these.
 */
export function freeName(name: string, { address, port }: Place): string {
  const [tail = ''] = new RegExp(`[:.]${port}$`).exec(name) ?? []
  const mark = createHash('sha256')
    .update(`${canonicalAddress(address)} ${port}`)
    .digest('hex')
  const end = `-${mark.slice(0, 8)}${tail}`
  return name.slice(0, name.length - tail.length).slice(0, LONGEST - end.length) + end
}
