import type { ChangeOutcome } from '../../../kit/change.js'
import { until } from '../../../kit/until.js'
import type { CallContext } from '../../../provider/contract.js'
import { DrainableError, isDrainableError } from '../../../provider/error.js'
import { statsOf } from '../codec/stats.js'
import { membersOfNode, type Target } from '../read/target.js'
import type { Device } from '../session/device.js'
import { PROVIDER } from '../session/session.js'
import type { Place } from './places.js'

/** Beyond what statistics lag behind: how long a cut may take to show, in milliseconds. */
const SHOWS = 1_000
const LOOK = 500
/** How often a cut is sent that shows no effect. */
const TIMES = 2

/** What is to be cut on one unit, and what tells whether it was. */
interface Cutting {
  readonly device: Device
  readonly paths: readonly string[]
  /** Undefined where the statistics of one of them are not there: that is no 0. */
  readonly count: (ctx: CallContext) => Promise<number | undefined>
}

/** What became of a cut, and what to tell whoever asks why. */
export interface CutOutcome {
  readonly outcome: ChangeOutcome
  readonly note?: string
}

/**
 * Cuts by address and port. A device may say yes and cut nothing: what counts is what the next readings
 * show gone.
 *
 * What was cut can't be put back: a refusal after the first cut leaves the change done, with a note of
 * what was not cut.
 *
 * @param forget - done before the first cut, once every path is beyond doubt
 * @throws what stood in the way of the first cut
 */
export async function terminate(
  target: Target,
  places: readonly Place[],
  { freshness, forget }: { readonly freshness: number; readonly forget: () => Promise<void> },
  ctx: CallContext,
): Promise<CutOutcome> {
  // Every path is made before the first is used: one that is in doubt refuses all of them.
  const cuttings = await Promise.all(places.map((place) => toCutting(target, place, ctx)))
  await forget()
  const failed: string[] = []
  const said = { open: 0, gone: 0 }
  for (const [i, cutting] of cuttings.entries()) {
    try {
      const { open, gone } = await cutAndCount(cutting, freshness, ctx)
      said.open += open
      said.gone += gone
    } catch (error) {
      const nothing = i === failed.length
      if (ctx.signal.aborted || nothing || !isDrainableError(error) || error.retryable) throw error
      failed.push(error.message)
    }
  }
  if (said.open > 0 && said.gone === 0) throw cutNothing(places, said.open)
  const note =
    failed.length === 0 ? {} : { note: `some connections were not cut: ${failed.join('; ')}` }
  return { outcome: { status: 'applied', terminated: said.gone, atMost: true }, ...note }
}

function cutNothing(places: readonly Place[], open: number): DrainableError {
  const hosts = places.map(({ device }) => device.host).join(', ')
  return new DrainableError(
    'REJECTED',
    `${hosts} said yes to DELETE /mgmt/tm/sys/connection ${TIMES} times and cut nothing: ${open} are still open; on some releases this call does nothing, close them on the server or with tmsh`,
    { provider: PROVIDER, retryable: false },
  )
}

async function toCutting(target: Target, place: Place, ctx: CallContext): Promise<Cutting> {
  const { device } = place
  const node = target.kind === 'node' ? target.node : undefined
  const { pools } = node === undefined ? { pools: [] } : await device.overview(0, ctx)
  const ofNode = pools.flatMap(({ pool, members }) =>
    membersOfNode(members.rows, node ?? '').map((row) => ({ pool: pool.fullPath, row })),
  )
  const real = [...place.rows, ...ofNode].filter(({ row }) => !row.template)
  const paths = [...new Set(real.map(({ row }) => connectionPath(row.address, row.port)))]
  const count = async (each: CallContext): Promise<number | undefined> => {
    const whole = node === undefined ? undefined : await device.readNodeStats(node, each)
    if (whole?.active !== undefined) return whole.active
    let open = 0
    for (const [pool, own] of Map.groupBy(real, (one) => one.pool)) {
      const table = await device.readStats(pool, each)
      for (const { row } of own) {
        const active = statsOf(table, row)?.active
        if (active === undefined) return undefined
        open += active
      }
    }
    return open
  }
  return { device, paths, count }
}

/** Cuts, and once more where nothing is gone when the statistics must show it. */
async function cutAndCount(
  { device, paths, count }: Cutting,
  freshness: number,
  ctx: CallContext,
): Promise<{ readonly open: number; readonly gone: number }> {
  const limits = { every: LOOK, within: freshness + SHOWS }
  const open = (await until(ctx, limits, () => count(ctx))) ?? 0
  let left = open
  for (let i = 0; i < TIMES && left >= open; i += 1) {
    for (const path of paths) await deleteConnections(device, path, ctx)
    if (open === 0) break
    await until(ctx, limits, async () => {
      left = (await count(ctx)) ?? left
      return left === 0 ? true : undefined
    })
  }
  return { open, gone: Math.max(0, open - left) }
}

/** Deletes the open connections to one address and port, whatever pool they came through. */
async function deleteConnections(
  { session }: Device,
  path: string,
  ctx: CallContext,
): Promise<void> {
  const meaning = await session.change({ method: 'DELETE', path }, ctx, 'absent', 'forbidden')
  if (meaning.kind !== 'forbidden') return
  const { message } = session.toError(meaning, 'DELETE /mgmt/tm/sys/connection')
  const words = `${message}: to delete connections needs a Resource Administrator or Administrator; give it to the user, or close them on the server`
  throw new DrainableError('FORBIDDEN', words, { provider: PROVIDER })
}

const ADDRESS = /^(?:\d{1,3}(?:\.\d{1,3}){3}|[0-9a-f:.]*:[0-9a-f:.]+)(?:%\d+)?$/i

/** Whether an address is beyond doubt: one machine, no name and no wildcard. */
export function isOneAddress(address: string | undefined): address is string {
  return (
    address !== undefined &&
    ADDRESS.test(address) &&
    !/^(?:any6?|::|0\.0\.0\.0)(?:%\d+)?$/i.test(address)
  )
}

/** An address as a word of an `options` filter. */
export function toFilterWord(address: string): string {
  return encodeURIComponent(address).replaceAll('%3A', ':').replaceAll('%2F', '/')
}

/**
 * The one path that deletes connections; the words are those of tmsh, joined by `+`.
 *
 * Without its filter the same request empties the connection table of the whole device. So the path
 * is made here and nowhere else, and only from an address and a port that are beyond doubt.
 *
 * @throws `UNSUPPORTED` where they are not
 */
export function connectionPath(address: string | undefined, port: number): string {
  if (!isOneAddress(address) || !Number.isInteger(port) || port < 1 || port > 65_535) {
    throw new DrainableError(
      'UNSUPPORTED',
      `connections can only be cut by one address and one port, not by ${address ?? 'no address'} port ${port}; let them end, or cut them on the server`,
      { provider: PROVIDER },
    )
  }
  return `/mgmt/tm/sys/connection?options=ss-server-addr+${toFilterWord(address)}+ss-server-port+${port}`
}
