import { until } from '../../../kit/until.js'
import type { CallContext } from '../../../provider/contract.js'
import { DrainableError, isDrainableError } from '../../../provider/error.js'
import type { Address } from '../codec/address.js'
import { incarnationOf } from '../codec/info.js'
import type { Settings } from '../options.js'
import type { StatsChannel } from './channel.js'
import { connectMaster } from './facts.js'
import type { MasterSocket } from './master.js'

/** How long either process can answer while a reload hands the socket over, ms. */
export const HAND_OVER = 1_000
export const HAND_OVER_LOOK = 5
/** A younger process can be unknown to its master, ms. */
const YOUNG = 3_000
/** A master that executes itself anew (at a start, at a reload) does not listen for up to this long, ms. */
const EXECUTES = 5_000

/** The process whose master is wanted. */
interface Worker {
  readonly settings: Settings
  readonly stats: StatsChannel
  readonly label: string
}

/**
 * Connects to a master: a given one must be the right one; a discovered one is used only if it is.
 *
 * @returns undefined if a discovered one is not the right one, or can't be reached
 */
export async function findMaster(
  address: Address,
  { settings, stats, label }: Worker,
  ctx: CallContext,
): Promise<MasterSocket | undefined> {
  let failure: unknown
  let moved = false as boolean // set in a closure, which the compiler does not see
  const from = ctx.clock.now()
  const found = await until(ctx, { every: HAND_OVER_LOOK, within: EXECUTES }, async () => {
    const patient = ctx.clock.now() - from < HAND_OVER
    failure = undefined
    try {
      const { info } = await stats.ask([], ctx)
      const master = await connectMaster(address, settings, info, ctx)
      if (typeof master !== 'string') return master
      // If there was a reload between the two questions, they prove nothing, however long they took.
      const { info: then } = await stats.ask([], ctx)
      moved = master === 'gone' || incarnationOf(then) !== incarnationOf(info)
      // A worker serves its socket before its master lists it: on a loaded machine long before.
      moved ||= then.lived < YOUNG
      return moved || patient ? undefined : 'another'
    } catch (error) {
      if (ctx.signal.aborted || !isDrainableError(error)) throw error
      const refused = (error.cause as NodeJS.ErrnoException | undefined)?.code === 'ECONNREFUSED'
      failure = error
      // The stats socket has just answered, so HAProxy is there.
      return refused || (error.code === 'CONNECTION_LOST' && patient) ? undefined : 'failed'
    }
  })
  if (typeof found === 'object') return found
  const data = { provider: 'haproxy-runtime' }
  if (failure === undefined && moved) {
    const words = `${label} is being reloaded or has just started, so it can't be told yet whether the master at ${address.label} is its own`
    throw new DrainableError('CONFLICT', words, data)
  }
  if (settings.master === undefined) return undefined
  const words = `haproxyRuntime(): the master given is not the one of the process that serves ${label}: its 'show proc' does not list that process`
  throw failure ?? new DrainableError('INVALID_OPTIONS', words, data)
}
