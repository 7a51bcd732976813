import type { CallContext, Change, ChangeResult } from '../../../provider/contract.js'
import { DrainableError, isDrainableError } from '../../../provider/error.js'
import type { MemberRow } from '../codec/members.js'
import type { StatsTable } from '../codec/stats.js'
import type { Device } from '../session/device.js'
import type { Place } from './places.js'
import { PROVIDER, uncertain } from '../session/session.js'
import { statsOf } from '../read/read.js'

/** One address and port on one unit, with the members behind it. */
interface Cut {
  readonly device: Device
  readonly path: string
  readonly members: readonly { readonly pool: string; readonly row: MemberRow }[]
}

/**
 * Cuts by address and port; the number is what the last statistics showed, an upper bound.
 *
 * What was cut can't be put back: a refusal after the first cut leaves the change done, with a note
 * of what was not cut.
 *
 * @throws what stood in the way of the first cut
 */
export async function terminate(
  { ref }: Change,
  places: readonly Place[],
  ctx: CallContext,
): Promise<{ readonly result: ChangeResult; readonly note?: string }> {
  const cuts = places.flatMap(toCuts)
  let terminated = 0
  const failed: string[] = []
  for (const [i, { device, path, members }] of cuts.entries()) {
    try {
      const open = await countOpen(device, members, ctx)
      await deleteConnections(device, path, ctx)
      terminated += open
    } catch (error) {
      const nothing = i === failed.length
      if (ctx.signal.aborted || nothing || !isDrainableError(error) || error.retryable) throw error
      failed.push(error.message)
    }
  }
  const note =
    failed.length === 0 ? {} : { note: `some connections were not cut: ${failed.join('; ')}` }
  return { result: { ref, status: 'applied', terminated, atMost: true }, ...note }
}

/** Every path is made before the first is used: one that is in doubt refuses all of them. */
function toCuts({ device, endpoints }: Place): readonly Cut[] {
  const byPath = Map.groupBy(endpoints, ({ row }) => connectionPath(row.address, row.port))
  return [...byPath].map(([path, members]) => ({ device, path, members }))
}

async function countOpen(
  device: Device,
  members: Cut['members'],
  ctx: CallContext,
): Promise<number> {
  const tables = new Map<string, StatsTable>()
  let open = 0
  for (const { pool, row } of members) {
    const table = tables.get(pool) ?? (await device.readStats(pool, ctx))
    tables.set(pool, table)
    open += statsOf(table, row)?.active ?? 0
  }
  return open
}

/** Deletes the open connections to one address and port, whatever pool they came through. */
async function deleteConnections(device: Device, path: string, ctx: CallContext): Promise<void> {
  const meaning = await device.session.ask({ method: 'DELETE', path }, ctx)
  if (meaning.kind === 'ok' || meaning.kind === 'absent') return
  const error = device.session.toError(meaning, 'DELETE /mgmt/tm/sys/connection')
  throw uncertain(error, meaning.kind)
}

const ADDRESS = /^(?:\d{1,3}(?:\.\d{1,3}){3}|[0-9a-f:.]*:[0-9a-f:.]+)(?:%\d+)?$/i

/**
 * The one path that deletes connections; the words are those of tmsh, joined by `+`.
 *
 * Without its filter the same request empties the connection table of the whole device. So the path
 * is made here and nowhere else, and only from an address and a port that are beyond doubt.
 *
 * @throws `UNSUPPORTED` where they are not
 */
export function connectionPath(address: string | undefined, port: number): string {
  const any = address === undefined || /^(?:any6?|::|0\.0\.0\.0)(?:%\d+)?$/i.test(address)
  if (any || !ADDRESS.test(address) || !Number.isInteger(port) || port < 1 || port > 65_535) {
    throw new DrainableError(
      'UNSUPPORTED',
      `connections can only be cut by one address and one port, not by ${address ?? 'no address'} port ${port}; let them end, or cut them on the server`,
      { provider: PROVIDER },
    )
  }
  const server = encodeURIComponent(address).replaceAll('%3A', ':')
  return `/mgmt/tm/sys/connection?options=ss-server-addr+${server}+ss-server-port+${port}`
}
