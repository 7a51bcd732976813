import type { CallContext } from '../../../provider/contract.js'
import { wallOf, type Clock } from '../../../provider/clock.js'
import { codesOf, DrainableError, toDrainableError } from '../../../provider/error.js'
import { within, type Bound } from '../../../provider/abort.js'
import type { Permit } from '../owner.js'

/** The time limit for any call to a provider, in milliseconds, whatever the provider's own limits are. */
export const CALL_LIMIT = 30_000
/** How long a look or a change at the deadline can take before it counts as failed, in milliseconds. */
export const LAST_LOOK = 2_000
/** How long an undo or another call waits for a pending change, in milliseconds. */
export const QUIET_LIMIT = 5_000

/** How long to wait for a change that no caller waits for any more, in milliseconds. */
export const LINGER = 2_000

/** Options of a bounded call. */
export interface CallOptions {
  readonly provider: string
  /** The name of the callee, for messages. Default: the balancer. */
  readonly peer?: string
  readonly what: string
  readonly clock: Clock
  /** Signals that end the call. Their listeners are removed again, because the signals can live for days. */
  readonly signals: readonly AbortSignal[]
  /** The time limit in milliseconds. */
  readonly limit: number
  /** When its caller gives up for good, see {@link CallContext.until}. Default: with the limit. */
  readonly until?: number | undefined
  readonly result?: CallContext['result']
  /** See {@link Bound}. */
  readonly waiting?: Bound['waiting']
  /** Called whenever the callee sets a timer, see {@link permitted}. */
  readonly permit?: Permit
}

/**
 * Calls a provider with a time limit, and gives the call up at once when a signal fires, whether the provider listens
 * to it or not.
 *
 * @throws the signal's reason, `CALL_TIMEOUT`, or the provider's error as a {@link DrainableError}
 */
export async function bounded<T>(
  options: CallOptions,
  call: (context: CallContext) => Promise<T>,
): Promise<T> {
  const { provider, peer = 'the balancer', what, clock, signals, limit, result, permit } = options
  const late = (): DrainableError => {
    const words = `${what}: no answer from ${peer} within ${Math.round(limit)} ms`
    return new DrainableError('CALL_TIMEOUT', words, { provider })
  }
  const bound = { clock, limit, signals, peer: () => peer, late, waiting: options.waiting }
  try {
    const { until = clock.now() + limit } = options
    return await within(bound, (signal, stop) => {
      const its = permit === undefined ? clock : permitted(clock, permit, stop)
      return call({ signal, clock: its, until, ...(result === undefined ? {} : { result }) })
    })
  } catch (error) {
    const aborted = signals.find((signal) => signal.aborted)
    if (aborted !== undefined) throw aborted.reason
    throw toDrainableError(error, provider, what)
  }
}

/**
 * The clock of a call that can become forbidden while it runs. After a freeze, a process's timers fire late: first it
 * would handle the answer to one request of a change, and then send the next request. Each request sets its time
 * limit on the call's clock before it is sent, so the permit is checked there: if it refuses, the signal of the call
 * fires.
 */
function permitted(clock: Clock, permit: Permit, stop: (reason: unknown) => void): Clock {
  return {
    now: () => clock.now(),
    ...(clock.wall === undefined ? {} : { wall: () => wallOf(clock) }),
    setTimeout(fn, ms) {
      const refusal = permit()
      if (refusal !== undefined) stop(refusal)
      return clock.setTimeout(fn, ms)
    },
  }
}

const NOBODY = new Set(['ENOENT', 'ECONNREFUSED', 'ENOTFOUND'])

/** Whether nothing listens there: no socket, no server, no such name. */
export function isNobodyThere(error: unknown): boolean {
  return codesOf(error).some((code) => NOBODY.has(code))
}
