import type { CallContext, ChangeResult, Change } from '../provider/contract.js'
import type { Clock } from '../provider/clock.js'
import { DrainableError, isDrainableError } from '../provider/error.js'

/** No call to a provider may take longer, in milliseconds, whatever the provider's own limits are. */
export const CALL_LIMIT = 30_000

/**
 * Calls a provider: bounded, and given up at once when the signal fires, whether the provider
 * listens to it or not.
 *
 * @throws `signal.reason`, `CALL_TIMEOUT`, or what the provider threw as a {@link DrainableError}
 */
export async function bounded<T>(
  provider: string,
  what: string,
  clock: Clock,
  signal: AbortSignal,
  limit: number,
  call: (context: CallContext) => Promise<T>,
): Promise<T> {
  signal.throwIfAborted()
  const own = new AbortController()
  let cancel = (): void => undefined
  let onAbort = (): void => undefined
  const giveUp = new Promise<never>((_, reject) => {
    cancel = clock.setTimeout(() => {
      const error = new DrainableError(
        'CALL_TIMEOUT',
        `${what}: no answer from the balancer within ${limit} ms`,
        { provider },
      )
      reject(error)
      own.abort(error)
    }, limit)
    onAbort = () => {
      reject(signal.reason)
      own.abort(signal.reason)
    }
    signal.addEventListener('abort', onAbort, { once: true })
  })
  try {
    return await Promise.race([call({ signal: own.signal, clock }), giveUp])
  } catch (error) {
    if (signal.aborted) throw signal.reason
    throw toDrainableError(error, provider, what)
  } finally {
    cancel()
    signal.removeEventListener('abort', onAbort)
  }
}

/** The promise, or the signal's reason as soon as it fires. */
export function abortable<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  if (signal.aborted) {
    promise.catch(() => undefined) // nobody waits for it any more
    return Promise.reject(signal.reason as Error)
  }
  return new Promise((resolve, reject) => {
    const onAbort = (): void => reject(signal.reason)
    signal.addEventListener('abort', onAbort, { once: true })
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', onAbort))
  })
}

/** Resolves when the promise has settled, however, or after `limit`: what a caller gave must not hold an end back. */
export async function settledWithin(
  promise: Promise<unknown>,
  clock: Clock,
  limit: number,
): Promise<void> {
  let cancel = (): void => undefined
  const late = new Promise<void>((resolve) => {
    cancel = clock.setTimeout(resolve, limit)
  })
  await Promise.race([promise.catch(() => undefined), late])
  cancel()
}

/** What a provider threw, as ours. */
export function toDrainableError(error: unknown, provider: string, what: string): DrainableError {
  if (isDrainableError(error)) return error
  const words = error instanceof Error ? error.message : String(error)
  return new DrainableError('CONNECTION_LOST', `${what}: ${words}`, { provider, cause: error })
}

/** The result of every change in a call that failed as a whole: unknown. */
export function allUnknown(
  changes: readonly Change[],
  error: DrainableError,
): readonly ChangeResult[] {
  return changes.map((change) => ({ ref: change.ref, status: 'unknown', error }))
}
