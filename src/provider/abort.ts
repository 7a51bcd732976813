import { systemClock, type Clock } from './clock.js'
import type { CallContext } from './contract.js'
import { formatDuration } from './duration.js'
import { DrainableError } from './error.js'
import type { Why } from './report.js'

/**
 * Settles with the work, or rejects with the signal's reason as soon as it fires. The work itself goes on after an
 * abort; its result is ignored, so a late failure is not an unhandled rejection.
 */
export function abortable<T>(work: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return work
  return new Promise((resolve, reject) => {
    const onAbort = (): void => reject(signal.reason)
    // Attached even if the signal has fired already: otherwise a failure of the work would be an unhandled rejection.
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', onAbort))
    if (signal.aborted) onAbort()
    else signal.addEventListener('abort', onAbort, { once: true })
  })
}

/** Resolves once a signal has fired. */
export async function aborted(signal: AbortSignal): Promise<void> {
  await abortable(new Promise<never>(() => undefined), signal).catch(() => undefined)
}

/** How long a call of somebody else's function is waited for. */
export interface Bound {
  readonly clock: Clock
  /** The time limit in milliseconds. */
  readonly limit: number
  /** Signals that end the wait at once. Their listeners are removed again, because the signals can live for days. */
  readonly signals?: readonly AbortSignal[] | undefined
  /** Who is asked, for people: `the ticket store`. */
  readonly peer: () => string
  /** Makes the error of a call without an answer. */
  readonly late: (words: string) => Error
  /** Told that the call is waited for; what it returns is called at the end. */
  readonly waiting?: (() => () => void) | undefined
}

/**
 * Waits for the answer of one call, no longer than the limit and the signals allow, whether the callee listens to them or
 * not. Every call of a store, a lease, a callback or a balancer goes through here.
 *
 * @param call - gets a signal that fires when it is given up, and a function that fires it
 * @throws a signal's reason, what `late` made, or what the call threw
 */
export async function within<T>(
  { clock, limit, signals = [], peer, late, waiting }: Bound,
  call: (signal: AbortSignal, stop: (reason: unknown) => void) => PromiseLike<T> | T,
): Promise<T> {
  for (const signal of signals) signal.throwIfAborted()
  const own = new AbortController()
  const stop = (reason: unknown): void => own.abort(reason)
  const undo: (() => void)[] = []
  const giveUp = new Promise<never>((_, reject) => {
    const tooLate = (): void => {
      const error = late(`no answer from ${peer()} within ${formatDuration(limit)}`)
      reject(error)
      own.abort(error)
    }
    undo.push(clock.setTimeout(tooLate, limit))
    for (const signal of signals) {
      const onAbort = (): void => {
        reject(signal.reason)
        own.abort(signal.reason)
      }
      signal.addEventListener('abort', onAbort, { once: true })
      undo.push(() => signal.removeEventListener('abort', onAbort))
    }
  })
  giveUp.catch(() => undefined) // the race below sees it, or it is not needed any more
  if (waiting !== undefined) undo.push(waiting())
  try {
    // In an async function, so that a call that throws synchronously is handled like any other failure.
    return await Promise.race([(async () => call(own.signal, stop))(), giveUp])
  } finally {
    for (const take of undo) take()
  }
}

/** Resolves when the promise has settled in any way, or after `limit` milliseconds: a caller's promise must not delay an end. */
export async function settledWithin(
  promise: Promise<unknown>,
  clock: Clock,
  limit: number,
): Promise<void> {
  const bound = { clock, limit, peer: () => 'it', late: (words: string) => new Error(words) }
  await within(bound, () => promise).catch(() => undefined)
}

/**
 * How long a function in a provider's options may take, in milliseconds: less than the call that needs it, so that the error
 * can name it.
 */
const OPTION_LIMIT = 20_000

/**
 * Asks a function in a provider's options, such as one that fetches a password.
 *
 * @param name - of the option
 * @throws what it threw; `CALL_TIMEOUT` without an answer within 20 s; `signal.reason`
 */
export function askOption<T>(
  name: string,
  call: () => PromiseLike<T> | T,
  { clock = systemClock, signal }: { readonly clock?: Clock; readonly signal?: AbortSignal } = {},
): Promise<T> {
  const bound: Bound = {
    clock,
    limit: OPTION_LIMIT,
    signals: signal === undefined ? [] : [signal],
    peer: () => `the function ${name}`,
    late: (words) => new DrainableError('CALL_TIMEOUT', words),
  }
  return within(bound, call)
}

/** A call is named by `why()` from then on, in milliseconds. */
const SAID_AFTER = 1_000

/** What `why()` says of a call without an answer beside who does not answer. */
const HINT = {
  ticket: 'a first change waits for it up to 30 s, later ones up to 2 s',
  lease: 'check its engine: without the lease the roll changes nothing more',
}

/** The calls that have no answer yet: `why()` names the one that is waited for longest. */
export class Waits {
  readonly #clock: Clock
  readonly #open = new Set<{
    readonly code: keyof typeof HINT
    readonly peer: () => string
    readonly since: number
  }>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Begins one; the returned function ends it. */
  begin(code: keyof typeof HINT, peer: () => string): () => void {
    const one = { code, peer, since: this.#clock.now() }
    this.#open.add(one)
    return () => void this.#open.delete(one)
  }

  /** What is waited for. */
  get why(): Omit<Why, 'ref'> | undefined {
    const [oldest] = this.#open
    if (oldest === undefined) return undefined
    const waited = this.#clock.now() - oldest.since
    if (waited < SAID_AFTER) return undefined
    const { code, peer } = oldest
    const text = `${peer()} has not answered for ${formatDuration(waited)}`
    return { code, text, hint: HINT[code] }
  }
}

/**
 * Makes the context for direct calls of a provider: `lb.observe('all', callContext())`. Without a signal, only the
 * provider's own limits end a call.
 *
 * @example
 * ```ts
 * import { callContext, type DrainableProvider, type Snapshot } from 'drainable/provider'
 *
 * export function everything(lb: DrainableProvider): Promise<Snapshot> {
 *   return lb.observe('all', callContext({ signal: AbortSignal.timeout(10_000) }))
 * }
 * ```
 */
export function callContext(
  o: { readonly signal?: AbortSignal | undefined; readonly clock?: Clock | undefined } = {},
): CallContext {
  if (Object(o) !== o) {
    const words = 'callContext(): expected { signal, clock }, each of which can be left out'
    throw new DrainableError('INVALID_OPTIONS', words)
  }
  return { signal: o.signal ?? new AbortController().signal, clock: o.clock ?? systemClock }
}
