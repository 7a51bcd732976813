import pRetry from 'p-retry'
import { pause } from '../provider/clock.js'
import type { CallContext } from '../provider/contract.js'

/** Options of {@link retried}. */
export interface RetryOptions {
  /** The pause before each further try, in milliseconds: one more try per pause. */
  readonly waits: readonly number[]
  /** Whether to try again after this error. */
  readonly again: (error: unknown) => boolean
}

/**
 * Retries work that failed, on the clock of the call.
 *
 * @param ctx - of the call
 * @param options - the pauses, and which errors to retry
 * @param work - gets the number of the attempt, from 1
 * @throws the error of the last try, or `signal.reason` as soon as it fires
 */
export function retried<T>(
  { clock, signal }: Pick<CallContext, 'clock' | 'signal'>,
  { waits, again }: RetryOptions,
  work: (attempt: number) => Promise<T>,
): Promise<T> {
  return pRetry(work, {
    retries: waits.length,
    // p-retry's own pauses use real timers: ours are in onFailedAttempt.
    minTimeout: 0,
    signal,
    shouldRetry: ({ error }) => again(error),
    onFailedAttempt: async ({ error, attemptNumber }) => {
      const wait = waits[attemptNumber - 1]
      if (wait !== undefined && again(error)) await pause(clock, wait, signal)
    },
  })
}

/**
 * Asks again, on the clock of the call, for as long as the answer says that nothing was done yet.
 *
 * @param waits - the pauses, in milliseconds: one more try per pause
 * @param again - whether to ask again after this answer
 * @returns the last answer
 */
export async function askedAgain<T>(
  { clock, signal }: Pick<CallContext, 'clock' | 'signal'>,
  waits: readonly number[],
  again: (answer: T) => boolean,
  ask: () => Promise<T>,
): Promise<T> {
  for (const wait of waits) {
    const answer = await ask()
    if (!again(answer)) return answer
    await pause(clock, wait, signal)
  }
  return ask()
}

/** Makes pauses that double: `doubling(250, 3)` is 250, 500, 1,000. */
export function doubling(first: number, count: number, most = Infinity): number[] {
  return Array.from({ length: count }, (_, i) => Math.min(most, first * 2 ** i))
}

/** How {@link firstAnswer} goes from one to the next. */
interface Race {
  /** How long one is waited for before the next one is asked beside it, in milliseconds. */
  readonly headStart: number
  /** Whether an error is the answer of all. @default never */
  readonly isFinal?: (error: unknown) => boolean
}

/**
 * Asks several for the same. One that hangs keeps no caller waiting: after a moment, or once it has failed, the next one is
 * asked beside it, and the first answer is taken.
 *
 * @throws what the first one said where none has an answer, or the first error that is final
 */
export function firstAnswer<U, T>(
  units: readonly U[],
  { headStart, isFinal = () => false }: Race,
  ask: (unit: U, ctx: CallContext) => Promise<T>,
  ctx: CallContext,
): Promise<T> {
  const stop = new AbortController()
  const one = { ...ctx, signal: AbortSignal.any([ctx.signal, stop.signal]) }
  const failures: unknown[] = []
  let started = 0
  let ended = 0
  let cancel = (): void => undefined
  const asked = new Promise<T>((resolve, reject) => {
    const next = (): void => {
      cancel()
      const index = started
      if (index === units.length) return
      started += 1
      if (started < units.length) cancel = ctx.clock.setTimeout(next, headStart)
      ask(units[index] as U, one).then(resolve, (error: unknown) => {
        if (stop.signal.aborted) return
        failures[index] = error
        ended += 1
        if (ctx.signal.aborted || isFinal(error)) reject(error)
        else if (ended === units.length) reject(failures[0])
        else next()
      })
    }
    next()
  })
  return asked.finally(() => {
    cancel()
    stop.abort()
  })
}

/** The pause before one that does not answer is asked again, in milliseconds, doubled each time. */
const FIRST = 2_000
const MOST = 60_000

/** For how long one has not answered, and why. */
export interface Silence {
  readonly since: number
  readonly why: string
  readonly times: number
  readonly retryAt: number
}

/** Units of one balancer that do not answer, and that no call waits for: they are asked less and less often. */
export class Silent<U> {
  readonly #units = new Map<U, Silence>()

  /** Whether it is left alone for now. */
  isLeft(unit: U, { clock }: Pick<CallContext, 'clock'>): boolean {
    return clock.now() < (this.#units.get(unit)?.retryAt ?? -Infinity)
  }

  /** It has not answered, or was not asked. */
  note(unit: U, why: string, ctx: Pick<CallContext, 'clock'>): Silence {
    const known = this.#units.get(unit)
    if (known !== undefined && this.isLeft(unit, ctx)) return known
    const now = ctx.clock.now()
    const times = known === undefined ? 0 : known.times + 1
    const retryAt = now + Math.min(MOST, FIRST * 2 ** times)
    const silence = { since: known?.since ?? now, why: known?.why ?? why, times, retryAt }
    this.#units.set(unit, silence)
    return silence
  }

  /** It has answered. */
  end(unit: U): void {
    this.#units.delete(unit)
  }
}

/**
 * Asks what can do without an answer: one of several units, or something that nothing depends on.
 *
 * @param limit - how long it is waited for, in milliseconds
 * @returns undefined where none came, or a failure
 * @throws `signal.reason` of the call as soon as it fires
 */
export async function briefly<T>(
  ctx: CallContext,
  limit: number,
  ask: (ctx: CallContext) => Promise<T>,
): Promise<T | undefined> {
  const stop = new AbortController()
  const cancel = ctx.clock.setTimeout(() => stop.abort(), limit)
  try {
    return await ask({ ...ctx, signal: AbortSignal.any([ctx.signal, stop.signal]) })
  } catch {
    ctx.signal.throwIfAborted()
    return undefined
  } finally {
    cancel()
  }
}
