import type { ChangeOutcome } from '../../../kit/change.js'
import { until } from '../../../kit/until.js'
import type { CallContext } from '../../../provider/contract.js'
import { DrainableError, isDrainableError } from '../../../provider/error.js'
import { statsOf } from '../read/view.js'
import type { Target } from '../read/target.js'
import type { Device } from '../session/device.js'
import { PROVIDER, uncertain } from '../session/session.js'
import type { Endpoint } from './places.js'

/** Beyond what statistics lag behind: how long a cut may take to show, in milliseconds. */
const SHOWS = 1_000
const LOOK = 500
/** How often a cut is sent that shows no effect. */
const TIMES = 2

/** What is to be cut on one unit. */
export interface Cut {
  readonly device: Device
  readonly target: Target
  readonly endpoints: readonly Endpoint[]
}

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
  cuts: readonly Cut[],
  freshness: number,
  forget: () => Promise<void>,
  ctx: CallContext,
): Promise<CutOutcome> {
  // Every path is made before the first is used: one that is in doubt refuses all of them.
  const cuttings = cuts.map(toCutting)
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
  if (said.open > 0 && said.gone === 0) throw cutNothing(cuttings, said.open)
  const note =
    failed.length === 0 ? {} : { note: `some connections were not cut: ${failed.join('; ')}` }
  return { outcome: { status: 'applied', terminated: said.gone, atMost: true }, ...note }
}

function cutNothing(cuttings: readonly Cutting[], open: number): DrainableError {
  const hosts = cuttings.map(({ device }) => device.host).join(', ')
  return new DrainableError(
    'REJECTED',
    `${hosts} said yes to DELETE /mgmt/tm/sys/connection ${TIMES} times and cut nothing: ${open} are still open; on some releases this call does nothing, close them on the server or with tmsh`,
    { provider: PROVIDER, retryable: false },
  )
}

function toCutting({ device, target, endpoints }: Cut): Cutting {
  const paths = [...new Set(endpoints.map(({ row }) => connectionPath(row.address, row.port)))]
  const count = async (ctx: CallContext): Promise<number | undefined> => {
    const whole = target.kind === 'node' ? await device.readNodeStats(target.node, ctx) : undefined
    return whole?.active ?? countOpen(device, endpoints, ctx)
  }
  return { device, paths, count }
}

async function countOpen(
  device: Device,
  endpoints: readonly Endpoint[],
  ctx: CallContext,
): Promise<number | undefined> {
  let open = 0
  for (const [pool, members] of Map.groupBy(endpoints, (one) => one.pool)) {
    const table = await device.readStats(pool, ctx)
    for (const { row } of members) {
      const active = statsOf(table, row)?.active
      if (active === undefined) return undefined
      open += active
    }
  }
  return open
}

/** Cuts, and once more where nothing is gone when the statistics must show it. */
async function cutAndCount(
  cutting: Cutting,
  freshness: number,
  ctx: CallContext,
): Promise<{ readonly open: number; readonly gone: number }> {
  const limits = { every: LOOK, within: freshness + SHOWS }
  const open = (await until(ctx, limits, () => cutting.count(ctx))) ?? 0
  let left = open
  for (let i = 0; i < TIMES && left >= open; i += 1) {
    for (const path of cutting.paths) await deleteConnections(cutting.device, path, ctx)
    if (open === 0) break
    await until(ctx, limits, async () => {
      left = (await cutting.count(ctx)) ?? left
      return left === 0 ? true : undefined
    })
  }
  return { open, gone: Math.max(0, open - left) }
}

/** Deletes the open connections to one address and port, whatever pool they came through. */
async function deleteConnections(device: Device, path: string, ctx: CallContext): Promise<void> {
  const meaning = await device.session.ask({ method: 'DELETE', path }, ctx)
  if (meaning.kind === 'ok' || meaning.kind === 'absent') return
  const error = device.session.toError(meaning, 'DELETE /mgmt/tm/sys/connection')
  if (meaning.kind !== 'forbidden') throw uncertain(error, meaning.kind)
  const words = `${error.message}: to delete connections needs a Resource Administrator or Administrator; give it to the user, or close them on the server`
  throw new DrainableError('FORBIDDEN', words, { provider: PROVIDER, cause: error })
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
