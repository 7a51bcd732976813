import { caught } from '../../../kit/errors.js'
import type { CallContext } from '../../../provider/contract.js'
import { rawText } from '../codec/entries.js'
import { isOneAddress, toFilterWord } from './connections.js'
import type { Place } from './places.js'

/**
 * Deletes the persistence records of a member, or of a node over all its pools, so that their clients
 * are balanced anew. It never fails a change: what came of it is said.
 *
 * @returns what it hit, in one sentence
 */
export async function forgetRecords(place: Place, ctx: CallContext): Promise<string> {
  const { device, pool, address, port } = place
  const kept = `persistence records were not forgotten at ${device.host}`
  const path = recordsPath(place)
  if (path === undefined) return `${kept}: they can only be found by one address`
  const where = `${address ?? ''}${port === undefined ? '' : ` port ${port}`}`
  const records = `persistence records of ${pool === undefined ? '' : `${pool} `}${where}`
  const forget = async (): Promise<string> => {
    const before = await countRecords(place, path, ctx)
    if (before === 0) return `${device.host} has no ${records}`
    await device.session.change({ method: 'DELETE', path }, ctx, 'absent')
    const after = await countRecords(place, path, ctx)
    if (before === undefined || after === undefined)
      return `${device.host} was told to forget its ${records}`
    if (after >= before) return `${device.host} said yes and forgot none of ${before} ${records}`
    return `${device.host} forgot ${before - after} of ${before} ${records}`
  }
  return caught(ctx, forget, ({ message }) => `${kept}: ${message}`)
}

/**
 * The one path that deletes persistence records. Without its filter the same request empties the table
 * of the whole device, so it is made from an address that is beyond doubt, and from port and pool of a
 * member.
 */
export function recordsPath({
  pool,
  address,
  port,
}: Pick<Place, 'pool' | 'address' | 'port'>): string | undefined {
  if (!isOneAddress(address)) return undefined
  const words = ['node-addr', toFilterWord(address)]
  if (pool !== undefined) {
    if (port === undefined || port < 1) return undefined
    words.push('node-port', String(port), 'pool', toFilterWord(pool))
  }
  return `/mgmt/tm/ltm/persistence/persist-records?options=${words.join('+')}`
}

/** How many there are; undefined where the device does not say so in a way that is known. */
async function countRecords(
  { device }: Place,
  path: string,
  ctx: CallContext,
): Promise<number | undefined> {
  const found = await device.session.get(path, ctx)
  const text = found === undefined ? undefined : rawText(found)
  const count = /Total records returned:\s{0,9}(\d{1,9})/i.exec(text?.slice(-1_000) ?? '')?.[1]
  return count === undefined ? undefined : Number(count)
}
