import type { CallContext } from '../../../provider/contract.js'
import { isDrainableError } from '../../../provider/error.js'
import { rawText } from '../codec/entries.js'
import type { Device } from '../session/device.js'
import { isOneAddress, toFilterWord } from './connections.js'
import type { Place } from './places.js'

/**
 * Deletes the persistence records of a member, or of a node over all its pools, so that their clients
 * are balanced anew. It never fails a change: what came of it is said.
 *
 * @returns what it hit, in one sentence
 */
export async function forgetRecords(place: Place, ctx: CallContext): Promise<string> {
  const { device } = place
  const path = recordsPath(place)
  if (path === undefined)
    return `persistence records were not forgotten at ${device.host}: they can only be found by one address`
  const whose = `of ${place.pool === undefined ? '' : `${place.pool} `}${place.address ?? ''}${place.port === undefined ? '' : ` port ${place.port}`}`
  try {
    const before = await countRecords(device, path, ctx)
    if (before === 0) return `${device.host} has no persistence record ${whose}`
    const meaning = await device.session.ask({ method: 'DELETE', path }, ctx)
    if (meaning.kind !== 'ok' && meaning.kind !== 'absent')
      throw device.session.toError(meaning, 'DELETE /mgmt/tm/ltm/persistence/persist-records')
    const after = await countRecords(device, path, ctx)
    if (before === undefined || after === undefined)
      return `${device.host} was told to forget its persistence records ${whose}`
    if (after >= before)
      return `${device.host} said yes and forgot none of ${before} persistence records ${whose}`
    return `${device.host} forgot ${before - after} of ${before} persistence records ${whose}`
  } catch (error) {
    if (ctx.signal.aborted || !isDrainableError(error)) throw error
    return `persistence records were not forgotten at ${device.host}: ${error.message}`
  }
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
  device: Device,
  path: string,
  ctx: CallContext,
): Promise<number | undefined> {
  const found = await device.session.get(path, ctx)
  const text = found === undefined ? undefined : rawText(found)
  const count = /Total records returned:\s{0,9}(\d{1,9})/i.exec(text?.slice(-1_000) ?? '')?.[1]
  return count === undefined ? undefined : Number(count)
}
