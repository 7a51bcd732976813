import { DrainableError, isDrainableError, wordsOf } from '../../../provider/error.js'
import { abortable } from '../../../provider/abort.js'
import type { Clock } from '../../../provider/clock.js'
import type { MemberRef } from '../../../provider/contract.js'
import { formatRef } from '../../../provider/member-ref.js'
import { Alarm } from '../../balancer/look/timer.js'
import { checkUnanswered } from '../../member/open-waits.js'
import type { OwnHealthCheck } from './run-spec.js'

/** The caller's action on a drained member, whose signal fires when the hold is lost. */
export class Action {
  readonly #lost = new AbortController()
  #isRunning = false

  get running(): boolean {
    return this.#isRunning
  }

  /** Whether it was told that the hold is lost. */
  get isLost(): boolean {
    return this.#lost.signal.aborted
  }

  lose(error: DrainableError): void {
    this.#lost.abort(error)
  }

  /** Something begins that needs the hold. @returns a signal that fires when it is lost */
  begin(): AbortSignal {
    this.#isRunning = true
    return this.#lost.signal
  }

  end(): void {
    this.#isRunning = false
  }

  async run<T>(action: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const signal = this.begin()
    try {
      signal.throwIfAborted() // lost between the outcome and now
      return await action(signal)
    } catch (error) {
      if (!signal.aborted) throw error
      // Many APIs wrap the reason of the signal they were given.
      const cause = error instanceof Error ? error.cause : undefined
      throw error === signal.reason || cause === signal.reason ? signal.reason : error
    } finally {
      this.end()
    }
  }
}

/**
 * Asks the caller's own health check of a member, until the time of its opening is over, whether the check listens to its
 * signal or not.
 *
 * @returns why the member is not healthy; null if it is
 */
export async function askOwnCheck(
  check: OwnHealthCheck,
  ref: MemberRef,
  times: {
    readonly clock: Clock
    /** By the clock; null for none. */
    readonly until: number | null
    readonly since: number
    readonly stop: AbortSignal
    readonly broken: (thrown: unknown) => void
  },
): Promise<DrainableError | null> {
  const { clock, until, since, stop, broken } = times
  const own = new AbortController()
  const onStop = (): void => own.abort(stop.reason)
  stop.addEventListener('abort', onStop, { once: true })
  const alarm = new Alarm(clock, broken)
  if (until !== null) alarm.set(until, () => own.abort(checkUnanswered(ref, until - since)))
  try {
    // In an async function, so that a check that throws synchronously is handled like any other failure.
    const said: unknown = await abortable((async () => check(ref, own.signal))(), own.signal)
    return said === false ? unhealthy(ref, 'it gave false') : null
  } catch (cause) {
    return isDrainableError(cause) && cause === own.signal.reason
      ? cause
      : unhealthy(ref, wordsOf(cause), cause)
  } finally {
    alarm.clear()
    stop.removeEventListener('abort', onStop)
  }
}

function unhealthy(ref: MemberRef, words: string, cause?: unknown): DrainableError {
  return new DrainableError(
    'HEALTH_TIMEOUT',
    `${formatRef(ref)}: the caller's health check failed: ${words}; it stays as it is`,
    { ref, cause },
  )
}
